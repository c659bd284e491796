import subprocess
import sys
from pathlib import Path

import pytest

from devlet.cassettes.spec_files import spec_files
from devlet.errors import InvalidInput
from devlet.runtime.cdi import spec_dir
from devlet.runtime.cdi.spec import ContainerEdits, Device, DeviceNode, Spec

GONE = ContainerEdits(device_nodes=(DeviceNode("/dev/no-such-node"),))


def spec(*devices: str, kind: str = "a.b/c") -> Spec:
    return Spec("0.3.0", kind, tuple(Device(name, ContainerEdits(env=("A=b",))) for name in devices))


def devices(directory: Path) -> set[str]:
    found = [spec_dir.read(path)[1] for path in spec_dir.list_files(directory)]
    return {f"{each.kind}={device.name}" for each in found for device in each.devices}


def test_they_are_there_while_the_block_runs(tmp_path: Path) -> None:
    with spec_files([spec("x"), spec("y", kind="d.e/f")], tmp_path / "cdi"):
        assert devices(tmp_path / "cdi") == {"a.b/c=x", "d.e/f=y"}
    assert list((tmp_path / "cdi").iterdir()) == []


def test_devices_of_others_and_what_is_not_here_are_left_out(tmp_path: Path) -> None:
    made = (
        Device("mine", ContainerEdits(env=("A=b",)) + GONE),
        Device("theirs", ContainerEdits(env=("A=b",))),
        Device("empty", GONE),
    )
    (tmp_path / "theirs.yaml").write_text(
        "{cdiVersion: 0.3.0, kind: a.b/c, devices: [{name: theirs, containerEdits: {env: [X=y]}}]}"
    )
    for strict, expected in ((False, ["mine"]), (True, ["mine", "empty"])):
        with spec_files([Spec("0.3.0", "a.b/c", made)], tmp_path, strict=strict):
            (path,) = tmp_path.glob("devlet-play-*.json")
            _, found = spec_dir.read(path)
            assert [device.name for device in found.devices] == expected
    assert [path.name for path in tmp_path.iterdir()] == ["theirs.yaml"]


def test_two_cassettes_do_not_disturb_each_other(tmp_path: Path) -> None:
    with spec_files([spec("x")], tmp_path):
        with spec_files([spec("y")], tmp_path):
            assert devices(tmp_path) == {"a.b/c=x", "a.b/c=y"}
        assert devices(tmp_path) == {"a.b/c=x"}


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from tests.unit.cassettes.test_spec_files import spec, spec_files
with spec_files([spec("x"), spec("z")], Path({str(tmp_path)!r})):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[3], timeout=120)
    assert devices(tmp_path) == {"a.b/c=x", "a.b/c=z"}
    with spec_files([spec("z")], tmp_path):
        assert devices(tmp_path) == {"a.b/c=z"}
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_directory_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidInput, match=f"CDI specs cannot be written to {file}: "), spec_files([spec("x")], file):
        pass
    with spec_files([], file):
        pass
