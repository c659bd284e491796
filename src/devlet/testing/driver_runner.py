"""Run a driver, written in any language, against a node: it is told where everything is, and waited for.

    async with node.driver(["./my-plugin"], resource="vendor.com/gpu") as driver:
        await driver.kill()           # SIGKILL
        await driver.restart()        # until it is registered again

Each driver has its own flags, so words of the command may hold `{node_name}`, `{kubeconfig}`, `{root}`,
`{device_plugins}`, `{registry}`, `{plugins}` and `{cdi}`. The same is in its environment, under the names that drivers
made with Kubernetes' own library or with devlet's read: see `Paths.environment`. Its output is in a file, the end of
which is part of every error.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol, Self

import anyio

from devlet.errors import DevletError, InvalidInput, Unavailable
from devlet.kit.processes import RunningProcess, ending, log_tail, process
from devlet.runtime import kubelet_paths
from devlet.testing.faulty_wire import FaultyWire
from devlet.testing.grpc_faults import Faults
from devlet.testing.restarts import Restarts
from devlet.testing.waiting import DEADLINE

__all__ = ["DriverRunner", "Paths"]

LEAVING = 3.0  # seconds for the node to notice that a driver is gone; usually it takes far less than one


@dataclass(frozen=True, slots=True)
class Paths:
    """What a driver has to know of the node it runs on."""

    node_name: str
    root: Path
    kubeconfig: Path
    device_plugins: Path
    registry: Path
    plugins: Path
    cdi: Path

    def environment(self) -> dict[str, str]:
        """The variables that drivers read."""
        return {
            "NODE_NAME": self.node_name,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBELET_ROOT": str(self.root),
            "KUBELET_REGISTRAR_DIRECTORY_PATH": str(self.registry),
            "KUBELET_PLUGINS_DIRECTORY_PATH": str(self.plugins),
            "DEVICE_PLUGIN_PATH": str(self.device_plugins),
            "CDI_ROOT": str(self.cdi),
        }

    def fill(self, word: str | Path) -> str:
        """With the names in braces replaced. Other braces stay."""
        text = str(word)
        for name, value in asdict(self).items():
            text = text.replace(f"{{{name}}}", str(value))
        return text


class Host(Protocol):
    """The node, as far as a driver needs it."""

    root: Path

    async def driver_paths(self, name: str = "") -> Paths: ...

    async def until_registered(self, name: str, *, within: float = DEADLINE) -> None: ...

    async def until_left(self, name: str, *, within: float = DEADLINE) -> None: ...


class DriverRunner:
    """Made by `DriverRunner.start`."""

    def __init__(
        self, host: Host, called: str, waits_for: str, within: float, program: Restarts[RunningProcess]
    ) -> None:
        self._host = host
        self._called = called
        self._waits_for = waits_for
        self._within = within
        self._program = program

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        host: Host,
        command: Sequence[str | Path],
        *,
        name: str = "",
        resource: str = "",
        env: Mapping[str, str] = {},
        cwd: Path | None = None,
        wait: bool = True,
        within: float = DEADLINE,
        kubelet_paths: bool = False,
        faults: Faults | None = None,
    ) -> AsyncIterator[Self]:
        """Running and registered on entry, ended on exit with SIGTERM.

        `name` is that of a DRA driver, `resource` that of a device plugin: one of them is needed to know when it is
        registered; with `wait=False`, for a driver that is not to register, neither is. `env` comes on top.
        `kubelet_paths`: it knows only /var/lib/kubelet, so it runs where that is the node's root; this needs root, or a
        kernel that lets users have namespaces. `faults` happen to calls between it and the node (docs/faults.md)."""
        if wait and bool(name) == bool(resource):
            raise InvalidInput("say which driver it is: name= of a DRA driver, or resource= of a device plugin")
        if not command:
            raise InvalidInput("a driver needs a command")
        called = name or resource or Path(command[0]).name
        async with _paths(host, name, faults) as paths:
            _make_directories(paths, name)
            argv = [*_inside(paths.root, kubelet_paths), *map(paths.fill, command)]
            log = paths.root / f"{called.replace('/', '_')}.log"

            def make() -> AbstractAsyncContextManager[RunningProcess]:
                environment = paths.environment() | {key: paths.fill(value) for key, value in env.items()}
                return process(argv, name=called, log=log, env=environment, cwd=cwd)

            async with Restarts(make) as program:
                runner = cls(host, called, (name or resource) if wait else "", within, program)
                await runner.until_registered()
                yield runner

    @property
    def pid(self) -> int:
        return self._program.running.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._program.running.returncode

    @property
    def log_file(self) -> Path:
        return self._program.running.log

    @property
    def log(self) -> str:
        """What it has written, in all its lives."""
        return self.log_file.read_text(errors="replace")

    def send_signal(self, number: signal.Signals) -> None:
        self._program.running.send_signal(number)

    async def stop(self) -> None:
        """With SIGTERM, until it is gone and the node has noticed."""
        await self._program.stop()
        await self._until_left()

    async def kill(self) -> None:
        """With SIGKILL, until it is gone and the node has noticed."""
        await self._program.kill()
        await self._until_left()

    async def restart(self) -> None:
        """Until it is registered again. One that runs is stopped first."""
        await self.stop()
        await self._program.start()
        await self.until_registered()

    async def _until_left(self) -> None:
        """Or else a restart would take the connection of before for its own."""
        if not self._waits_for:
            return
        try:
            await self._host.until_left(self._waits_for, within=LEAVING)
        except (AssertionError, DevletError):  # another instance has taken over; or the node is down
            return

    async def until_registered(self) -> None:
        """Unavailable, with the end of its log, if it ends or takes too long."""
        if not self._waits_for:
            return
        problem = ""
        async with anyio.create_task_group() as tasks:

            async def look() -> None:
                nonlocal problem
                problem = f"it {ending(await self._program.running.wait())} before it was registered"
                tasks.cancel_scope.cancel()

            tasks.start_soon(look)
            try:
                await self._host.until_registered(self._waits_for, within=self._within)
            except AssertionError as e:
                problem = str(e)
            tasks.cancel_scope.cancel()
        if problem:
            raise Unavailable(f"{self._called}: {problem}; {log_tail(self.log_file)}")


@asynccontextmanager
async def _paths(host: Host, driver: str, faults: Faults | None) -> AsyncIterator[Paths]:
    """What the driver is told. With faults its sockets are not in the node's directories."""
    paths = await host.driver_paths(driver)
    if faults is None:
        yield paths
        return
    async with FaultyWire.between(paths.root, faults=faults) as wire:
        yield replace(
            paths,
            root=wire.root,
            registry=wire.registry,
            plugins=wire.plugins,
            device_plugins=wire.device_plugins,
        )


def _make_directories(paths: Paths, driver: str) -> None:
    """Some drivers expect theirs to be there."""
    for path in (paths.cdi, paths.registry, paths.plugins / driver):
        path.mkdir(mode=0o750, parents=True, exist_ok=True)


def _inside(root: Path, wanted: bool) -> list[str]:
    """The words before a command that is to find the root at /var/lib/kubelet."""
    return [sys.executable, "-m", kubelet_paths.__name__, os.fspath(root)] if wanted else []
