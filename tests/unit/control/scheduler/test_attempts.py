"""Attempts that free devices or reservations first."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from devlet.control.scheduler.settings import ReportTimes, SearchLimits, Settings
from devlet.errors import Conflict, Forbidden
from devlet.kit.backoff import Backoff
from devlet.objects.documents import Document
from devlet.objects.values.timestamps import format_time
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, wish
from tests.unit.control.conftest import CLAIM_STATUS, World, Write, allocation_on, raises

pytestmark = pytest.mark.anyio

ON_N1 = {"kubernetes.io/hostname": "n1"}
CONDITIONS: Document = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}


async def two_nodes(world: World) -> None:
    world.settings = Settings(reports=ReportTimes(0.05), retry=Backoff(0.01, 0.05))
    await world.add(node("n1"), node("n2"), device_class(), slice_of("n1", 2), slice_of("n2", 2))


async def pools(world: World) -> dict[str, str]:
    """Return the pool of each claim's device."""
    return {name: device.split("/")[1] for device, name in (await world.devices()).items()}


def using(*claims: str, **spec: object) -> Document:
    found = pod("train", claim=claims[0])
    found["spec"] |= spec
    found["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in claims]
    found["spec"]["containers"][0]["resources"]["claims"] = [{"name": name} for name in claims]
    return found


@pytest.mark.spec("DA-5.5a")
async def test_an_unused_claim_is_reallocated_where_the_pod_can_run(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("c"))
    await world.status("c", {"allocation": allocation_on("n2")})
    async with world.scheduling():
        await world.add(using("c", nodeSelector=ON_N1))
        assert await world.bound("train") == {"train": "n1"} and await pools(world) == {"c": "n1"}


async def test_a_pod_that_is_deleted_while_its_attempt_fails_is_no_longer_pending(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("c"))
    await world.status("c", {"allocation": allocation_on("n2")})
    gone, asked = anyio.Event(), anyio.Event()

    async def lose_all(write: Write) -> None:
        if write.what == CLAIM_STATUS and not asked.is_set():
            asked.set()
            await world.remove("train")
            await gone.wait()
            raise Forbidden("not you")

    async def hear(write: Write) -> None:
        if asked.is_set() and write.name == "next":  # so the informer has seen the deletion
            gone.set()

    world.cluster.before, world.cluster.heard = lose_all, hear
    async with world.scheduling():
        await world.add(using("c", nodeSelector=ON_N1))
        await asked.wait()
        await world.add(pod("next"))
        assert await world.bound("next")
        text = world.metrics.text()
    assert 'scheduler_pending_pods{queue="unschedulable"} 0' in text
    assert 'scheduler_schedule_attempts_total{profile="devlet",result="error"}' not in text


async def test_a_long_search_is_repeated_in_a_thread(world: World) -> None:
    await two_nodes(world)
    world.settings = replace(world.settings, search=SearchLimits(quick=1e-9))
    await world.add(claim("c", wish(allocationMode="All")))
    await world.status("c", {"allocation": allocation_on("n2")})
    async with world.scheduling():
        await world.add(using("c", nodeSelector=ON_N1))
        assert await world.bound("train") == {"train": "n1"}


@pytest.mark.spec("DA-11.15")
async def test_of_two_claims_only_the_one_that_prevents_scheduling_is_deallocated(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("a"), claim("b"))
    await world.status("a", {"allocation": allocation_on("n1", "gpu-1")})
    await world.status("b", {"allocation": allocation_on("n2")})
    async with world.scheduling():
        await world.add(using("a", "b", nodeSelector=ON_N1))
        await world.bound("train")
        results = (await world.claim("a"))["status"]["allocation"]["devices"]["results"]
        assert results[0]["device"] == "gpu-1" and await pools(world) == {"a": "n1", "b": "n1"}


@pytest.mark.spec("DA-11.15")
async def test_both_claims_are_deallocated_if_one_is_not_enough(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("a"), claim("b"))
    await world.status("a", {"allocation": allocation_on("n2", "gpu-1")})
    await world.status("b", {"allocation": allocation_on("n2")})
    async with world.scheduling():
        await world.add(using("a", "b", nodeSelector=ON_N1))
        assert await world.bound("train") == {"train": "n1"}


async def test_a_claim_in_use_is_not_deallocated(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("c"), pod("other", claim="c", nodeName="n2", schedulerName="other"))
    uid = (await world.pod("other"))["metadata"]["uid"]
    reserved = [{"resource": "pods", "name": "other", "uid": uid}]
    await world.status("c", {"allocation": allocation_on("n2"), "reservedFor": reserved})
    async with world.scheduling():
        await world.add(using("c", nodeSelector=ON_N1))
        await world.reason("train", "the devices of claim c cannot be used there")
        assert await pools(world) == {"c": "n2"}
        await world.remove("other")
        assert await world.bound("train") == {"train": "n1"}


async def test_nothing_is_deallocated_if_that_does_not_help(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("c"))
    await world.status("c", {"allocation": allocation_on("n2")})
    async with world.scheduling():
        await world.add(using("c", nodeSelector={"kubernetes.io/hostname": "n3"}))
        await world.reason("train")
        assert await pools(world) == {"c": "n2"}


async def test_an_unschedulable_pod_gives_up_what_an_interrupted_attempt_reserved(world: World) -> None:
    await two_nodes(world)
    await world.add(
        claim("first"), claim("second", wish(count=3)), claim("all", wish(count=2)), using("first", "second")
    )
    uid = (await world.pod("train"))["metadata"]["uid"]
    users = [{"resource": "pods", "name": "train", "uid": uid}]
    await world.status("first", {"allocation": allocation_on("n1"), "reservedFor": users})
    async with world.scheduling():
        await world.reason("train")
        await world.add(pod("other", claim="all", nodeSelector=ON_N1))
        assert await world.bound("other") == {"other": "n1"}
        assert "allocation" not in (await world.claim("first"))["status"]


async def test_a_conflict_is_retried(world: World) -> None:
    await two_nodes(world)
    await world.add(claim("c"))
    await world.status("c", {"allocation": allocation_on("n2")})
    world.cluster.before = raises(Conflict("modified concurrently"), "patch resourceclaims/status", times=2)
    async with world.scheduling():
        await world.add(using("c", nodeSelector=ON_N1))
        assert await world.bound("train") == {"train": "n1"}


@pytest.mark.spec("DA-5.4e")
@pytest.mark.parametrize("failed", [True, False])
async def test_devices_that_could_not_be_attached_are_replaced(world: World, failed: bool) -> None:
    """Either a condition reports the failure, or time is up."""
    await two_nodes(world)
    await world.add(claim("c"))
    stamp = format_time(datetime.now(UTC) - timedelta(seconds=0 if failed else 1000))
    status: Document = {"allocation": {**allocation_on("n2", "gpu-0"), "allocationTimestamp": stamp}}
    status["allocation"]["devices"]["results"][0] |= CONDITIONS
    if failed:
        condition = {"type": "broken", "status": "True", "reason": "R", "message": "", "lastTransitionTime": stamp}
        status["devices"] = [{"driver": DRIVER, "pool": "n2", "device": "gpu-0", "conditions": [condition]}]
    await world.status("c", status)
    async with world.scheduling():
        await world.add(using("c"))
        await world.bound("train")
        found = (await world.claim("c"))["status"]
        assert "bindingConditions" not in found["allocation"]["devices"]["results"][0] and "devices" not in found
