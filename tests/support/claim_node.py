"""A node as a process, with claims whose devices the test gives out, as a scheduler would.

    async with ClaimNode(root) as node, FakeDraDriver(root) as driver:
        await node.add_claim("gpu", given(driver.name))
        await node.add_pod(claim_pod("train", "gpu"))
        await node.until_phase("train", "Running")
        assert "CLAIM_gpu" in await node.environment("train")

A pod is made without a node, its claims are reserved for it, and then it is bound: the node never sees it without them,
unless a test wants that (`create`, with `on_node`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devlet.node.claims.manager import CHECKPOINT
from devlet.objects.documents import Document
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimRef
from devlet.runtime.none import EXIT_CODE
from devlet.state import claim_checkpoint
from devlet.state.claim_entry import ClaimEntry, by_name
from devlet.testing import builders
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.node_api import MERGE, PODS, SLICES
from devlet.testing.node_process import NODE, NodeProcess
from devlet.testing.waiting import until

__all__ = ["CLAIMS", "NOT_PREPARED", "SLICES", "ClaimNode", "claim_pod", "container", "given", "on_node"]

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
NOT_PREPARED = "FailedPrepareDynamicResources"


def given(driver: str, device: str = "", request: str = "req", *, share: str = "") -> Document:
    """One device of an allocation: by default the one that `FakeDraDriver` prepares by default, `dev-<claim>`. A
    `request` may be `request/subrequest`."""
    found = {"request": request, "driver": driver, "pool": "pool", "device": device}
    return {**found, **({"shareID": share} if share else {})}


def container(name: str, claims: Sequence[str], **requests: str) -> Document:
    """With these entries of the pod's claims; with `requests`, only with that request of an entry."""
    return builders.container(name, claims=[*claims, *({"name": entry, "request": r} for entry, r in requests.items())])


def claim_pod(name: str, *claims: str, restart: str = "Always", **more: Any) -> Document:
    """Make a pod without a node whose container uses these claims. Each is an entry of its own name."""
    return builders.pod(name, claims={claim: claim for claim in claims}, restart=restart, **more)


def on_node(document: Document) -> Document:
    """The pod, bound from the beginning."""
    return {**document, "spec": {**document["spec"], "nodeName": NODE}}


