"""With small scripts in the place of the drivers, which show the flags they got. The real ones are in tests/peers."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from tests.support.peers.drivers import (
    Driver,
    dra_example_driver,
    dra_test_driver,
    generic_device_plugin,
    hooked_test_driver,
    kubelet_claims_driver,
    sample_device_plugin,
)

pytestmark = pytest.mark.anyio

# Shows its flags, then listens wherever a driver of that flag would, and answers commands.
SCRIPT = f"""#!{sys.executable}
import socket, sys, time
for flag in sys.argv[1:]:
    print(flag, flush=True)
flags = dict(flag.split("=", 1) for flag in sys.argv[1:] if "=" in flag)
name = flags.get("--driver-name") or flags.get("--drivername")
folder = flags.get("--kubelet-registrar-directory-path") or flags.get("--plugin-registration-path")
path = flags.get("--control") or flags.get("--registration-socket")
path = path or (f"{{folder}}/{{name}}-reg.sock" if name else flags["--plugin-directory"] + "/gdp-x.sock")
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("serving", flags.get("--name"), flush=True)
while "--control" in flags:
    connection = listener.accept()[0]
    connection.recv(1000)
    connection.sendall(b'{{"value":[]}}' + bytes([10]))
time.sleep(60)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def root() -> Iterator[Path]:
    """Short, unlike tmp_path: sockets go below it."""
    with tempfile.TemporaryDirectory(prefix="dv") as folder:
        yield Path(folder)


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("dra-example-kubeletplugin", "test-driver", "generic-device-plugin", "kubelet-claims"):
        (folder / name).write_text(SCRIPT)
        (folder / name).chmod(0o755)
    return folder


async def flags_of(driver: Driver) -> list[str]:
    async with driver as running:
        return lines(running.log)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


async def test_the_example_driver_gets_its_directories(binaries: Path, root: Path) -> None:
    flags = await flags_of(dra_example_driver(binaries, root, root / "kubeconfig", node_name="n1", num_devices=3))
    assert f"--kubelet-registrar-directory-path={root}/plugins_registry" in flags
    assert f"--kubelet-plugins-directory-path={root}/plugins" in flags
    assert {"--node-name=n1", "--num-devices=3", "--driver-name=gpu.example.com", f"--cdi-root={root}/cdi"} < set(flags)


async def test_the_test_drivers_own_directory_exists_before_it_starts(binaries: Path, root: Path) -> None:
    flags = await flags_of(dra_test_driver(binaries, root, root / "kubeconfig", node_name="n1", driver_name="d"))
    assert flags[:3] == [f"--kubeconfig={root}/kubeconfig", "--drivername=d", "kubelet-plugin"]
    assert names(root / "plugins") == ["d"]


async def test_the_hooked_driver_is_one_of_several_instances_with_a_uid(binaries: Path, root: Path) -> None:
    started = hooked_test_driver(binaries, root, root / "kubeconfig", node_name="n1", driver_name="d", uid="u1")
    async with started as driver:
        assert await driver.calls() == []
        flags = lines(driver.process.log)
    assert (driver.process.name, driver.process.log) == ("d-u1", root / "d-u1.log")
    assert {"test-driver", "--drivername=d", "--uid=u1", "--stopped=false", f"--control={root}/d-u1.control"} < set(
        flags
    )
    assert names(root / "plugins") == ["d"]


async def test_the_driver_without_an_api_server_gets_its_sockets(binaries: Path, root: Path) -> None:
    flags = await flags_of(kubelet_claims_driver(binaries, root, driver_name="d"))
    assert flags[:3] == ["driver", "--name=d", f"--socket={root}/plugins/d/dra.sock"]
    assert f"--registration-socket={root}/plugins_registry/d-reg.sock" in flags


async def test_the_generic_plugin_gets_one_flag_per_device_and_listens_on_loopback(binaries: Path, root: Path) -> None:
    flags = await flags_of(generic_device_plugin(binaries, root, [{"name": "null", "groups": []}]))
    assert '--device={"name": "null", "groups": []}' in flags
    assert [flag.rsplit(":", 1)[0] for flag in flags if flag.startswith("--listen")] == ["--listen=127.0.0.1"]


async def test_what_a_plugin_killed_in_this_second_left_has_another_name(binaries: Path, root: Path) -> None:
    (root / "device-plugins").mkdir()
    second = int(time.time())
    (root / "device-plugins" / f"gdp-bnVsbA==-{second}.sock").touch()
    await flags_of(generic_device_plugin(binaries, root, [{"name": "null", "groups": []}]))
    assert time.time() >= second + 1


def test_a_root_too_long_for_sockets_is_refused_with_its_length(binaries: Path, root: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\d+ bytes, a socket path has at most 107; use a shorter root"):
        dra_example_driver(binaries, root / ("x" * 90), root / "kubeconfig", node_name="n1")
    with pytest.raises(InvalidInput, match=r"-u-reg.sock: \d+ bytes, a socket path has at most 107"):
        hooked_test_driver(binaries, root, root / "kubeconfig", node_name="n1", driver_name="x" * 90, uid="u")


def test_a_missing_driver_is_named_with_what_to_do(binaries: Path, root: Path) -> None:
    with pytest.raises(InvalidInput, match="has no sample-device-plugin: run `make peers`"):
        sample_device_plugin(binaries, root)
