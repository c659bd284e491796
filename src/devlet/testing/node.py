"""A whole devlet node in the process of the test: API server, store, scheduler, controllers and node agent.

    async with Node.start() as node:
        async with node.driver(["my-driver", "--verbose"], name="gpu.example.com"):
            await node.create(builders.device_class(), builders.claim("training"))
            await node.create_pod("train", claim="training")
            await node.until_running("train")
            assert (await node.environment("train"))["GPU"] == "0"

Nothing of it is a fake, except that containers are not run: a test can ask what a container would have got. A node has
its state and its sockets in a directory of its own, so any number of nodes can run at the same time.

Changes take time, as in a cluster: a pod that was just created does not run yet. Wait with `until_…`, never with a
sleep.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio
import yaml

from devlet.auth import certificates, kubeconfigs
from devlet.auth.credentials import open_credentials
from devlet.auth.service_accounts import DRIVER_NAMESPACE, driver_account
from devlet.cluster.store.store import Store
from devlet.daemon import config, config_file
from devlet.daemon.config import Config
from devlet.errors import AlreadyExists, InvalidInput
from devlet.kit.clock import Clock, SystemClock
from devlet.objects.documents import Document
from devlet.objects.kinds import SERVICE_ACCOUNTS
from devlet.objects.names import driver_name
from devlet.testing.driver_runner import DriverRunner, Paths
from devlet.testing.fake_clock import FakeClock
from devlet.testing.node_api import VIEWS, NodeApi
from devlet.testing.node_life import NodeLife, beside
from devlet.testing.node_objects import NodeObjects
from devlet.testing.node_places import NodePlaces
from devlet.testing.roots import temporary_root
from devlet.testing.waiting import DEADLINE, until

__all__ = ["Node"]

CONFIGURATION = "devlet.yaml"  # below the root


class Node(NodeObjects, NodeApi, NodePlaces):
    """A node in this process, created by `Node.start`. Objects are in the namespace `default` unless another is
    given."""

    def __init__(self, root: Path, name: str, life: NodeLife) -> None:
        super().__init__(root)
        self.name = name
        self._life = life

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        root: Path | None = None,
        *,
        name: str = "node",
        control: bool = True,
        timeouts: Mapping[str, float | str] = {},
        configuration: Mapping[str, Any] = {},
        clock: Clock | None = None,
    ) -> AsyncIterator[Self]:
        """Run a node: ready on entry, stopped on exit. A `root` that is given is kept, and an earlier node on it is
        continued.

        Without `control` no scheduler and no claim controller run. `timeouts` and `configuration` are settings of the
        configuration file, by name (docs/configuration.md): `timeouts={"draCall": 1}`. The time of a `FakeClock` passes
        only in `advance`; drivers still use real time."""
        settings = dict(configuration) | ({"timeouts": dict(timeouts)} if timeouts else {})
        with _root(root) as path:
            async with beside() as tasks:
                configure = partial(_configure, path, name, control, settings)
                life = NodeLife(tasks, configure, clock or SystemClock())
                await life.start()
                try:
                    yield cls(path, name, life)
                finally:
                    with anyio.CancelScope(shield=True):
                        await life.stop()

    # Parts

    @property
    def cluster(self) -> Store:
        """The store of the embedded cluster, for use in the node's own event loop. A restart creates another one."""
        return self._life.parts.store

    @property
    def clock(self) -> Clock:
        return self._life.clock

    async def driver_kubeconfig(self, driver: str) -> Path:
        """Return a kubeconfig for a DRA driver on this node, with the permissions of a driver."""
        if errors := driver_name(driver):
            raise InvalidInput(f"driver {driver!r}: {errors[0]}")
        account = await self._account(driver_account(driver))
        write = partial(_write_kubeconfig, self.root, self.name, driver, account, self.clock.now())
        return await anyio.to_thread.run_sync(write)

    async def _account(self, name: str) -> Document:
        try:
            return await self.cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}}, DRIVER_NAMESPACE)
        except AlreadyExists:
            return await self.cluster.get(SERVICE_ACCOUNTS, name, DRIVER_NAMESPACE)

    # Start and stop

    async def stop(self) -> None:
        """Stop the node in order. Drivers and the root stay."""
        await self._life.stop()

    async def crash(self) -> None:
        """Crash the node: afterwards the disk has what it had at this moment (see `node_life`)."""
        await self._life.crash()

    async def restart(self) -> None:
        """Start the node again on the same root, with the same address and credentials. A running node is stopped
        first."""
        await self._life.stop()
        await self._life.start()

    async def advance(self, seconds: float) -> None:
        """Let time pass for a node that was started with a `FakeClock`."""
        if not isinstance(self.clock, FakeClock):
            raise InvalidInput("this node lives in real time: start it with clock=FakeClock.at_present()")
        await self.clock.advance(seconds)

    def driver(self, command: Sequence[str | Path], **options: Any) -> AbstractAsyncContextManager[DriverRunner]:
        """Run a driver in any language as a process beside this node; see `DriverRunner.start` for the options."""
        return DriverRunner.start(self, command, **options)

    async def driver_paths(self, name: str = "") -> Paths:
        """Return the paths for a driver on this node. With a name they include credentials of its own."""
        kubeconfig = await self.driver_kubeconfig(name) if name else self.kubeconfig
        return Paths(
            self.name, self.root, kubeconfig, self.device_plugins, self.plugins_registry, self.plugins, self.cdi
        )

    # State

    async def holders(self) -> dict[str, dict[str, Document]]:
        """Return the devices of each container, by pod and container."""
        return {
            each["metadata"]["name"]: {one["name"]: one for one in each["status"]["containers"]}
            for each in await self.items(f"{VIEWS}/holders")
        }

    # Waiting. Each raises AssertionError, with what was seen instead, if it takes too long

    async def until_running(self, pod: str, *, within: float = DEADLINE) -> Document:
        return await self.until_phase(pod, "Running", within=within)

    async def until_allocated(self, claim: str, *, namespace: str = "default", within: float = DEADLINE) -> list[str]:
        """Wait until the claim is allocated, and return the names of its devices."""
        found = await self.wait_for("ResourceClaim", claim, _results, namespace=namespace, within=within)
        return [each["device"] for each in _results(found)]

    async def until_registered(self, name: str, *, within: float = DEADLINE) -> None:
        """Wait until the node is connected to a DRA driver, or to the device plugin of a resource
        (`vendor.com/gpu`)."""
        try:
            await until(partial(self._state, name), lambda state: state.get("state") == "Connected", within=within)
        except AssertionError as e:
            raise AssertionError(f"{name} did not register: {e}") from None

    async def until_left(self, name: str, *, within: float = DEADLINE) -> None:
        """Wait until the node is no longer connected to it."""
        await until(partial(self._state, name), lambda state: state.get("state") != "Connected", within=within)

    async def _state(self, name: str) -> Document:
        """Return the state of a driver or device plugin; empty if the node never saw it."""
        states = await (self.plugin_states() if "/" in name else self.driver_states())
        return states.get(name.replace("/", ":"), {})

    async def until_published(self, driver: str, devices: int = 1, *, within: float = DEADLINE) -> list[Document]:
        """Wait until the slices of a driver have at least `count` devices, and return them."""

        async def published() -> list[Document]:
            slices = [each["spec"] for each in (await self.slices()).values()]
            return [one for each in slices if each["driver"] == driver for one in each.get("devices", [])]

        return await until(published, lambda found: len(found) >= devices, within=within)


def _root(given: Path | None) -> AbstractContextManager[Path]:
    return temporary_root() if given is None else nullcontext(given.absolute())


def _results(claim: Document) -> list[Document]:
    allocation = claim.get("status", {}).get("allocation") or {}
    found: list[Document] = allocation.get("devices", {}).get("results", [])
    return found


def _configure(root: Path, name: str, control: bool, settings: Mapping[str, Any]) -> Config:
    """Read the configuration from a file, so that names and values are checked as for `devlet up`."""
    header = {"apiVersion": config_file.API_VERSION, "kind": config_file.KIND}
    file = root / CONFIGURATION
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(header | dict(settings)))
    return config.load({"root": root, "node_name": name, "no_control": not control}, {}, file)


def _write_kubeconfig(root: Path, node: str, driver: str, account: Document, now: datetime) -> Path:
    [cluster] = kubeconfigs.read(root / "kubeconfig")["clusters"]
    credentials = open_credentials(root, certificates.server_names(["127.0.0.1"]), now)
    return credentials.write_driver_kubeconfig(driver, node, account, str(cluster["cluster"]["server"]), now)
