"""Creates claims with allocated devices, as a scheduler would, from the devices that the driver has published.

    async with maker.claim([Want("leds", 2)]) as claim:     # unprepared and deleted afterwards
        ...

A device is allocated to one claim at a time. Devices that share counters with it are not allocated meanwhile, and
tainted devices never are. A device that several claims may share is allocated with its own share.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from uuid import uuid4

import anyio

from devlet.cluster.client import Cluster
from devlet.errors import DevletError, PluginError
from devlet.objects.documents import Document
from devlet.objects.kinds import NAMESPACES, RESOURCE_CLAIMS
from devlet.sanity.check import CannotTell
from devlet.sanity.dra_client import Ref
from devlet.sanity.share_amounts import share_amounts

__all__ = ["ClaimMaker", "MadeClaim", "Offer", "Want"]

CLASS = "sanity.devlet.dev"
NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Offer:
    """A published device."""

    pool: str
    device: Document

    @property
    def name(self) -> str:
        name: str = self.device["name"]
        return name

    @property
    def is_shared(self) -> bool:
        return bool(self.device.get("allowMultipleAllocations"))

    @property
    def is_tainted(self) -> bool:
        return any(taint.get("effect") != "None" for taint in self.device.get("taints", ()))

    @property
    def counters(self) -> frozenset[tuple[str, str]]:
        return frozenset((self.pool, each["counterSet"]) for each in self.device.get("consumesCounters", ()))


@dataclass(frozen=True, slots=True)
class Want:
    """A request of a claim for `count` devices, or for `offers`. With `alternative`, it is an alternative."""

    request: str = "request"
    count: int = 1
    offers: Sequence[Offer] = ()
    alternative: str = ""
    shares: int = 1  # results for each of `offers`, if they are shared
    claims: int = 1  # that share them, each with as many results

    @property
    def reference(self) -> str:
        return f"{self.request}/{self.alternative}" if self.alternative else self.request


@dataclass(frozen=True, slots=True)
class MadeClaim:
    ref: Ref
    results: Sequence[Document]

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def devices(self) -> set[tuple[str, str]]:
        return {(each["pool"], each["device"]) for each in self.results}


@dataclass(slots=True)
class ClaimMaker:
    """Creates claims. `offers` returns the published devices; `unprepare` is called before a claim is deleted."""

    cluster: Cluster
    driver: Callable[[], str]
    node_name: str
    offers: Callable[[], Sequence[Offer]]
    unprepare: Callable[[Ref], Awaitable[None]]
    configs: Sequence[Document] = ()
    uids: set[str] = field(default_factory=set)  # of all claims that were created
    _held: list[Offer] = field(default_factory=list)
    _made: int = 0

    def take(self, count: int, *, shared: bool | None = None) -> list[Offer]:
        """Return free devices that can be allocated together. Raises CannotTell if there are too few."""
        chosen = self._free(count, shared)
        if len(chosen) < count:
            kind = {None: "", True: "shareable ", False: "unshareable "}[shared]
            what = "device" if count == 1 else "devices"
            raise CannotTell(f"this check needs {count} free {kind}{what}, and the driver has published {len(chosen)}")
        return chosen

    def take_up_to(self, count: int) -> list[Offer]:
        """Return up to so many free devices. Raises CannotTell if there is none."""
        return self._free(count, None) or self.take(1)

    def _free(self, count: int, shared: bool | None) -> list[Offer]:
        chosen: list[Offer] = []
        for offer in self.offers():
            if len(chosen) < count and shared in (None, offer.is_shared) and self._is_free(offer, chosen):
                chosen.append(offer)
        return chosen

    def _is_free(self, offer: Offer, chosen: Sequence[Offer]) -> bool:
        taken = [*self._held, *chosen]
        counters = frozenset().union(*(each.counters for each in taken))
        is_held = any((each.pool, each.name) == (offer.pool, offer.name) for each in taken)
        return not offer.is_tainted and not is_held and not counters & offer.counters

    @asynccontextmanager
    async def claim(
        self,
        wants: Sequence[Want] = (Want(),),
        *,
        name: str = "",
        namespace: str = NAMESPACE,
        configs: Sequence[Document] | None = None,
        more: Sequence[Document] = (),
        annotations: Mapping[str, str] | None = None,
        allocated: bool = True,
    ) -> AsyncIterator[MadeClaim]:
        """Yield an allocated claim. `configs` are those of its allocation, `more` are additional results."""
        results, taken = self._results(wants)
        async with AsyncExitStack() as stack:
            self._held += taken
            stack.callback(self._give_back, taken)
            metadata = {"name": name or self._name(), "annotations": dict(annotations or {})}
            made = await self._create(metadata, namespace, wants, more)
            ref = Ref(namespace, made["metadata"]["name"], made["metadata"]["uid"])
            self.uids.add(ref.uid)
            stack.push_async_callback(self._end, ref)
            if allocated:
                await self._allocate(made, [*results, *more], self.configs if configs is None else configs)
            yield MadeClaim(ref, results)

    async def delete(self, ref: Ref) -> None:
        """Delete a claim from the API immediately."""
        with suppress(DevletError):
            await self.cluster.delete(RESOURCE_CLAIMS, ref.name, ref.namespace)

    def config(self, parameters: Document, driver: str = "") -> Document:
        opaque = {"driver": driver or self.driver(), "parameters": parameters}
        return {"source": "FromClaim", "requests": [], "opaque": opaque}

    def _name(self) -> str:
        self._made += 1
        return f"sanity-{self._made}-{uuid4().hex[:6]}"

    def _results(self, wants: Sequence[Want]) -> tuple[list[Document], list[Offer]]:
        results: list[Document] = []
        taken: list[Offer] = []
        for want in wants:
            offers = list(want.offers)
            if not offers:
                self._held += taken
                try:
                    offers = self.take(want.count)
                finally:
                    self._give_back(taken)
            taken += offers
            results += [self._result(want, offer) for offer in offers for _ in range(want.shares)]
        return results, taken

    def _result(self, want: Want, offer: Offer) -> Document:
        result: Document = {
            "request": want.reference,
            "driver": self.driver(),
            "pool": offer.pool,
            "device": offer.name,
        }
        if offer.is_shared:
            result["shareID"] = str(uuid4())
            if amounts := share_amounts(offer.device, want.shares * want.claims):
                result["consumedCapacity"] = amounts
        return result

    async def _create(
        self, metadata: Document, namespace: str, wants: Sequence[Want], more: Sequence[Document]
    ) -> Document:
        if namespace != NAMESPACE:
            with suppress(DevletError):
                await self.cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
        others = [Want(each["request"]) for each in more if each["request"] not in {want.request for want in wants}]
        requests = [_request(want) for want in [*wants, *others]]
        document: Document = {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
        return await self.cluster.create(RESOURCE_CLAIMS, document, namespace)

    async def _allocate(self, made: Document, results: Sequence[Document], configs: Sequence[Document]) -> None:
        match = {"key": "metadata.name", "operator": "In", "values": [self.node_name]}
        made["status"] = {
            "allocation": {
                "devices": {"results": list(results), "config": list(configs)},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [match]}]},
            },
            "reservedFor": [{"resource": "pods", "name": "sanity", "uid": str(uuid4())}],
        }
        await self.cluster.update(RESOURCE_CLAIMS, made, subresource="status")

    async def _end(self, ref: Ref) -> None:
        with anyio.CancelScope(shield=True):
            with suppress(PluginError, CannotTell):
                await self.unprepare(ref)
            await self.delete(ref)

    def _give_back(self, taken: Sequence[Offer]) -> None:
        for offer in taken:
            if offer in self._held:
                self._held.remove(offer)


def _request(want: Want) -> Document:
    if want.alternative:
        alternative = {"name": want.alternative, "deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}
        return {"name": want.request, "firstAvailable": [alternative]}
    count = (len(want.offers) or want.count) * want.shares
    exactly: Document = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    shares = want.shares * want.claims
    if shares > 1 and (amounts := share_amounts(want.offers[0].device, shares)):
        exactly["capacity"] = {"requests": amounts}
    return {"name": want.request, "exactly": exactly}
