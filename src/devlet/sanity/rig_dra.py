"""A DRA driver under test: its process, its own kubelet and API server, and what can be done to all three.

The root is laid out like /var/lib/kubelet, with `plugins_registry` and `plugins`, and with `cdi` and `api`, which has
the cluster. `stand_dra` starts the driver, or attaches to a running one.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio

from devlet.cluster.client import Cluster
from devlet.errors import NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.objects.selectors import nodes as node_selectors
from devlet.sanity import rig
from devlet.sanity.api_server import ApiServer
from devlet.sanity.cdi_directories import CdiDirectories
from devlet.sanity.check import CannotTell
from devlet.sanity.claim_maker import ClaimMaker, MadeClaim, Offer, Want
from devlet.sanity.dra_client import DraClient, Ref
from devlet.sanity.dra_kubelet import DraKubelet, Greeting
from devlet.sanity.driver import Driver
from devlet.sanity.rig import Rig, until
from devlet.sanity.slice_history import SliceHistory

__all__ = ["DraPlaces", "DraRig", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings(rig.Settings):
    """Times in seconds. `answer` is the kubelet's time limit for a call. `repair` allows for Kubernetes' own helper,
    which restores a deleted slice after 30 seconds, but not within 60 seconds of its own write."""

    answer: float = 45.0
    repair: float = 100.0
    health: float = 40.0  # to wait for repeated health


@dataclass(frozen=True, slots=True)
class DraPlaces:
    """The directories of a driver, and its cluster."""

    root: Path
    registry: Path
    plugins: Path
    cdi: Path
    kubeconfig: Path
    node: str

    @staticmethod
    def below(root: Path, node: str) -> "DraPlaces":
        return DraPlaces(
            root, root / "plugins_registry", root / "plugins", root / "cdi", root / "api" / "kubeconfig", node
        )

    @property
    def words(self) -> Mapping[str, Path]:
        """The values of the placeholders in commands."""
        return {
            "root": self.root,
            "registry": self.registry,
            "plugins": self.plugins,
            "cdi": self.cdi,
            "kubeconfig": self.kubeconfig,
            "node": Path(self.node),
        }


@dataclass(slots=True, kw_only=True)
class DraRig(Rig):
    first_check: ClassVar[str] = "DRA-REG-1"

    places: DraPlaces
    kubelet: DraKubelet
    api: ApiServer
    history: SliceHistory
    settings: Settings
    cdi: CdiDirectories
    second: Driver | None = None  # another instance, not started
    configs: Sequence[Document] = ()  # parameters that the driver takes
    _maker: ClaimMaker | None = None

    @property
    def patience(self) -> float:
        return 4 * self.settings.wait + self.settings.stop + self.settings.repair

    @property
    def words(self) -> Mapping[str, Path]:
        return self.places.words

    @property
    def is_registered(self) -> bool:
        return bool(self.kubelet.drivers)

    @property
    def refusals(self) -> Sequence[str]:
        return [each.problem for each in self.kubelet.greetings if each.problem]

    def need_driver(self) -> None:
        if not self.kubelet.drivers:
            raise CannotTell(self.missing)

    @property
    def cluster(self) -> Cluster:
        return self.api.cluster

    # Registration

    @property
    def greetings(self) -> list[Greeting]:
        """The registration attempts. Raises CannotTell if there is none."""
        if not self.kubelet.greetings:
            raise CannotTell(self.missing)
        return list(self.kubelet.greetings)

    @property
    def greeting(self) -> Greeting:
        """The last attempt in which a driver introduced itself."""
        introduced = [each for each in self.greetings if each.type or each.name or each.versions]
        if not introduced:
            raise CannotTell(self.missing)
        return next((each for each in reversed(introduced) if not each.adopted), introduced[-1])

    @property
    def client(self) -> DraClient:
        """The client of the driver that registered last. Raises CannotTell if there is none."""
        self.need_driver()
        return list(self.kubelet.drivers.values())[-1][1]

    @property
    def name(self) -> str:
        return self.greeting.name

    async def ready_again(self, after: int, drivers: int = 1) -> bool:
        """Wait until so many drivers are registered, one of them after the first `after` attempts.

        A driver that exits is restarted, as its pod would be. Returns False if the time is up."""
        with anyio.move_on_after(self.settings.wait):
            while len(self.kubelet.drivers) < drivers or not self._registered_since(after):
                await self.revive()
                await self.kubelet.until(self.kubelet.taken + 1, 0.1)
            return True
        return False

    def _registered_since(self, after: int) -> bool:
        return any(each.is_registered for each in self.kubelet.greetings.since(after))

    async def restart(self) -> bool:
        """Kill and restart the driver. Return whether it was registered again."""
        before = self.kubelet.count
        await self.driver.kill()
        await self.driver.start()
        return await self.ready_again(before)

    async def found_in_registry(self) -> bool:
        """Wait until there is a socket in the registry directory. Return False if the time is up."""
        registry = self.places.registry
        return await until(lambda: any(path.is_socket() for path in registry.rglob("*")), self.settings.wait)

    async def restart_kubelet(self) -> None:
        await self.kubelet.stop()
        await self.kubelet.start()

    # Slices

    @property
    def published(self) -> list[Document]:
        return [each for each in self.history.of(self.name) if self.is_its(each)]

    def is_its(self, slice: Document) -> bool:
        """Return whether the driver under test wrote the slice, and not the same driver on another node."""
        spec = slice["spec"]
        is_here = self.api.is_ours or spec.get("nodeName") in (None, "", self.places.node)
        return is_here and spec["driver"] == self.name

    def need_slices(self) -> None:
        """Raise CannotTell if the driver has published no slices."""
        if not self.published:
            raise CannotTell("the driver has published no slices: see DRA-SLICE-1")

    @property
    def slices(self) -> list[Document]:
        """The slices of the driver. Raises CannotTell if there are none."""
        self.need_slices()
        return self.published

    def pools(self) -> dict[str, list[Document]]:
        """Return the slices of the newest generation by pool."""
        found: dict[str, list[Document]] = {}
        for each in self.slices:
            found.setdefault(each["spec"]["pool"]["name"], []).append(each)
        newest = {name: max(_generation(each) for each in pool) for name, pool in found.items()}
        return {name: [each for each in pool if _generation(each) == newest[name]] for name, pool in found.items()}

    def offers(self) -> list[Offer]:
        return [
            Offer(pool, device)
            for pool, slices in self.pools().items()
            for each in slices
            for device in each["spec"].get("devices", ())
            if self.api.is_ours or self._is_here(each["spec"], device)
        ]

    def _is_here(self, spec: Document, device: Document) -> bool:
        place = device if spec.get("perDeviceNodeSelection") else spec
        if selector := place.get("nodeSelector"):
            return node_selectors.parse(selector).matches(self.api.node)
        return bool(place.get("allNodes")) or place.get("nodeName") == self.places.node

    def versions(self) -> dict[str, str]:
        """Return the resource versions of its slices by name."""
        return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in self.published}

    async def published_again(self, within: float | None = None) -> bool:
        limit = self.settings.repair if within is None else within
        return await self.history.until(lambda: bool(self.published), limit)

    def of_node(self) -> list[Document]:
        """Return the slices that only this driver may write. Raises CannotTell if there are none."""
        found = [each for each in self.slices if self.api.is_ours or each["spec"].get("nodeName")]
        if not found:
            raise CannotTell(f"the driver has no slice that belongs to node {self.places.node} alone")
        return found

    async def delete_slices(self) -> None:
        for each in self.of_node():
            with suppress(NotFound):  # the driver may delete it itself when it misses the first
                await self.cluster.delete(RESOURCE_SLICES, each["metadata"]["name"])

    # Claims

    @property
    def maker(self) -> ClaimMaker:
        if self._maker is None:
            self._maker = ClaimMaker(
                self.cluster, lambda: self.name, self.places.node, self.offers, self._unprepare, self._given()
            )
            self.cdi.claims = lambda: self.maker.uids
        return self._maker

    def claim(self, *wants: Want, **how: object) -> AbstractAsyncContextManager[MadeClaim]:
        return self.maker.claim(wants or (Want(),), **how)  # type: ignore[arg-type]

    @asynccontextmanager
    async def claims(self, count: int) -> AsyncIterator[list[MadeClaim]]:
        """Each with a device of its own."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.claim()) for _ in range(count)]

    async def _unprepare(self, ref: Ref) -> None:
        await self.client.unprepare(ref)

    def _given(self) -> list[Document]:
        return [
            {"source": "FromClaim", "requests": [], "opaque": {"driver": self.name, "parameters": each}}
            for each in self.configs
        ]

    # The process

    def leftovers(self) -> list[Path]:
        """Return the sockets of drivers, and everything in the registry directory."""
        sockets = [path for path in self.places.plugins.rglob("*") if path.is_socket()]
        return sorted([*self.places.registry.rglob("*"), *sockets])

    async def start_second(self) -> None:
        """Start a second instance beside the first. Raises CannotTell if there is no command for it."""
        if self.second is None:
            raise CannotTell("there is no command for a second instance: use {instance}, or give one with --second")
        await self.second.start()


def _generation(slice: Document) -> int:
    generation: int = slice["spec"]["pool"]["generation"]
    return generation
