"""Run well-known device plugins and DRA drivers, unmodified, against a node's directories.

`root` is laid out as under /var/lib/kubelet: `plugins_registry/`, `plugins/` and `device-plugins/` below it. Each
runner returns a context manager that is entered once the driver listens on its socket, which is before the kubelet, or
devlet, has greeted it. Keep roots short: a socket path has at most 107 bytes.

Device plugins register themselves and so need `device-plugins/kubelet.sock` to be served already; DRA drivers wait
to be found, but talk to the API server at once, and publish nothing until their Node object exists there.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio

from devlet.errors import DevletError, InvalidInput
from devlet.kit.processes import SHORT_GRACE, Ready, RunningProcess, line, process, socket_accepts
from devlet.runtime import kubelet_paths
from tests.support.free_ports import LOOPBACK, free_ports
from tests.support.peers.hooked_driver import HookedDriver

__all__ = [
    "dra_example_driver",
    "dra_test_driver",
    "generic_device_plugin",
    "hooked_test_driver",
    "kubelet_claims_driver",
    "sample_device_plugin",
]

Driver = AbstractAsyncContextManager[RunningProcess]

SOCKET_PATH_LIMIT = 107  # bytes, of the kernel


def dra_example_driver(
    binaries: Path,
    root: Path,
    kubeconfig: Path,
    *,
    node_name: str,
    profile: str = "gpu",
    num_devices: int = 8,
    driver_name: str = "",
    uid: str = "",
    cdi_root: Path | None = None,
    flags: Sequence[str] = (),
) -> Driver:
    """sigs.k8s.io/dra-example-driver. Its name is `<profile>.example.com` unless `driver_name` says otherwise; `uid`
    makes it one of several instances of a rolling update."""
    name = driver_name or f"{profile}.example.com"
    instance = f"{name}-{uid}" if uid else name
    registry, plugins = _registration(root, instance, name)
    argv = [
        _binary(binaries, "dra-example-kubeletplugin"),
        f"--node-name={node_name}",
        f"--kubeconfig={kubeconfig.absolute()}",
        f"--cdi-root={_cdi(root, cdi_root)}",
        f"--kubelet-registrar-directory-path={registry}",
        f"--kubelet-plugins-directory-path={plugins}",
        f"--device-profile={profile}",
        f"--num-devices={num_devices}",
        f"--driver-name={name}",
        *([f"--pod-uid={uid}"] if uid else []),
        *flags,
    ]
    return process(argv, log=root / f"{instance}.log", ready=_greetable(registry, instance))


def dra_test_driver(
    binaries: Path,
    root: Path,
    kubeconfig: Path,
    *,
    node_name: str,
    num_devices: int = 4,
    driver_name: str = "test-driver.cdi.k8s.io",
    cdi_root: Path | None = None,
    flags: Sequence[str] = (),
) -> Driver:
    """The driver of Kubernetes' own end-to-end tests."""
    registry, plugins = _registration(root, driver_name)
    argv = [
        _binary(binaries, "test-driver"),
        f"--kubeconfig={kubeconfig.absolute()}",
        f"--drivername={driver_name}",
        "kubelet-plugin",
        f"--node-name={node_name}",
        f"--plugin-registration-path={registry}",
        f"--datadir={plugins}",
        f"--cdi-dir={_cdi(root, cdi_root)}",
        f"--num-devices={num_devices}",
        *flags,
    ]
    return process(argv, log=root / f"{driver_name}.log", ready=_greetable(registry, driver_name))


def hooked_test_driver(
    binaries: Path,
    root: Path,
    kubeconfig: Path,
    *,
    node_name: str,
    num_devices: int = 4,
    driver_name: str = "test-driver.cdi.k8s.io",
    uid: str = "",
    stopped: bool = False,
    cdi_root: Path | None = None,
    flags: Sequence[str] = (),
) -> AbstractAsyncContextManager[HookedDriver]:
    """The same driver, with its fault hooks within reach. `uid` makes it one of several instances of a rolling update;
    `stopped`: it begins with neither of its parts, for faults that have to be there first."""
    instance = f"{driver_name}-{uid}" if uid else driver_name
    registry, plugins = _registration(root, instance, driver_name)
    control = root.absolute() / f"{instance}.control"
    _check_length(control)
    argv = [
        _binary(binaries, "kubelet-claims"),
        "test-driver",
        f"--kubeconfig={kubeconfig.absolute()}",
        f"--drivername={driver_name}",
        f"--node-name={node_name}",
        f"--plugin-registration-path={registry}",
        f"--datadir={plugins}",
        f"--cdi-dir={_cdi(root, cdi_root)}",
        f"--num-devices={num_devices}",
        f"--uid={uid}",
        f"--control={control}",
        f"--stopped={str(stopped).lower()}",
        *flags,
    ]
    return _hooked(process(argv, name=instance, log=root / f"{instance}.log", ready=_obeys(control)), control)


@asynccontextmanager
async def _hooked(driver: Driver, control: Path) -> AsyncIterator[HookedDriver]:
    async with driver as running:
        yield HookedDriver(running, control)