class ClaimNode(NodeProcess):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._allocations: dict[str, list[Document]] = {}  # by claim

    # What a scheduler does

    async def add_claim(
        self, name: str, *results: Document, requests: Sequence[str] = (), owner: Document | None = None
    ) -> str:
        """Its UID. With these devices; without any it is not allocated. Its requests are those of the devices."""
        named = [each["request"] for each in results] or requests or ["req"]
        document: Document = {
            "kind": "ResourceClaim",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name, "ownerReferences": [owner] if owner else []},
            "spec": {"devices": {"requests": _requests(named)}},
        }
        uid: str = (await self.call("POST", CLAIMS, document))["metadata"]["uid"]
        if results:
            await self.allocate(name, *results)
        return uid

    async def allocate(self, claim: str, *results: Document, selector: Document | None = None) -> None:
        """Give the claim these devices, on the nodes that the term `selector` matches. Without devices, deallocate it
        and remove its reservations."""
        where = {"nodeSelector": {"nodeSelectorTerms": [selector]}} if selector else {}
        self._allocations.pop(claim, None)
        if results:
            named = [{**each, "device": each["device"] or f"dev-{claim}"} for each in results]
            self._allocations[claim] = named
            await self.set_status(claim, {"allocation": {"devices": {"results": named}, **where}})
        else:
            await self.set_status(claim, {"allocation": None, "reservedFor": None})

    async def reserve(self, claim: str, *consumers: Document) -> None:
        """For pods, or for other consumers as they stand in the status; beside those that it is reserved for."""
        status = (await self.call("GET", f"{CLAIMS}/{claim}")).get("status", {})
        users = [_consumer(each) if "kind" in each else each for each in consumers]
        await self.set_status(claim, {"reservedFor": status.get("reservedFor", []) + users})

    async def set_status(self, claim: str, status: Document) -> None:
        await self.call("PATCH", f"{CLAIMS}/{claim}/status", {"status": status}, MERGE)

    async def add_pod(
        self, document: Document, templates: Mapping[str, Sequence[Document]] = {}, *, extended: Document | None = None
    ) -> str:
        """Its UID. `templates` are the devices of claims that are made for it, by entry; an entry with a template that
        is not there needs no claim. `extended` is the status of the claim behind its extended resources."""
        made = await self.call("POST", PODS, document)
        generated: list[Document] = []
        for entry in document["spec"].get("resourceClaims", []):
            claim = entry.get("resourceClaimName", "")
            if not claim:
                claim = await self._generate(made, entry["name"], templates.get(entry["name"], ()))
                generated.append({"name": entry["name"], **({"resourceClaimName": claim} if claim else {})})
            if claim:
                await self.reserve(claim, made)
        if extended:
            await self.reserve(extended["resourceClaimName"], made)
        status = {"resourceClaimStatuses": generated or None, "extendedResourceClaimStatus": extended}
        await self.call("PATCH", f"{PODS}/{made['metadata']['name']}/status", {"status": status}, MERGE)
        await self.bind(made["metadata"]["name"])
        uid: str = made["metadata"]["uid"]
        return uid

    async def _generate(self, pod: Document, entry: str, results: Sequence[Document]) -> str:
        if not results:
            return ""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
        await self.add_claim(f"{name}-{entry}", *results, owner=owner)
        return f"{name}-{entry}"

    async def bind(self, name: str) -> None:
        binding = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": name}, "target": {"name": NODE}}
        await self.call("POST", f"{PODS}/{name}/binding", binding)

    async def run_pod(self, name: str, driver: str, *more: str, device: str = "") -> Document:
        """Have a pod run that has a claim of the same name, with a device of each of these drivers."""
        await self.submit(name, *(given(each, device) for each in (driver, *more)))
        return await self.until_phase(name, "Running")

    async def submit(self, name: str, *devices: Document) -> str:
        """Return the UID of a claim with these devices. A pod of the same name uses it from now on."""
        uid = await self.add_claim(name, *devices)
        await self.add_pod(claim_pod(name, name, restart="Never"))
        return uid

    def allocated(self, driver: str) -> Callable[[ClaimRef], Sequence[PreparedDevice] | None]:
        """For `FakeDraDriver.handler`: answer with what this has allocated, as real drivers do. A single device is for
        all requests, as by default."""

        def answer(asked: ClaimRef) -> Sequence[PreparedDevice] | None:
            results = [each for each in self._allocations.get(asked.name, ()) if each["driver"] == driver]
            return [_prepared(each, len(results)) for each in results] or None

        return answer

    # Ends of pods

    async def finish(self, name: str, code: int = 0) -> None:
        """Its containers end by themselves."""
        await self.annotate(name, EXIT_CODE, str(code))

    async def ask_to_delete(self, name: str, *, force: bool = False) -> None:
        """And do not wait. `force`: the object is gone at once."""
        await self.call("DELETE", f"{PODS}/{name}{'?gracePeriodSeconds=0' if force else ''}")

    # What is there

    async def failures(self, pod: str, reason: str = NOT_PREPARED) -> list[str]:
        """What events of the reason say of the pod, each text once."""
        return [each["message"] for each in await self.events(reason) if each["involvedObject"]["name"] == pod]

    def claim_checkpoint(self) -> Mapping[str, ClaimEntry]:
        """As it is on disk, by name."""
        blob = (self.root / CHECKPOINT).read_bytes()
        return {name: entry for (_, name), entry in by_name(claim_checkpoint.decode(blob).claims or ()).items()}

    # Waiting

    async def until_connected(self, *drivers: FakeDraDriver) -> None:
        """Wait until the drivers can be called."""
        await self.until_up(*(each.name for each in drivers))

    async def until_up(self, *drivers: str) -> None:
        """Wait until the drivers of these names can be called."""

        async def connected() -> set[str]:
            return {name for name, each in (await self.driver_states()).items() if each["state"] == "Connected"}

        await until(connected, set(drivers).issubset)

    async def until_missing(self, *drivers: FakeDraDriver) -> None:
        """Until no instance of the drivers is registered."""
        names = {each.name for each in drivers}

        async def registered() -> set[str]:
            return {name for name, each in (await self.driver_states()).items() if each["state"] != "Missing"}

        await until(registered, lambda found: not found & names)

    async def until_failed(self, pod: str, text: str, reason: str = NOT_PREPARED) -> str:
        """The event's message that has this text."""

        async def found() -> list[str]:
            return [each for each in await self.failures(pod, reason) if text in each]

        return (await until(found))[0]

    async def until_forgotten(self, *claims: str) -> None:
        """Until nothing of the claims is left to be unprepared, in memory and on disk."""

        async def left() -> set[str]:
            return (self.claim_checkpoint().keys() | (await self.prepared()).keys()) & set(claims)

        await until(left, lambda names: not names)


def _prepared(result: Document, count: int) -> PreparedDevice:
    requests = (result["request"],) if count > 1 else None
    return PreparedDevice(result["pool"], result["device"], result.get("shareID"), requests)


def _requests(names: Sequence[str]) -> list[Document]:
    subrequests: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        main, _, sub = name.partition("/")
        subrequests.setdefault(main, []).extend([sub] if sub else [])
    return [_request(main, subs) for main, subs in subrequests.items()]


def _request(name: str, subrequests: Sequence[str]) -> Document:
    if not subrequests:
        return {"name": name, "exactly": {"deviceClassName": "any"}}
    return {"name": name, "firstAvailable": [{"name": sub, "deviceClassName": "any"} for sub in subrequests]}


def _consumer(pod: Document) -> Document:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
