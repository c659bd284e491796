import os
from pathlib import Path

import pytest

from devlet.sanity import host


@pytest.mark.parametrize(("online", "nodes"), [("0\n", {0}), ("0-1,3\n", {0, 1, 3}), ("\n", set())])
def test_numa_nodes_are_those_online(tmp_path: Path, online: str, nodes: set[int]) -> None:
    (tmp_path / "online").write_text(online)
    assert host.numa_nodes(tmp_path) == nodes


def test_a_kernel_that_does_not_tell_has_none(tmp_path: Path) -> None:
    assert host.numa_nodes(tmp_path) == frozenset()


def test_an_open_file_is_counted() -> None:
    before = host.usage(os.getpid())
    with open("/dev/null"):
        assert host.usage(os.getpid()).files == before.files + 1
    assert before.threads > 0 and before.memory > 0


@pytest.mark.parametrize(
    ("device", "problem"),
    [
        (("/dev/null", "/dev/led", "rw"), ""),
        (("/dev", "/dev/leds", "r"), ""),
        (("dev/null", "/dev/led", "rw"), "not absolute"),
        (("/dev/null", "led", "rw"), "not absolute"),
        (("/dev/null", "/dev/../led", "rw"), "contains .."),
        (("/dev/null", "/dev/led", ""), "permissions"),
        (("/dev/null", "/dev/led", "rx"), "permissions"),
        (("/dev/no-such", "/dev/led", "rw"), "does not exist"),
        (("/etc/passwd", "/dev/led", "rw"), "is not a device node"),
    ],
)
def test_a_device_that_no_container_can_have_has_a_problem(device: tuple[str, str, str], problem: str) -> None:
    found = host.device_problem(*device)
    assert problem in found and bool(found) == bool(problem)


def test_a_mount_is_of_anything_that_exists() -> None:
    assert host.mount_problem("/etc/passwd", "/etc/leds") == ""
    assert "does not exist" in host.mount_problem("/no/such", "/etc/leds")
