import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

import pytest
import yaml

from devlet.cli import driver_project
from devlet.cli.driver_project import Kind, Names, create, names_of
from devlet.errors import InvalidInput
from devlet.testing.node import Node

LED = Names("led", "example.com")


def made(root: Path, kind: Kind) -> Path:
    create(root / "led", kind, LED)
    return root / "led"


def test_a_name_without_a_domain_gets_one_for_examples() -> None:
    assert names_of("led", Kind.DRA) == LED
    assert (LED.driver, LED.resource, LED.package) == ("led.example.com", "example.com/led", "led_driver")


def test_a_name_with_a_domain_is_the_drivers() -> None:
    names = names_of("my-led.vendor.com", Kind.DRA)
    assert (names.driver, names.resource) == ("my-led.vendor.com", "vendor.com/my-led")
    assert (names.distribution, names.package, names.values()["class"]) == ("my-led-driver", "my_led_driver", "MyLed")


def test_a_driver_is_not_called_driver_twice() -> None:
    assert names_of("led-driver", Kind.DRA).package == "led_driver"


@pytest.mark.parametrize("name", ["a/b", "../led", "/tmp/led", ".", "~", ".led", "vendor.com/led", "a\\b"])
def test_a_path_is_not_a_name(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"is a path, .* --directory"):
        names_of(name, Kind.DRA)


@pytest.mark.parametrize("name", ["", "Led", "3d", "-led", "led-", "led.Vendor_x", "led..com", "l ed", "léd", "a" * 64])
@pytest.mark.parametrize("kind", Kind)
def test_a_name_that_no_driver_can_have_is_refused(name: str, kind: Kind) -> None:
    with pytest.raises(InvalidInput, match=r"invalid driver name .+: .+"):
        names_of(name, kind)


def test_a_name_with_which_sockets_have_too_long_paths_is_refused_for_dra() -> None:
    longest = "led-controller-x.vendor.com"
    path = f"/var/lib/kubelet/plugins_registry/{longest}-{'u' * 36}-reg.sock"
    assert len(path) == 107 and names_of(longest, Kind.DRA).driver == longest
    with pytest.raises(InvalidInput, match="no more than 27"):
        names_of(f"x{longest}", Kind.DRA)
    assert names_of(f"x{longest}", Kind.DEVICE_PLUGIN).driver == f"x{longest}"


def test_a_resource_that_is_not_for_plugins_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"invalid resource name 'kubernetes\.io/led'"):
        names_of("led.kubernetes.io", Kind.DEVICE_PLUGIN)


@pytest.mark.parametrize("kind", Kind)
def test_all_files_are_there_and_nothing_is_left_to_fill_in(root: Path, kind: Kind) -> None:
    files = create(root / "deep/led", kind, LED)
    assert PurePosixPath("src/led_driver/driver.py") in files and PurePosixPath(".gitignore") in files
    assert files == sorted(
        PurePosixPath(each.relative_to(root / "deep/led")) for each in (root / "deep/led").rglob("*") if each.is_file()
    )
    assert os.listdir(root / "deep") == ["led"]
    for path in files:
        text = (root / "deep/led" / path).read_text()
        assert "{{" not in text and "PACKAGE" not in text


@pytest.mark.parametrize("kind", Kind)
def test_no_name_makes_a_package_that_one_of_its_tests_hides(root: Path, kind: Kind) -> None:
    create(root / "test", kind, names_of("test", kind))
    assert {each.stem for each in (root / "test/tests").iterdir()}.isdisjoint({"test_driver"})


