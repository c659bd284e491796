"""Unusual behavior of a cluster: lost answers, late events, names that are reused.

Whatever happens, no device is allocated twice, no pod loses what it uses, and every pod that can run does.
"""

from dataclasses import replace

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.errors import Conflict, Unavailable
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.statuses import error_from, failure
from devlet.testing.waiting import until
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template
from tests.unit.control.conftest import BINDING, CLAIM_STATUS, World, Write, allocation_on

pytestmark = pytest.mark.anyio


def server_error() -> Exception:
    """Return the error of a kube-apiserver that does not know whether its storage has done a write."""
    return error_from(failure(500, "InternalError", "etcdserver: request timed out"))


class Once:
    """Lose the answer to the first write of a kind."""

    def __init__(self, what: str, name: str) -> None:
        self.what, self.name, self.done = what, name, False

    async def __call__(self, write: Write) -> None:
        if (write.what, write.name) == (self.what, self.name) and not self.done:
            self.done = True
            raise server_error()


async def test_a_binding_with_an_unknown_result_keeps_its_claim(world: World) -> None:
    await world.add(device_class(), node("n1"), slice_of("n1", 1), claim("ca"), claim("cb"))
    world.cluster.after = Once(BINDING, "a")
    async with world.scheduling():
        await world.add(pod("a", claim="ca"))
        await world.bound("a")
        await world.add(pod("b", claim="cb"))
        await world.reason("b", "in use")
        assert await world.devices() == {f"{DRIVER}/n1/gpu-0": "ca"}


async def test_a_claim_is_read_after_a_write_with_an_unknown_result(world: World) -> None:
    await world.add(device_class(), node("n1"), slice_of("n1", 1), claim("ca"), claim("cb"))
    world.cluster.after = Once(CLAIM_STATUS, "ca")
    async with world.scheduling():
        await world.add(pod("a", claim="ca"))
        await world.add(pod("b", claim="cb"))
        await world.bound("a")
        await world.reason("b", "in use")
        assert await world.devices() == {f"{DRIVER}/n1/gpu-0": "ca"}


async def test_a_pod_is_not_retried_before_the_result_of_its_binding_is_known(world: World) -> None:
    await world.add(device_class(), node("n1", pods="1"), slice_of("n1", 1), claim("ca"))
    late, unknown = anyio.Event(), 3

    async def reading(write: Write) -> None:
        nonlocal unknown
        if write.what == "get pods" and unknown:
            unknown -= 1
            raise Unavailable("the server is being started")

    async def heard(write: Write) -> None:
        if write.what == "watch pods" and write.name == "a" and write.document["spec"].get("nodeName"):
            await late.wait()

    world.cluster.after, world.cluster.reading, world.cluster.heard = Once(BINDING, "a"), reading, heard
    async with world.scheduling():
        await world.add(pod("a", claim="ca"), pod("x", nodeSelector={"kubernetes.io/hostname": "n1"}))
        await world.bound("a")
        await world.reason("x", "Too many pods")
        late.set()
        assert (await world.claim("ca"))["status"]["reservedFor"][0]["name"] == "a"
        assert await world.devices() == {f"{DRIVER}/n1/gpu-0": "ca"}


async def test_the_late_deletion_of_a_claim_does_not_affect_a_new_one_of_its_name(world: World) -> None:
    await world.add(device_class(), node("n1"), slice_of("n1", 1), claim("c"), claim("d"))
    late, seen, replaced = anyio.Event(), 0, False

    async def before(write: Write) -> None:
        nonlocal replaced
        if write.what == "patch resourceclaims" and write.name == "c" and not replaced:
            replaced = True
            await world.store.delete(kinds.RESOURCE_CLAIMS, "c", "default")
            await world.store.create(kinds.RESOURCE_CLAIMS, claim("c"), "default")

    async def heard(write: Write) -> None:
        nonlocal seen
        if replaced and (write.what, write.name) == ("watch resourceclaims", "c"):
            seen += 1
            if seen > 1:  # only the deletion of the first claim was seen
                await late.wait()

    world.cluster.before, world.cluster.heard = before, heard
    async with world.scheduling():
        await world.add(pod("a", claim="c"))
        await until(world.devices)
        await world.add(pod("b", claim="d"))
        await world.reason("b", "in use")
        late.set()
        await world.bound("a")
        assert await world.devices() == {f"{DRIVER}/n1/gpu-0": "c"}