def kubelet_claims_driver(binaries: Path, root: Path, *, driver_name: str = "bench.example.com") -> Driver:
    """A driver that answers at once with one device per claim, and needs no API server. It serves
    `plugins/NAME/dra.sock`."""
    registry, plugins = _registration(root, driver_name)
    argv = [
        _binary(binaries, "kubelet-claims"),
        "driver",
        f"--name={driver_name}",
        f"--socket={plugins / driver_name / 'dra.sock'}",
        f"--registration-socket={registry / f'{driver_name}-reg.sock'}",
    ]
    return process(argv, name=driver_name, log=root / f"{driver_name}.log", ready=line(f"serving {driver_name}"))


def generic_device_plugin(
    binaries: Path, root: Path, devices: Sequence[Mapping[str, Any]], *, flags: Sequence[str] = ()
) -> Driver:
    """github.com/squat/generic-device-plugin. A device is
    `{"name": "null", "groups": [{"count": 3, "paths": [{"path": "/dev/null"}]}]}`; its resource is
    `squat.ai/<name>`. Health and metrics listen on a free loopback port."""
    folder = _device_plugins(root)
    argv = [
        _binary(binaries, "generic-device-plugin"),
        f"--plugin-directory={folder}",
        f"--listen={LOOPBACK}:{free_ports(1)[0]}",
        *(f"--device={json.dumps(device)}" for device in devices),
        *flags,
    ]
    log = root / "generic-device-plugin.log"
    ready = _new_sockets(folder, len(devices))
    return _in_another_second(folder, process(argv, log=log, ready=ready, grace=SHORT_GRACE))


def sample_device_plugin(binaries: Path, root: Path, *, env: Mapping[str, str] | None = None) -> Driver:
    """Kubernetes' sample device plugin: `example.com/resource`, devices Dev-1 and Dev-2.

    It knows only /var/lib/kubelet, so it runs in a mount namespace where that is `root`; this needs root, or a kernel
    that lets users have namespaces."""
    folder = _device_plugins(root)
    name = "sample-device-plugin"
    argv = [sys.executable, "-m", kubelet_paths.__name__, str(root.absolute()), _binary(binaries, name)]
    ready = _new_sockets(folder, 1)
    started = process(argv, name=name, log=root / f"{name}.log", env=env, ready=ready, grace=SHORT_GRACE)
    return _in_another_second(folder, started)


@asynccontextmanager
async def _in_another_second(folder: Path, driver: Driver) -> AsyncIterator[RunningProcess]:
    """Both plugins name their sockets after the second in which they start. What was left by one that was killed in
    the same second would be in the way: the generic plugin tries the same name for ever."""
    now = time.time()
    if [name async for name in anyio.Path(folder).glob(f"*{int(now)}*")]:
        await anyio.sleep(1.0 - now % 1)
    async with driver as program:
        yield program


def _binary(binaries: Path, name: str) -> str:
    if not shutil.which(binaries / name):
        raise InvalidInput(f"{binaries} has no {name}: run `make peers`")
    return str((binaries / name).absolute())


def _registration(root: Path, instance: str, driver_name: str = "") -> tuple[Path, Path]:
    """The two directories a DRA driver needs; the test driver also wants its own one to exist."""
    registry, plugins = root.absolute() / "plugins_registry", root.absolute() / "plugins"
    _check_length(registry / f"{instance}-reg.sock")
    registry.mkdir(parents=True, exist_ok=True)
    (plugins / (driver_name or instance)).mkdir(parents=True, exist_ok=True)
    return registry, plugins


def _device_plugins(root: Path) -> Path:
    folder = root.absolute() / "device-plugins"
    _check_length(folder / "kubelet.sock")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_length(socket: Path) -> None:
    if (length := len(os.fsencode(socket))) > SOCKET_PATH_LIMIT:
        raise InvalidInput(
            f"{socket}: {length} bytes, a socket path has at most {SOCKET_PATH_LIMIT}; use a shorter root"
        )


def _cdi(root: Path, cdi_root: Path | None) -> Path:
    return (cdi_root or root / "cdi").absolute()


def _greetable(registry: Path, instance: str) -> Ready:
    return socket_accepts(registry / f"{instance}-reg.sock")


def _obeys(control: Path) -> Ready:
    """Ready when it takes commands, which it does not before all of it has started."""

    async def answers(program: RunningProcess) -> bool:
        try:
            await HookedDriver(program, control).calls()
        except DevletError:
            return False
        return True

    return answers


def _new_sockets(folder: Path, count: int) -> Ready:
    """Ready when that many sockets which were not there before accept connections."""
    before = _sockets(folder)

    async def listening(program: RunningProcess) -> bool:
        found = _sockets(folder)
        plugins = [path for path in found if found[path] != before.get(path) and path.name != "kubelet.sock"]
        return [await socket_accepts(path)(program) for path in plugins].count(True) >= count

    return listening


def _sockets(folder: Path) -> dict[Path, int]:
    """With what tells them from others of that name: a plugin that was killed a moment ago may take the same again."""
    found = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            found[path] = path.stat().st_ctime_ns
    return found