@pytest.mark.parametrize("kind", Kind)
def test_it_depends_on_devlet_and_nothing_else(root: Path, kind: Kind) -> None:
    project = tomllib.loads((made(root, kind) / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == ["devlet>=0.1.0"]
    assert project["scripts"] == {"led-driver": "led_driver.driver:main"}


@pytest.mark.parametrize("kind", Kind)
def test_the_driver_has_at_most_30_lines_of_code(root: Path, kind: Kind) -> None:
    text = (made(root, kind) / "src/led_driver/driver.py").read_text()
    tree = ast.parse(text)
    told = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    code = [line for number, line in enumerate(text.splitlines(), 1) if line.strip() and number not in told]
    assert 10 < len(code) <= 30


@pytest.mark.parametrize("kind", Kind)
def test_what_is_there_stays_as_it_is(root: Path, kind: Kind) -> None:
    place = made(root, kind)
    (place / "README.md").write_text("mine")
    with pytest.raises(InvalidInput, match="already exists: choose another directory"):
        create(place, kind, LED)
    assert (place / "README.md").read_text() == "mine"
    (root / "dangling").symlink_to(root / "nowhere")
    with pytest.raises(InvalidInput, match="already exists"):
        create(root / "dangling", kind, LED)


def test_what_cannot_be_made_is_said_and_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").touch()
    with pytest.raises(InvalidInput, match=r"cannot create .*: (Not a directory|File exists)"):
        create(root / "file/led", Kind.DRA, LED)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(driver_project, "_write", full)
    with pytest.raises(InvalidInput, match=r"cannot create .*: No space left on device"):
        create(root / "led", Kind.DRA, LED)
    assert os.listdir(root) == ["file"]


@pytest.mark.parametrize(("kind", "count"), [(Kind.DRA, 7), (Kind.DEVICE_PLUGIN, 2)])
def test_its_manifests_give_no_more_than_is_needed(root: Path, kind: Kind, count: int) -> None:
    documents = list(yaml.safe_load_all((made(root, kind) / "deploy/daemonset.yaml").read_text()))
    assert len(documents) == count
    pod = documents[-1]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"] and "privileged" not in str(pod)
    if kind is Kind.DEVICE_PLUGIN:
        assert pod["automountServiceAccountToken"] is False


@pytest.mark.anyio
@pytest.mark.parametrize("kind", Kind)
async def test_the_objects_of_its_readme_are_taken_by_a_node(root: Path, kind: Kind) -> None:
    readme = (made(root, kind) / "README.md").read_text()
    (objects,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    async with Node.start() as node:
        found = await node.apply(objects)
    assert found[-1]["metadata"]["name"] == "user"


@pytest.mark.long
@pytest.mark.parametrize("kind", Kind)
def test_its_own_tests_pass(root: Path, kind: Kind) -> None:
    run(made(root, kind), sys.executable, "-m", "pytest", "-q", "-p", "devlet.testing.pytest_plugin", autoload=False)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_commands_that_are_printed_work_in_a_clean_shell(root: Path) -> None:
    """One environment for both kinds, because installing devlet takes most of the time."""
    printed = run(root, sys.executable, "-m", "devlet", "driver", "new", "led")
    commands = printed.partition("Install it and run its tests:\n")[2]
    assert commands.splitlines()[0] == "  cd led"
    assert "3 passed" in run(root, "sh", "-c", f"set -e\n{commands}")
    python = root / "led/.venv/bin/python"
    run(root, str(python.with_name("led-driver")), "--help")
    place = made(root / "plugin", Kind.DEVICE_PLUGIN)
    run(place, str(python), "-m", "pip", "install", "--quiet", "-e", ".[test]")
    run(place, str(python.with_name("led-driver")), "--help")
    assert "3 passed" in run(place, str(python), "-m", "pytest", "-q")


@pytest.mark.long
@pytest.mark.parametrize("kind", Kind)
def test_its_code_has_types_and_the_usual_form(root: Path, kind: Kind) -> None:
    place = made(root, kind)
    run(place, sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "src/led_driver/driver.py")
    run(place, sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", "--no-cache", ".")
    run(place, sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "--no-cache", "--check", ".")


def run(place: Path, *command: str, autoload: bool = True) -> str:
    """Without what this run of pytest has set."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON", "DEVLET_"))}
    environment = kept | ({} if autoload else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