async def test_a_placed_pod_gets_devices_again_when_its_claim_is_deallocated(world: World) -> None:
    await world.add(device_class(), node("n1"), slice_of("n1", 1), claim("c"))
    async with world.scheduling():
        await world.add(pod("a", claim="c"))
        await world.bound("a")
        done = MergePatch({"status": {"phase": "Succeeded"}})
        await world.store.patch(kinds.PODS, "a", done, "default", subresource="status")
        await world.add(pod("b", claim="c", nodeName="n1"))

        async def users() -> list[str]:
            return [each["name"] for each in (await world.claim("c"))["status"].get("reservedFor") or ()]

        assert await until(users, lambda found: found == ["b"])


async def test_a_pod_that_holds_a_claim_is_of_another_kind_than_one_that_does_not(world: World) -> None:
    await world.add(device_class(), node("n1"), node("n2"), slice_of("n1", 1), slice_of("n2", 1), claim("c"))
    await world.add(pod("full", requests={"cpu": "4"}, nodeName="n1"))
    await world.add(pod("first", claim="c", requests={"cpu": "1"}), pod("second", claim="c", requests={"cpu": "1"}))
    uid = (await world.pod("second"))["metadata"]["uid"]
    reserved = [{"resource": "pods", "name": "second", "uid": uid}]
    await world.status("c", {"allocation": allocation_on("n1"), "reservedFor": reserved})
    async with world.scheduling():
        assert await world.bound("first", "second") == {"first": "n2", "second": "n2"}


async def test_a_claim_whose_devices_failed_is_not_reserved_repeatedly(world: World) -> None:
    device: Document = {"name": "gpu-0", "bindsToNode": True, "bindingConditions": ["ready"]}
    device["bindingFailureConditions"] = ["bad"]
    await world.add(device_class(), node("n1"), slice_of("n1", [device]), claim("c"))

    def said(type_: str) -> Document:
        condition = {"type": type_, "status": "True", "reason": "Said", "message": ""}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        return {"devices": [{"driver": DRIVER, "pool": "n1", "device": "gpu-0", "conditions": [condition]}]}

    async with world.scheduling():
        await world.add(pod("a", claim="c"))
        await until(lambda: world.events("BindingConditionsPending"))
        await world.status("c", said("ready"))
        await world.bound("a")
        await world.status("c", said("bad"))
        world.cluster.writes.clear()
        await world.add(pod("b", claim="c"))
        await world.reason("b", "resourceclaim c is not usable: device binding failed")
        assert CLAIM_STATUS not in world.cluster.writes


async def test_claims_of_pods_placed_by_other_schedulers_are_allocated_if_all_placed_is_set(world: World) -> None:
    await world.add(device_class(), node("n1"), slice_of("n1", 1), template("one"))
    world.settings = replace(world.settings, all_placed=True)
    async with world.scheduling():
        await world.add(pod("placed", template="one", nodeName="n1", schedulerName="other"))
        assert list(await until(world.devices)) == [f"{DRIVER}/n1/gpu-0"]


async def test_a_late_answer_for_one_pod_does_not_end_the_decision_of_another(world: World) -> None:
    """a cannot be bound and gives x back. Before that is answered, b gets x, and c needs the same device."""
    await world.add(device_class(), node("n1"), slice_of("n1", 1), claim("x"), claim("z"))
    refused, given_back, b_is_written, all_are_there = False, anyio.Event(), anyio.Event(), anyio.Event()

    async def before(write: Write) -> None:
        nonlocal refused
        if write.what == BINDING and write.name == "a" and not refused:
            refused = True
            raise Conflict("refused")
        if write.what == CLAIM_STATUS and write.name == "x" and given_back.is_set():
            b_is_written.set()
            await anyio.sleep(0.1)  # under way while c is attempted

    async def after(write: Write) -> None:
        if write.what == CLAIM_STATUS and write.name == "x" and refused and not given_back.is_set():
            given_back.set()
            await world.add(pod("b", claim="x"))
            await b_is_written.wait()
            await world.add(pod("c", claim="z"))
            all_are_there.set()

    world.cluster.before, world.cluster.after = before, after
    async with world.scheduling():
        await world.add(pod("a", claim="x"))
        await all_are_there.wait()
        await world.bound("b")
        await world.reason("c", "in use")
        assert await world.devices() == {f"{DRIVER}/n1/gpu-0": "x"}


