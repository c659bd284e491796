import socket
from ipaddress import ip_address
from pathlib import Path

import pytest

from devlet.node import host
from devlet.node.host import Host
from devlet.objects.values.quantity import Quantity


def test_this_machine_can_be_read(root: Path) -> None:
    found = host.read(root)
    assert found.cpus >= 1 and found.memory > 0 and found.storage > 0
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found.kernel and found.system == "linux" and found.architecture


def test_the_host_is_read_from_files(root: Path) -> None:
    for name, content in {
        "proc/meminfo": "MemTotal:       1000 kB\nMemFree: 5 kB\n",
        "proc/sys/kernel/random/boot_id": "b1\n",
        "etc/machine-id": "m1\n",
        "etc/os-release": 'NAME=x\nPRETTY_NAME="Example 1"\n',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    found = host.read(root, slash=root)
    assert (found.memory, found.boot_id, found.machine_id) == (1_024_000, "b1", "m1")
    assert (found.image, found.system_uuid) == ("Example 1", "m1")


def test_what_cannot_be_read_is_left_empty(root: Path) -> None:
    found = host.read(root, slash=root)
    assert (found.memory, found.boot_id, found.image) == (0, "", "")


def test_its_capacity_is_in_quantities() -> None:
    found = Host(cpus=4, memory=8 * 1024**3 + 1, storage=1024**4).capacity
    assert found == {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Ti"}
    assert all(Quantity.parse(text) for text in found.values())


def test_the_address_of_a_machine_is_an_ip_address() -> None:
    assert not ip_address(host.address()).is_unspecified


def test_a_machine_without_a_default_route_has_the_loopback_address(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut(socket.socket):
        def connect(self, address: object) -> None:
            raise OSError("Network is unreachable")

    monkeypatch.setattr(socket, "socket", Cut)
    assert host.address() == "127.0.0.1"
