"""The pytest plugin the way a user has it: a project with tests, and pytest in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

PLAIN = """
import sys

PLUGIN = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--directory", "{device_plugins}"]
PLUGIN += ["--resource", "vendor.com/gpu", "--devices", "2"]


def test_a_pod_gets_a_device(devlet_node):
    with devlet_node.driver(PLUGIN, resource="vendor.com/gpu") as driver:
        devlet_node.create_pod("train", limits={"vendor.com/gpu": 1})
        devlet_node.until_running("train")
        driver.kill()
        driver.restart()
        devlet_node.crash()
        devlet_node.restart()
        assert devlet_node.held()["train"]["vendor.com/gpu"]
"""

OPTIONS = """
import pytest

pytestmark = pytest.mark.devlet(name="n1", control=True)


@pytest.mark.devlet(control=False)
def test_the_marker_nearest_to_the_test_wins(devlet_node):
    devlet_node.create_pod("waits")
    devlet_node.create_pod("runs", node="n1")
    devlet_node.until_running("runs")
    assert "nodeName" not in devlet_node.get("Pod", "waits")["spec"]


def test_several_nodes_in_one_test(devlet_nodes):
    one, two = devlet_nodes(name="one"), devlet_nodes(name="two")
    one.create_pod("p")
    one.until_running("p")
    assert two.pods() == {}


def test_a_node_starts_with_nothing_of_the_tests_before(devlet_node):
    assert devlet_node.pods() == {} and devlet_node.list("Node")[0]["metadata"]["name"] == "n1"
"""

ASYNC = """
import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.devlet(name="n2")]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_a_node_in_the_loop_of_the_test(devlet_node_async):
    await devlet_node_async.create_pod("p")
    await devlet_node_async.until_running("p")
    assert devlet_node_async.name == "n2"
"""

MANY = """
import pytest


@pytest.mark.parametrize("number", range(8))
def test_a_node_of_many(devlet_node, number):
    devlet_node.create_pod(f"p{number}")
    devlet_node.until_running(f"p{number}")
    assert list(devlet_node.pods()) == [f"p{number}"]
"""

FAILS = """
def test_that_fails(devlet_node):
    devlet_node.create_pod("train", limits={"vendor.com/gpu": 1})
    devlet_node.until_event("FailedScheduling")
    devlet_node.until_running("train", within=0.2)


def test_with_a_driver_that_fails(devlet_node):
    with devlet_node.driver(["sh", "-c", "echo no hardware here; exit 4"], name="gpu.example.com"):
        pass
"""


def run(folder: Path, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
    """pytest on these test files, with warnings as errors, in a project that is not ours."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    for name, content in files.items():
        (folder / f"test_{name}.py").write_text(content)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_plain_async_and_configured_tests_pass(root: Path) -> None:
    done = run(root, plain=PLAIN, options=OPTIONS, asynchronous=ASYNC)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


@pytest.mark.long
def test_tests_run_in_parallel(root: Path) -> None:
    done = run(root, "-n", "2", many=MANY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


@pytest.mark.long
def test_a_failure_says_what_the_cluster_and_the_driver_said(root: Path) -> None:
    done = run(root, "--tb=short", fails=FAILS)
    assert done.returncode == 1 and "2 failed" in done.stdout
    assert "Insufficient vendor.com/gpu" in done.stdout
    assert "exited with 4 before it was registered" in done.stdout and "no hardware here" in done.stdout


def test_a_project_that_does_not_use_it_does_not_load_it(root: Path) -> None:
    unused = "import sys\n\n\ndef test_it():\n    assert not {'grpc', 'devlet.daemon'} & set(sys.modules)\n"
    done = run(root, unused=unused)
    assert done.returncode == 0, done.stdout


def test_fixtures_and_the_marker_are_explained_by_pytest(root: Path) -> None:
    shown = run(root, "--fixtures", "-v").stdout
    assert "A whole node in this process, for one test." in shown
    assert "@pytest.mark.devlet(**options)" in run(root, "--markers").stdout