async def test_a_pod_is_not_bound_to_the_node_of_a_previous_allocation(world: World) -> None:
    await world.add(device_class(), node("n1"), node("n2"), slice_of("n1", 1), slice_of("n2", 1), claim("x"))
    await world.status("x", {"allocation": allocation_on("n1")})
    moved = False

    async def before(write: Write) -> None:
        nonlocal moved
        if write.what == CLAIM_STATUS and not moved:
            moved = True
            await world.status("x", {"allocation": None})
            await world.status("x", {"allocation": allocation_on("n2")})

    world.cluster.before = before
    async with world.scheduling():
        await world.add(pod("p", claim="x"))
        assert await world.bound("p") == {"p": "n2"}


async def _users(world: World, name: str) -> int:
    return len((await world.claim(name)).get("status", {}).get("reservedFor") or ())


async def test_pods_that_share_a_claim_do_not_block_each_other_after_a_crash(world: World) -> None:
    """Both have reservations and are not bound when the scheduler stops; then the node is deleted."""
    await world.add(device_class(), node("n1"), node("n2"), slice_of("n1", 1), claim("x"))
    never = anyio.Event()

    async def before(write: Write) -> None:
        if write.what == BINDING:
            await never.wait()

    world.cluster.before = before
    async with world.scheduling():
        await world.add(pod("a", claim="x"), pod("b", claim="x"))
        await until(lambda: _users(world, "x"), lambda found: found == 2)
    world.cluster.before = Once("nothing", "")
    await world.store.delete(kinds.NODES, "n1")
    await world.change(slice_of("n1", []))
    await world.add(slice_of("n2", 1))
    async with world.scheduling():
        assert await world.bound("a", "b") == {"a": "n2", "b": "n2"}


async def test_devices_that_failed_while_no_scheduler_ran_are_given_back_by_all_pods(world: World) -> None:
    device: Document = {"name": "gpu-0", "bindsToNode": True, "bindingConditions": ["ready"]}
    device["bindingFailureConditions"] = ["bad"]
    await world.add(device_class(), node("n1"), slice_of("n1", [device]), claim("x"))
    async with world.scheduling():
        await world.add(pod("a", claim="x"), pod("b", claim="x"))
        await until(lambda: _users(world, "x"), lambda found: found == 2)
    bad = {"type": "bad", "status": "True", "reason": "Broken", "message": "m"}
    bad["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    await world.status("x", {"devices": [{"driver": DRIVER, "pool": "n1", "device": "gpu-0", "conditions": [bad]}]})
    await world.change(slice_of("n1", [{"name": "gpu-1"}]))
    async with world.scheduling():
        assert await world.bound("a", "b") == {"a": "n1", "b": "n1"}
    assert await world.devices() == {f"{DRIVER}/n1/gpu-1": "x"}


async def test_no_pod_is_scheduled_while_a_copy_is_outdated(world: World) -> None:
    """After an outage, the rules are watched again later than the pods."""
    await world.add(device_class(), node("n1"), slice_of("n1", 1), claim("c"))
    broken, tries = anyio.Event(), 0
    watch = "watch devicetaintrules"

    async def heard(write: Write) -> None:
        if write.what == watch and not broken.is_set():
            broken.set()
            raise Unavailable("connection lost")

    async def watching(write: Write) -> None:
        nonlocal tries
        if write.what == watch and broken.is_set():
            tries += 1
            if tries < 3:
                raise Unavailable("not yet")
            assert "nodeName" not in (await world.pod("p"))["spec"]

    world.cluster.heard, world.cluster.watching = heard, watching
    async with world.scheduling():
        taint = {"key": "broken", "effect": "NoSchedule"}
        rule: Document = {"kind": "DeviceTaintRule", "metadata": {"name": "r"}}
        await world.add(rule | {"spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}})
        await broken.wait()
        await world.add(pod("p", claim="c"))
        await world.reason("p", "tainted")
    assert tries == 3


async def test_a_claim_for_extended_resources_is_removed_if_the_answer_to_its_creation_was_lost(world: World) -> None:
    await world.add(device_class(extended="example.com/gpu"), node("n1"), slice_of("n1", 1))
    lost = False

    async def after(write: Write) -> None:
        nonlocal lost
        if write.what == "create resourceclaims" and not lost:
            lost = True
            raise server_error()

    async def heard(write: Write) -> None:
        if write.what == "watch resourceclaims" and not write.document.get("status", {}).get("allocation"):
            await anyio.sleep(0.3)  # seen after another one was created

    world.cluster.after, world.cluster.heard = after, heard
    async with world.scheduling():
        await world.add(pod("p", requests={"example.com/gpu": "1"}))
        await world.bound("p")

        async def names() -> set[str]:
            return {each["metadata"]["name"] for each in await world.claims()}

        used = (await world.pod("p"))["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        await until(names, lambda found: found == {used})
