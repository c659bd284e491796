"""The wheel that users install: what it contains, and that it works."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from devlet.cassettes import library

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (built,) = WheelBuilder(str(PROJECT)).build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(built)


def test_the_wheel_contains_the_package_and_nothing_of_its_tests(wheel: Path) -> None:
    names = [Path(name) for name in ZipFile(wheel).namelist()]
    assert {name.parts[0] for name in names} == {"devlet", f"{wheel.name.partition('-py3')[0]}.dist-info"}
    sources = {path.relative_to(PROJECT / "src") for path in (PROJECT / "src/devlet").rglob("*.py")}
    assert {name for name in names if name.suffix == ".py"} == sources


@pytest.mark.long
def test_an_installed_wheel_has_the_shipped_cassettes_and_the_pytest_plugin(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*install, "--target", site, wheel], check=True, timeout=300)

    def run(*words: str | Path) -> str:
        environment = {"PYTHONPATH": str(site), "HOME": str(tmp_path)}
        run = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout

    assert run(sys.executable, "-c", "import devlet; print(devlet.__file__)").startswith(str(site))
    listed = run(site / "bin/devlet", "play", "--list").splitlines()[1:]
    assert [line.split()[0] for line in listed] == library.names()
    (tmp_path / "test_it.py").write_text("def test_it(devlet_node): devlet_node.create_pod('lamp')")
    assert "1 passed" in run(sys.executable, "-m", "pytest", "-q", "test_it.py")
