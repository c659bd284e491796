"""The same node for tests without async."""

import inspect
import signal
import sys
from collections.abc import Iterator

import pytest
from anyio.from_thread import BlockingPortal

from devlet.errors import NotFound
from devlet.testing import sync_node
from devlet.testing.driver_runner import DriverRunner
from devlet.testing.fake_clock import FakeClock
from devlet.testing.node import Node
from devlet.testing.sync_node import SyncDriver, SyncNode, node_thread

GPU = "vendor.com/gpu"
PLUGIN = [sys.executable, "-m", "devlet.testing.fake_device_plugin", "--directory", "{device_plugins}"]
PLUGIN += ["--resource", GPU, "--devices", "2"]


@pytest.fixture(scope="module")
def thread() -> Iterator[BlockingPortal]:
    with node_thread() as thread:
        yield thread


def test_a_plugin_a_pod_and_a_crash_without_async(thread: BlockingPortal) -> None:
    with SyncNode.start(thread, name="n1") as node, node.driver(PLUGIN, resource=GPU) as driver:
        node.create_pod("train", limits={GPU: 1})
        node.until_running("train")
        before = node.held()
        assert before["train"][GPU] and node.environment("train")
        driver.kill()
        assert driver.returncode == -signal.SIGKILL and "plugin serving" in driver.log and driver.log_file.exists()
        node.crash()
        node.restart()
        driver.restart()
        node.until_healthy(GPU, 2)
        assert node.held() == before and driver.pid
        driver.send_signal(signal.SIGTERM)
        node.until_left(GPU)
    assert not node.root.exists()


def test_paths_are_those_of_the_node(thread: BlockingPortal) -> None:
    with SyncNode.start(thread, name="n1") as node:
        assert node.name == "n1" and node.socket.is_socket() and node.kubeconfig.is_file()
        below = [node.device_plugins, node.plugins_registry, node.plugins, node.cdi, node.pod_resources]
        assert all(path.is_relative_to(node.root) for path in below)


def test_errors_come_through(thread: BlockingPortal) -> None:
    with SyncNode.start(thread) as node:
        with pytest.raises(NotFound):
            node.get("Pod", "p")
        with pytest.raises(AssertionError, match="there is no such pod"):
            node.until_running("p", within=0.1)


def test_a_call_without_an_answer_is_given_up(thread: BlockingPortal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_node, "PATIENCE", 0.1)
    with SyncNode.start(thread) as node:
        with pytest.raises(AssertionError, match=r"no answer from the node within 0\.1 s"):
            node.wait_for("Pod", "p")
        monkeypatch.setattr(sync_node, "PATIENCE", 60.0)
        with pytest.raises(AssertionError, match=r"not within 0\.2 s"):
            node.wait_for("Pod", "p", within=0.2)


def test_time_passes_only_in_advance(thread: BlockingPortal) -> None:
    with SyncNode.start(thread, clock=FakeClock.at_present()) as node:
        node.create_pod("job", run_for="1h", restart="Never")
        node.until_running("job")
        node.advance(3600)
        node.until_phase("job", "Succeeded")


def test_every_method_of_a_node_and_of_a_driver_is_there() -> None:
    for outer, inner in ((SyncNode, Node), (SyncDriver, DriverRunner)):
        names = {name for name, each in inspect.getmembers(inner) if not name.startswith("_")}
        missing = names - set(dir(outer)) - {"cluster", "clock", "describe", "items", "read", "start"}
        assert missing == set(), outer
