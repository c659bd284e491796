"""Run a driver in any language against a node, pass it the node's paths, and wait until it is registered.

    async with node.driver(["./my-plugin"], resource="vendor.com/gpu") as driver:
        await driver.kill()           # SIGKILL
        await driver.restart()        # until it is registered again

Each driver has its own flags, so words of the command may contain `{node_name}`, `{kubeconfig}`, `{root}`,
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

LEAVING = 3.0  # seconds for the node to notice that a driver ended; usually much less than one


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths and names that a driver needs to know of its node."""

    node_name: str
    root: Path
    kubeconfig: Path
    device_plugins: Path
    registry: Path
    plugins: Path
    cdi: Path

    def environment(self) -> dict[str, str]:
        """Return the environment variables that drivers read."""
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
        """Replace the names in braces. Other braces stay."""
        text = str(word)
        for name, value in asdict(self).items():
            text = text.replace(f"{{{name}}}", str(value))
        return text


class Host(Protocol):
    """The part of a node that a driver runner needs."""

    root: Path

    async def driver_paths(self, name: str = "") -> Paths: ...

    async def until_registered(self, name: str, *, within: float = DEADLINE) -> None: ...

    async def until_left(self, name: str, *, within: float = DEADLINE) -> None: ...


class DriverRunner:
    """A running driver. Created by `DriverRunner.start`."""

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
        """Run a driver: registered on entry, ended with SIGTERM on exit.

        `name` is the name of a DRA driver, `resource` the resource of a device plugin; one of them is needed to know
        when it is registered. With `wait=False`, for a driver that does not register, neither is needed. `env` adds
        variables. Set `kubelet_paths` for a driver that knows only /var/lib/kubelet: it then sees the node's root
        there, which needs root, or a kernel that lets users create namespaces. `faults` affect the calls between the
        driver and the node (docs/faults.md)."""
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
        """The exit status; None while the driver runs, negative for the signal that ended it."""
        return self._program.running.returncode

    @property
    def log_file(self) -> Path:
        return self._program.running.log

    @property
    def log(self) -> str:
        """The output of the driver, including earlier runs."""
        return self.log_file.read_text(errors="replace")

    def send_signal(self, number: signal.Signals) -> None:
        self._program.running.send_signal(number)

    async def stop(self) -> None:
        """Stop the driver with SIGTERM, and wait until the node has noticed."""
        await self._program.stop()
        await self._until_left()

    async def kill(self) -> None:
        """Kill the driver with SIGKILL, and wait until the node has noticed."""
        await self._program.kill()
        await self._until_left()

    async def restart(self) -> None:
        """Start the driver again, and wait until it is registered. A running driver is stopped first."""
        await self.stop()
        await self._program.start()
        await self.until_registered()

    async def _until_left(self) -> None:
        """Wait until the node closed the old connection, which a restart would otherwise take for the new one."""
        if not self._waits_for:
            return
        try:
            await self._host.until_left(self._waits_for, within=LEAVING)
        except (AssertionError, DevletError):  # another instance took over, or the node is down
            return

    async def until_registered(self) -> None:
        """Wait until the driver is registered. Raise Unavailable, with the end of its log, if it ends or takes too
        long."""
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
    """Return the paths for the driver. With faults its sockets are not in the node's directories."""
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
    """Create the directories that some drivers expect."""
    for path in (paths.cdi, paths.registry, paths.plugins / driver):
        path.mkdir(mode=0o750, parents=True, exist_ok=True)


def _inside(root: Path, wanted: bool) -> list[str]:
    """Return a prefix for a command that must find the node's root at /var/lib/kubelet."""
    return [sys.executable, "-m", kubelet_paths.__name__, os.fspath(root)] if wanted else []
