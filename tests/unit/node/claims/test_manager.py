import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from devlet.errors import DevletError, NotPrepared, PluginRefused, PluginUnavailable, Unavailable
from devlet.kit import request_ids
from devlet.kit.parts import running
from devlet.node.claims.manager import CHECKPOINT, ClaimManager, Settings
from devlet.node.claims.metrics import claims_in_use
from devlet.node.claims.records import ClaimState
from devlet.node.reports import Report
from devlet.objects.identifiers import DeviceIdentity, DeviceName, PodUID, PoolName
from devlet.objects.types.claim import AllocationResult, DeviceAllocation, PreparedDevice, ResourceClaim
from devlet.plugins.dra import Service
from devlet.state import claim_checkpoint
from devlet.state.checkpoint_file import CheckpointFile
from devlet.state.claim_entry import ClaimEntry
from devlet.testing.fake_clock import FakeClock
from devlet.testing.waiting import deadline
from tests.support.claim_specimens import GPU, NIC, claim, device, key, pod
from tests.support.scripted_drivers import Claims, ScriptedDriver, ScriptedDrivers

pytestmark = pytest.mark.anyio

POD = PodUID("pod-1")


class File(CheckpointFile):
    """Counts writes, and fails on request."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.writes = 0
        self.full = False

    def write(self, content: bytes) -> None:
        if self.full:
            raise Unavailable(f"{self.path} cannot be written: No space left on device")
        self.writes += 1
        super().write(content)


class Bench:
    """What a claim manager needs, and what it reported."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.claims = Claims(claim())
        self.gpu, self.nic = ScriptedDriver(GPU, claims=self.claims), ScriptedDriver(NIC, claims=self.claims)
        self.drivers = ScriptedDrivers(self.gpu, self.nic)
        self.file = File(root / CHECKPOINT)
        self.observed: list[tuple[str, bool]] = []
        self.watched: dict[str, tuple[Any, ...]] = {}
        self.woken: list[str] = []
        self.misplaced: dict[str, str] = {}
        self.reports: list[Report] = []

    @asynccontextmanager
    async def manager(self, settings: Settings = Settings()) -> AsyncIterator[ClaimManager]:
        made = ClaimManager(
            self.root,
            self.drivers,
            self.claims.read,
            self.clock,
            settings,
            file=self.file,
            report=self.reports.append,
            observe=lambda name, seconds, failed: self.observed.append((name, failed)),
            watch=lambda uid, keys: self.watched.__setitem__(uid, tuple(keys)),
            wake=self.woken.append,
            misplaced=lambda claim: self.misplaced.get(claim.name, ""),
        )
        async with running(made.run):
            yield made

    def on_disk(self) -> dict[str, ClaimEntry]:
        blob = (self.root / CHECKPOINT).read_bytes()
        return {entry.name: entry for entry in claim_checkpoint.decode(blob).claims or ()}


@pytest.fixture
def bench(root: Path) -> Bench:
    return Bench(root)


async def refused(manager: ClaimManager, *args: Any) -> str:
    with pytest.raises(NotPrepared) as caught:
        await manager.prepare(*args)
    return str(caught.value)


# Start


@pytest.mark.spec("DN-4.03")
async def test_a_new_node_gets_the_file_of_a_new_kubelet(bench: Bench) -> None:
    async with bench.manager():
        pass
    file = json.loads((bench.root / CHECKPOINT).read_bytes())
    assert file["Checksum"] == 4010664294
    assert (bench.root / CHECKPOINT).stat().st_mode & 0o777 == 0o600


@pytest.mark.spec("DN-10.M01")
async def test_a_directory_that_cannot_be_written_is_an_error_at_the_start(bench: Bench) -> None:
    (bench.root / "file").touch()
    manager = ClaimManager(bench.root / "file", bench.drivers, bench.claims.read, bench.clock)
    with pytest.raises(ExceptionGroup) as caught:
        async with running(manager.run):
            raise AssertionError("it started")
    assert caught.group_contains(DevletError, match=str(bench.root / "file"))


@pytest.mark.spec("DN-10.M01")
async def test_a_full_disk_is_an_error_at_the_start(bench: Bench) -> None:
    bench.file.full = True
    with pytest.raises(ExceptionGroup) as caught:
        async with bench.manager():
            raise AssertionError("it started")
    assert caught.group_contains(Unavailable, match="cannot be written")


# Prepare


@pytest.mark.spec("DN-3.3")
async def test_a_claim_is_saved_before_and_after_it_is_prepared(bench: Bench) -> None:
    seen: list[ClaimEntry] = []
    bench.gpu.block()
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(manager.prepare, pod())
        await bench.gpu.called.wait()
        seen.append(bench.on_disk()["claim"])
        assert manager.records()[0].state is ClaimState.PREPARING
        bench.gpu.gate.set()
    assert manager.records()[0].state is ClaimState.PREPARED
    assert seen == [ClaimEntry("uid-claim", "claim", "default", frozenset({"pod-1"}), {GPU: None})]
    assert bench.on_disk()["claim"].drivers == {GPU: (device("dev-claim", f"{GPU}/c=uid-claim"),)}


@pytest.mark.spec("DN-10.M09")
async def test_a_prepared_claim_causes_no_call_and_no_write(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        before = bench.file.writes
        await manager.prepare(pod())
        assert bench.gpu.calls == [("prepare", ("claim",))] and bench.file.writes == before


@pytest.mark.spec("DN-11.14")
async def test_a_pod_without_claims_causes_no_write_and_is_observed(bench: Bench) -> None:
    async with bench.manager() as manager:
        before = bench.file.writes
        await manager.prepare(pod(claims={}))
        await manager.unprepare(POD)
        assert bench.file.writes == before
    assert bench.observed == [("PrepareResources", False), ("UnprepareResources", False)]


@pytest.mark.spec("DN-10.M02")
@pytest.mark.spec("DN-12.1")
async def test_a_claim_that_does_not_exist_is_named_and_counted_as_an_error(bench: Bench) -> None:
    async with bench.manager() as manager:
        assert "ResourceClaim missing was not found" in await refused(manager, pod(claims={"gpu": "missing"}))
    assert bench.observed == [("PrepareResources", True)]


@pytest.mark.spec("DN-10.M03")
@pytest.mark.spec("DN-3.3")
async def test_a_refused_pod_leaves_no_trace(bench: Bench) -> None:
    bench.claims.put(claim(drivers=("other.example.com",)))
    async with bench.manager() as manager:
        before = bench.file.writes
        assert await refused(manager, pod()) == "DRA driver other.example.com is not registered"
        assert manager.waits()[0].drivers == ("other.example.com",)
        assert not manager.holds(POD) and manager.records() == [] and bench.file.writes == before


async def test_a_driver_that_is_not_connected_is_not_called(bench: Bench) -> None:
    bench.drivers.disconnected.add(GPU)
    async with bench.manager() as manager:
        assert "is registered, but not connected" in await refused(manager, pod())
        assert bench.gpu.calls == [] and not manager.holds(POD)


@pytest.mark.spec("DN-10.M04")
async def test_an_answer_without_devices_is_success_and_is_remembered(bench: Bench) -> None:
    bench.gpu.answers["claim"] = ()
    async with bench.manager() as manager:
        await manager.prepare(pod())
        assert manager.is_prepared(pod()) and manager.cdi_devices(pod(), pod().containers[0]) == ()
    assert bench.on_disk()["claim"].drivers == {GPU: ()}


@pytest.mark.spec("DN-10.M08")
@pytest.mark.spec("DN-9.3.05")
async def test_a_claim_that_no_container_uses_is_prepared(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod(uses=[]))
    assert bench.gpu.calls == [("prepare", ("claim",))]


async def test_a_claim_without_devices_needs_no_driver(bench: Bench) -> None:
    bench.claims.put(claim(drivers=()))
    async with bench.manager() as manager:
        await manager.prepare(pod())
        assert manager.is_prepared(pod()) and manager.holds(POD)
        await manager.unprepare(POD)
        assert not manager.holds(POD)


@pytest.mark.spec("DN-10.M15")
@pytest.mark.spec("DN-9.3.25")
async def test_a_pod_with_a_prepared_and_a_new_claim_has_the_new_one_prepared(bench: Bench) -> None:
    bench.claims = Claims(claim("old", pods=("pod-1", "pod-2")), claim("new", pods=("pod-2",)))
    async with bench.manager() as manager:
        await manager.prepare(pod("pod-1", {"a": "old"}))
        await manager.prepare(pod("pod-2", {"a": "old", "b": "new"}))
    assert bench.gpu.calls == [("prepare", ("old",)), ("prepare", ("new",))]


@pytest.mark.spec("DN-11.03")
async def test_a_claim_under_two_names_is_asked_for_once(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod(claims={"a": "claim", "b": "claim"}))
        await manager.unprepare(POD)
    assert bench.gpu.calls == [("prepare", ("claim",)), ("unprepare", ("claim",))]


@pytest.mark.spec("DN-9.2.18")
async def test_claims_go_to_each_driver_in_one_call_and_to_all_drivers_at_once(bench: Bench) -> None:
    bench.claims = Claims(claim("a", drivers=(GPU, NIC)), claim("b"))
    bench.gpu.block()
    bench.nic.block()
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(manager.prepare, pod(claims={"a": "a", "b": "b"}))
        await bench.gpu.called.wait()
        await bench.nic.called.wait()
        bench.gpu.gate.set()
        bench.nic.gate.set()
    assert bench.gpu.calls == [("prepare", ("a", "b"))] and bench.nic.calls == [("prepare", ("a",))]


@pytest.mark.spec("DN-11.12")
async def test_what_succeeded_is_kept_and_only_the_rest_is_retried(bench: Bench) -> None:
    bench.claims = Claims(claim("a", drivers=(GPU, NIC)), claim("b"))
    bench.gpu.problems["b"] = "too hot"
    bench.nic.error = PluginUnavailable(NIC, "gone")
    both = pod(claims={"a": "a", "b": "b"})
    async with bench.manager() as manager:
        text = await refused(manager, both)
        assert text == f"claim a: driver {NIC}: gone; claim b: driver {GPU}: too hot"
        assert [(r.state, r.message) for r in manager.records()] == [
            (ClaimState.FAILED, f"driver {NIC}: gone"),
            (ClaimState.FAILED, f"driver {GPU}: too hot"),
        ]
        assert bench.on_disk()["a"].drivers == {GPU: (device("dev-a", f"{GPU}/c=uid-a"),), NIC: None}
        bench.gpu.problems.clear()
        bench.nic.error = None
        await manager.prepare(both)
    assert bench.gpu.calls == [("prepare", ("a", "b")), ("prepare", ("b",))]
    assert bench.nic.calls == [("prepare", ("a",)), ("prepare", ("a",))]


@pytest.mark.spec("DN-10.M11")
async def test_a_second_attempt_replaces_the_devices_of_the_first(bench: Bench) -> None:
    bench.claims.put(claim(drivers=(GPU, NIC)))
    bench.nic.problems["claim"] = "no"
    async with bench.manager() as manager:
        await refused(manager, pod())
        bench.nic.problems.clear()
        await manager.prepare(pod())
        assert len(manager.cdi_devices(pod(), pod().containers[0])) == 2


@pytest.mark.spec("DN-10.M13")
@pytest.mark.spec("DN-9.3.07")
async def test_an_old_claim_of_the_same_name_blocks_a_new_one(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        bench.claims.put(claim(uid="new", pods=("pod-2",)))
        text = await refused(manager, pod("pod-2"))
        assert text == "old ResourceClaim with same name claim and different UID uid-claim still exists"
        assert len(bench.gpu.calls) == 1 and not manager.holds(PodUID("pod-2"))
        await manager.unprepare(POD)
        await manager.prepare(pod("pod-2"))
    assert bench.on_disk()["claim"].uid == "new"


async def test_a_claim_that_was_reallocated_while_in_use_is_refused(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        bench.claims.put(claim(devices="other", pods=("pod-2",)))
        assert "was reallocated while still prepared" in await refused(manager, pod("pod-2"))
        bench.claims.put(claim(drivers=(NIC,), pods=("pod-2",)))
        assert "for pods pod-1" in await refused(manager, pod("pod-2"))


@pytest.mark.parametrize(
    "then", [claim(uid="new"), claim(drivers=(NIC,))], ids=["created again", "given other devices"]
)
async def test_an_earlier_attempt_of_a_pod_does_not_block_the_next_one(bench: Bench, then: ResourceClaim) -> None:
    bench.gpu.problems["claim"] = "no"
    async with bench.manager() as manager:
        await refused(manager, pod())
        bench.claims.put(then)
        bench.gpu.error = PluginUnavailable(GPU, "gone")
        assert "gone" in await refused(manager, pod())
        bench.gpu.error = None
        bench.gpu.problems.clear()
        await manager.prepare(pod())
        assert manager.is_prepared(pod())
    assert ("unprepare", ("claim",)) in bench.gpu.calls and bench.on_disk()["claim"].uid == then.uid


# A device belongs to one claim


def two_claims(bench: Bench, **more: Any) -> tuple[Any, Any]:
    """Return two pods with a claim each. Both claims are allocated the same device."""
    bench.claims.put(claim("a", device="d", pods=("pod-1",), **more))
    bench.claims.put(claim("b", device="d", pods=("pod-2",), **more))
    return pod(claims={"gpu": "a"}), pod("pod-2", claims={"gpu": "b"})


async def test_a_device_is_not_prepared_until_the_other_claim_that_has_it_is_unprepared(bench: Bench) -> None:
    first, second = two_claims(bench)
    async with bench.manager() as manager:
        await manager.prepare(first)
        text = await refused(manager, second)
        assert text == (
            f"ResourceClaim b: device {GPU}/pool/d is still prepared for ResourceClaim default/a; it is retried"
            " when that is unprepared"
        )
        assert bench.gpu.calls == [("prepare", ("a",))] and not manager.holds(PodUID("pod-2"))
        assert bench.woken == []
        await manager.unprepare(POD)
        assert bench.woken == ["pod-2"]
        await manager.prepare(second)
    assert bench.on_disk().keys() == {"b"}


async def test_the_error_for_a_device_of_a_deleted_pod_names_the_release_command(bench: Bench) -> None:
    first, second = two_claims(bench)
    async with bench.manager() as manager:
        await manager.prepare(first)
        bench.gpu.error = PluginUnavailable(GPU, "no answer")
        await manager.reconcile(())
        bench.gpu.error = None
        assert request_ids.is_valid(bench.gpu.requests[-1])
        text = await refused(manager, second)
        assert "whose pod is gone" in text and "`devlet claim release default/a --force`" in text
        await manager.reconcile(())
        await manager.prepare(second)


async def test_a_device_belongs_to_a_claim_while_it_is_prepared_and_after_a_failure(bench: Bench) -> None:
    first, second = two_claims(bench)
    bench.gpu.block()
    bench.gpu.problems["a"] = "no"
    async with bench.manager() as manager:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refused, manager, first)
            await bench.gpu.called.wait()
            assert "is still prepared for ResourceClaim default/a" in await refused(manager, second)
            bench.gpu.gate.set()
        assert "is still prepared for ResourceClaim default/a" in await refused(manager, second)


@pytest.mark.parametrize("answered", [True, False])
async def test_the_claim_of_a_device_is_known_after_a_restart(bench: Bench, answered: bool) -> None:
    first, second = two_claims(bench)
    bench.claims.put(claim("other", pods=("pod-3",)))
    if not answered:
        bench.gpu.error = PluginUnavailable(GPU, "gone")
    async with bench.manager() as manager:
        with pytest.raises(NotPrepared) if not answered else nullcontext():
            await manager.prepare(first)
    bench.gpu.error = None
    async with bench.manager() as manager:
        assert "is still prepared for ResourceClaim default/a" in await refused(manager, second)
        await manager.prepare(pod("pod-3", claims={"gpu": "other"}))
        await manager.reconcile([PodUID("pod-3")])
        await manager.prepare(second)


async def test_a_deleted_claim_without_an_answer_may_have_any_device_of_its_driver(bench: Bench) -> None:
    first, _ = two_claims(bench)
    bench.claims.put(claim("other", pods=("pod-3",)))
    bench.gpu.error = PluginUnavailable(GPU, "gone")
    async with bench.manager() as manager:
        await refused(manager, first)
    bench.gpu.error = None
    del bench.claims.objects[key("a")]
    async with bench.manager() as manager:
        assert "for ResourceClaim default/a" in await refused(manager, pod("pod-3", claims={"gpu": "other"}))
        await manager.reconcile(())
        await manager.prepare(pod("pod-3", claims={"gpu": "other"}))


async def test_unanswered_claims_of_one_pod_do_not_block_each_other_after_a_restart(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.claims.put(claim(name, device=f"device-{name}"))
        bench.gpu.answers[name] = (device(f"device-{name}", f"{GPU}/c={name}"),)
    both = pod(claims={"first": "a", "second": "b"})
    bench.gpu.error = PluginUnavailable(GPU, "gone")
    async with bench.manager() as manager:
        await refused(manager, both)
    bench.gpu.error = None
    async with bench.manager() as manager:
        await manager.prepare(both)
        assert manager.is_prepared(both)


@pytest.mark.parametrize("restarted", [True, False])
async def test_admin_access_does_not_wait_for_other_claims_nor_delay_them(bench: Bench, restarted: bool) -> None:
    two_claims(bench)
    bench.claims.put(claim("admin", device="d", admin=True))
    bench.gpu.answers["admin"] = (device("d", f"{GPU}/c=admin"),)
    async with bench.manager() as manager:
        await manager.prepare(pod(claims={"gpu": "admin"}))
        if not restarted:
            await manager.prepare(pod("pod-2", claims={"gpu": "b"}))
    async with bench.manager() as manager:
        await manager.prepare(pod("pod-2", claims={"gpu": "b"}))
    assert bench.on_disk().keys() == {"admin", "b"}


async def test_a_driver_that_unprepared_its_part_frees_only_its_own_devices(bench: Bench) -> None:
    first, second = two_claims(bench)
    bench.claims.put(claim("a", device="d", drivers=(GPU, NIC)))
    async with bench.manager() as manager:
        await manager.prepare(first)
        await refused(manager, second)
        bench.nic.error = PluginUnavailable(NIC, "gone")
        await manager.reconcile(())
        assert bench.woken == ["pod-2"]
        await manager.prepare(second)


async def test_a_claim_that_was_reallocated_while_devlet_was_down_is_refused(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
    bench.claims.put(claim(devices="other", pods=("pod-2",)))
    async with bench.manager() as manager:
        assert "was reallocated while still prepared" in await refused(manager, pod("pod-2"))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (device("dev-a"), "its answer has device pool/dev-a, which is not allocated to the claim"),
        (
            device("dev-b", f"{GPU}/c=uid-a"),
            f"has the CDI device {GPU}/c=uid-a, which belongs to ResourceClaim default/a",
        ),
    ],
)
async def test_an_answer_with_a_device_of_another_claim_is_refused(
    bench: Bench, answer: PreparedDevice, text: str
) -> None:
    bench.claims = Claims(claim("a"), claim("b", pods=("pod-2",)))
    bench.gpu.answers["b"] = (answer,)
    async with bench.manager() as manager:
        await manager.prepare(pod(claims={"gpu": "a"}))
        found = await refused(manager, pod("pod-2", claims={"gpu": "b"}))
    assert found.startswith(f"claim b: driver {GPU}: ") and text in found


@pytest.mark.spec("DN-10.M14")
async def test_the_share_of_a_device_is_saved(bench: Bench) -> None:
    bench.claims.put(claim(share="s"))
    bench.gpu.answers["claim"] = (device("dev-claim", share="s"),)
    async with bench.manager() as manager:
        await manager.prepare(pod())
    assert bench.on_disk()["claim"].drivers == {GPU: (device("dev-claim", share="s"),)}


@pytest.mark.spec("DN-11.20")
async def test_an_invalid_answer_fails_only_its_own_claim(bench: Bench) -> None:
    bench.claims = Claims(claim("a"), claim("b"))
    bench.gpu.answers["a"] = (device("d", "nonsense"),)
    async with bench.manager() as manager:
        text = await refused(manager, pod(claims={"a": "a", "b": "b"}))
    assert "'nonsense' is not the name of a CDI device" in text and "claim b" not in text
    assert bench.on_disk()["b"].drivers != {GPU: None}


@pytest.mark.spec("DN-10.M12")
@pytest.mark.spec("DN-3.6")
async def test_the_claim_of_extended_resources_is_prepared_and_unprepared(bench: Bench) -> None:
    mapping = {"containerName": "main", "resourceName": "gpu.example.com/gpu", "requestName": "req"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "claim", "requestMappings": [mapping]}}
    one = pod(claims={}, status=status, resources={"requests": {"gpu.example.com/gpu": "1"}})
    async with bench.manager() as manager:
        await manager.prepare(one)
        assert manager.cdi_devices(one, one.containers[0]) == (f"{GPU}/c=uid-claim",)
        assert [c.pod_claim for c in manager.container_claims(one, one.containers[0])] == [""]
        await manager.unprepare(POD)
    assert bench.gpu.calls == [("prepare", ("claim",)), ("unprepare", ("claim",))]


async def test_a_legacy_driver_is_called_with_its_own_answer(bench: Bench) -> None:
    bench.gpu.service = Service.V1ALPHA1
    async with bench.manager() as manager:
        await manager.prepare(pod())
        await manager.unprepare(POD)
    assert [each.cdi_devices for each in bench.gpu.references] == [(), (f"{GPU}/c=uid-claim",)]


async def test_what_a_pod_waits_for_is_shown_and_watched(bench: Bench) -> None:
    bench.claims.put(claim(allocated=False))
    async with bench.manager() as manager:
        await refused(manager, pod())
        (wait,) = manager.waits()
        assert (wait.pod, wait.claims, wait.message) == (POD, (key("claim"),), "ResourceClaim claim is not allocated")
        assert bench.watched == {"pod-1": (key("claim"),)}
        bench.claims.put(claim())
        await manager.prepare(pod())
        assert manager.waits() == [] and bench.watched == {"pod-1": ()}


# Unprepare


@pytest.mark.spec("DN-10.M21")
async def test_a_claim_is_unprepared_and_forgotten_when_its_last_pod_ends(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        await manager.unprepare(POD)
        await manager.unprepare(POD)
        assert not manager.holds(POD) and manager.records() == []
    assert bench.gpu.calls == [("prepare", ("claim",)), ("unprepare", ("claim",))]
    assert bench.on_disk() == {} and bench.gpu.prepared == set()


@pytest.mark.spec("DN-10.M17")
@pytest.mark.spec("DN-9.3.20")
async def test_a_claim_that_other_pods_use_is_not_unprepared(bench: Bench) -> None:
    bench.claims.put(claim(pods=("pod-1", "pod-2")))
    async with bench.manager() as manager:
        await manager.prepare(pod("pod-1"))
        await manager.prepare(pod("pod-2"))
        await manager.unprepare(POD)
        assert bench.on_disk()["claim"].pods == frozenset({"pod-2"})
        assert bench.gpu.calls == [("prepare", ("claim",))]
        await manager.unprepare(PodUID("pod-2"))
    assert bench.gpu.calls[1:] == [("unprepare", ("claim",))]


@pytest.mark.spec("DN-11.01")
async def test_a_pod_that_was_refused_never_unprepares_the_claim_of_another(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        await refused(manager, pod("intruder"))
        await manager.unprepare(PodUID("intruder"))
        assert bench.gpu.calls == [("prepare", ("claim",))] and manager.is_prepared(pod())


@pytest.mark.spec("DN-11.01")
async def test_a_second_attempt_to_unprepare_never_affects_a_shared_claim(bench: Bench) -> None:
    bench.claims = Claims(claim("shared", pods=("pod-1", "pod-2")), claim("own", drivers=(NIC,)))
    async with bench.manager() as manager:
        await manager.prepare(pod("pod-1", {"a": "shared", "b": "own"}))
        await manager.prepare(pod("pod-2", {"a": "shared"}))
        bench.nic.problems["own"] = "busy"
        for _ in range(2):
            with pytest.raises(NotPrepared, match=f"claim own: driver {NIC}: busy"):
                await manager.unprepare(POD)
        assert [call for call in bench.gpu.calls if call[0] == "unprepare"] == []
        assert bench.on_disk()["shared"].pods == frozenset({"pod-2"})
        bench.nic.problems.clear()
        await manager.unprepare(POD)
        assert set(bench.on_disk()) == {"shared"}


@pytest.mark.spec("DN-10.M16")
async def test_without_its_driver_a_claim_cannot_be_unprepared(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        del bench.drivers.registered[GPU]
        with pytest.raises(NotPrepared, match=f"DRA driver {GPU} is not registered"):
            await manager.unprepare(POD)
        assert manager.holds(POD) and manager.records()[0].state is ClaimState.FAILED
    assert set(bench.on_disk()) == {"claim"}


@pytest.mark.spec("DN-11.02")
@pytest.mark.parametrize("how", ["the call", "the claim"])
async def test_after_a_failed_unprepare_the_next_pod_has_the_claim_prepared_again(bench: Bench, how: str) -> None:
    """It is not known whether it was done: the answer may have been lost."""
    bench.claims.put(claim(pods=("pod-1", "pod-2")))
    async with bench.manager() as manager:
        await manager.prepare(pod())
        if how == "the call":
            bench.gpu.error = PluginUnavailable(GPU, "connection lost")
        else:
            bench.gpu.problems["claim"] = "half done"
        with pytest.raises(NotPrepared, match=r"connection lost|half done"):
            await manager.unprepare(POD)
        bench.gpu.error = None
        bench.gpu.problems.clear()
        await manager.prepare(pod("pod-2"))
        await manager.unprepare(POD)
    assert [verb for verb, _ in bench.gpu.calls] == ["prepare", "unprepare", "prepare"]


async def test_a_driver_that_has_unprepared_is_not_called_again(bench: Bench) -> None:
    bench.claims.put(claim(drivers=(GPU, NIC)))
    async with bench.manager() as manager:
        await manager.prepare(pod())
        bench.nic.error = PluginRefused(NIC, "not now")
        with pytest.raises(NotPrepared, match="not now"):
            await manager.unprepare(POD)
        assert list(bench.on_disk()["claim"].drivers or ()) == [NIC]
        bench.nic.error = None
        await manager.unprepare(POD)
    assert bench.gpu.calls.count(("unprepare", ("claim",))) == 1


async def test_a_driver_that_was_asked_to_unprepare_prepares_again_before_another_pod_starts(bench: Bench) -> None:
    bench.claims.put(claim(pods=("pod-1", "pod-2")))
    async with bench.manager() as manager:
        await manager.prepare(pod())
        bench.gpu.error = PluginUnavailable(GPU, "gone in the middle")
        with pytest.raises(NotPrepared, match="gone in the middle"):
            await manager.unprepare(POD)
        bench.gpu.error = None
        bench.gpu.prepared.clear()  # it did what it was asked, but its answer was lost
        await manager.prepare(pod("pod-2"))
        assert bench.gpu.prepared == {"uid-claim"}


@pytest.mark.spec("DN-11.02")
async def test_a_claim_that_is_being_unprepared_is_prepared_again_for_the_next_pod(bench: Bench) -> None:
    bench.claims.put(claim(pods=("pod-1", "pod-2")))
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        await manager.prepare(pod())
        bench.gpu.block()
        tasks.start_soon(manager.unprepare, POD)
        await bench.gpu.called.wait()
        assert manager.records()[0].state is ClaimState.UNPREPARING
        tasks.start_soon(manager.prepare, pod("pod-2"))
        await anyio.wait_all_tasks_blocked()
        assert len(bench.gpu.calls) == 2
        bench.gpu.gate.set()
    assert [verb for verb, _ in bench.gpu.calls] == ["prepare", "unprepare", "prepare"]
    assert bench.gpu.prepared == {"uid-claim"} and bench.on_disk()["claim"].pods == frozenset({"pod-2"})


async def test_a_claim_is_unlocked_before_the_slowest_driver_of_the_pod_has_answered(bench: Bench) -> None:
    bench.claims = Claims(claim("a", pods=("pod-1", "pod-2")), claim("b", drivers=(NIC,)))
    bench.nic.block()
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(manager.prepare, pod("pod-1", {"a": "a", "b": "b"}))
        await bench.nic.called.wait()
        with deadline():
            await manager.prepare(pod("pod-2", {"a": "a"}))
        bench.nic.gate.set()
    assert bench.gpu.calls == [("prepare", ("a",))]


async def test_two_pods_at_the_same_time_have_their_claim_prepared_once(bench: Bench) -> None:
    uids = [f"pod-{i}" for i in range(5)]
    bench.claims.put(claim(pods=uids))
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        for uid in uids:
            tasks.start_soon(manager.prepare, pod(uid))
    assert bench.gpu.calls == [("prepare", ("claim",))] and bench.on_disk()["claim"].pods == frozenset(uids)


@pytest.mark.spec("DN-10.M23")
async def test_many_pods_at_the_same_time_cause_few_writes(bench: Bench) -> None:
    uids = [f"pod-{i}" for i in range(64)]
    bench.claims = Claims(*[claim(f"c-{uid}", pods=(uid,)) for uid in uids])
    async with bench.manager() as manager:
        before = bench.file.writes
        async with anyio.create_task_group() as tasks:
            for uid in uids:
                tasks.start_soon(manager.prepare, pod(uid, {"a": f"c-{uid}"}))
        assert len(bench.on_disk()) == 64 and bench.file.writes - before < 32
        async with anyio.create_task_group() as tasks:
            for uid in uids:
                tasks.start_soon(manager.unprepare, PodUID(uid))
    assert bench.on_disk() == {} and bench.gpu.prepared == set()


# Interruptions


async def test_a_call_to_a_driver_is_completed_when_its_pod_is_deleted(bench: Bench) -> None:
    bench.gpu.block()
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def prepare() -> None:
            with scope:
                await manager.prepare(pod())

        tasks.start_soon(prepare)
        await bench.gpu.called.wait()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(manager.unprepare, POD)
        await anyio.wait_all_tasks_blocked()
        assert [verb for verb, _ in bench.gpu.calls] == ["prepare"]
        bench.gpu.gate.set()
    assert [verb for verb, _ in bench.gpu.calls] == ["prepare", "unprepare"] and bench.on_disk() == {}


async def test_a_pod_that_is_deleted_while_it_waits_for_a_claim_leaves_no_trace(bench: Bench) -> None:
    bench.claims.put(claim(pods=("pod-1", "pod-2")))
    bench.gpu.block()
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(manager.prepare, pod())
        await bench.gpu.called.wait()
        with anyio.move_on_after(0.01):
            await manager.prepare(pod("pod-2"))
        assert not manager.holds(PodUID("pod-2"))
        bench.gpu.gate.set()


@pytest.mark.parametrize("fails", ["before the call", "after the call"])
async def test_a_full_disk_is_an_error_and_what_was_not_saved_is_not_done(bench: Bench, fails: str) -> None:
    bench.gpu.block()
    problems: list[Unavailable] = []

    async def prepare(manager: ClaimManager) -> None:
        try:
            await manager.prepare(pod())
        except Unavailable as e:
            problems.append(e)

    async with bench.manager() as manager:
        async with anyio.create_task_group() as tasks:
            bench.file.full = fails == "before the call"
            tasks.start_soon(prepare, manager)
            if fails == "after the call":
                await bench.gpu.called.wait()
                bench.file.full = True
            bench.gpu.gate.set()
        assert "No space left on device" in str(problems[0])
        assert manager.holds(POD) is (fails == "after the call")
        assert len(bench.gpu.calls) == (1 if fails == "after the call" else 0)
        bench.file.full = False
        await manager.prepare(pod())
        assert len(bench.gpu.calls) == 1
    assert bench.on_disk()["claim"].drivers != {GPU: None}


@pytest.mark.spec("DN-3.3")
async def test_a_pod_does_not_start_before_the_answers_of_its_drivers_are_saved(bench: Bench) -> None:
    bench.gpu.block()
    async with bench.manager() as manager:
        with pytest.raises(ExceptionGroup) as caught:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(manager.prepare, pod())
                await bench.gpu.called.wait()
                bench.file.full = True
                bench.gpu.gate.set()
        assert caught.group_contains(Unavailable, match="No space left")
        with pytest.raises(Unavailable, match="No space left"):
            await manager.prepare(pod())
        bench.file.full = False
        await manager.prepare(pod())
        assert bench.on_disk()["claim"].drivers == {GPU: (device("dev-claim", f"{GPU}/c=uid-claim"),)}
    assert bench.gpu.calls == [("prepare", ("claim",))]


@pytest.mark.spec("DN-3.3")
async def test_a_pod_does_not_start_before_answers_that_another_pod_got_are_saved(bench: Bench) -> None:
    bench.claims = Claims(claim("a", pods=("pod-1", "pod-2")), claim("b", drivers=(NIC,)))
    first, second = pod("pod-1", {"a": "a", "b": "b"}), pod("pod-2", {"a": "a"})
    bench.gpu.problems["a"] = "no"
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        await refused(manager, second)
        bench.gpu.problems.clear()
        bench.nic.block()
        tasks.start_soon(manager.prepare, first)
        await bench.nic.called.wait()
        await manager.prepare(second)
        found = bench.on_disk()["a"].drivers
        bench.nic.gate.set()
    assert found == {GPU: (device("dev-a", f"{GPU}/c=uid-a"),)}


@pytest.mark.spec("DN-3.3")
async def test_a_driver_that_is_added_to_a_claim_is_saved_before_it_is_called(bench: Bench) -> None:
    bench.gpu.problems["claim"] = "no"
    async with bench.manager() as manager:
        await refused(manager, pod())
        bench.claims.put(claim(drivers=(GPU, NIC)))
        bench.file.full = True
        for _ in range(2):
            with pytest.raises(Unavailable, match="No space left"):
                await manager.prepare(pod())
        assert bench.nic.calls == [] and bench.on_disk()["claim"].drivers == {GPU: None}
        bench.file.full = False
        bench.nic.block()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refused, manager, pod())
            await bench.nic.called.wait()
            found = bench.on_disk()["claim"].drivers
            bench.nic.gate.set()
    assert found == {GPU: None, NIC: None}


@pytest.mark.parametrize("trouble", ["another claim cannot be", "the disk is full"])
async def test_pods_that_wait_for_a_claim_are_woken_when_it_is_unprepared_even_if_something_else_fails(
    bench: Bench, trouble: str
) -> None:
    bench.claims = Claims(claim("a"), claim("b", drivers=(NIC,)), claim("c", allocated=False))
    async with bench.manager() as manager:
        await manager.prepare(pod(claims={"a": "a", "b": "b"}))
        await refused(manager, pod("waits", {"a": "a"}))
        await refused(manager, pod("for-another", {"c": "c"}))
        bench.file.full = trouble == "the disk is full"
        bench.nic.error = None if bench.file.full else PluginUnavailable(NIC, "gone")
        for _ in range(2):
            with pytest.raises((NotPrepared, Unavailable)):
                await manager.unprepare(POD)
        assert bench.woken == ["waits"], "once, and no other pod"


async def test_a_pod_is_not_done_before_the_deletion_of_its_references_is_saved(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        bench.file.full = True
        for _ in range(2):
            with pytest.raises(Unavailable, match="No space left"):
                await manager.unprepare(POD)
        bench.file.full = False
        await manager.unprepare(POD)
        assert bench.on_disk() == {}
    assert [verb for verb, _ in bench.gpu.calls] == ["prepare", "unprepare"]


# Restarts


async def restarted(bench: Bench, then: Callable[[ClaimManager], Any]) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
    async with bench.manager() as manager:
        await then(manager)


@pytest.mark.spec("DN-11.13")
async def test_what_was_prepared_before_a_restart_is_known_after_it(bench: Bench) -> None:
    async def then(manager: ClaimManager) -> None:
        assert manager.is_prepared(pod()) and manager.holds(POD)
        assert manager.cdi_devices(pod(), pod().containers[0]) == (f"{GPU}/c=uid-claim",)
        assert claims_in_use(manager.records()) == {"<any>": 1, GPU: 1}

    await restarted(bench, then)


@pytest.mark.spec("DN-3.9")
async def test_after_a_restart_a_driver_is_called_again_before_another_pod_starts(bench: Bench) -> None:
    bench.claims.put(claim(pods=("pod-1", "pod-2")))

    async def then(manager: ClaimManager) -> None:
        await manager.prepare(pod("pod-2"))
        assert len(bench.gpu.calls) == 2

    await restarted(bench, then)


@pytest.mark.spec("DN-3.7")
async def test_claims_of_deleted_pods_are_unprepared(bench: Bench) -> None:
    async def then(manager: ClaimManager) -> None:
        await manager.reconcile([POD])
        assert manager.holds(POD)
        await manager.reconcile([])
        assert not manager.holds(POD)

    await restarted(bench, then)
    assert bench.gpu.calls == [("prepare", ("claim",)), ("unprepare", ("claim",))]
    assert ("UnprepareResources", False) not in bench.observed


async def test_claims_that_cannot_be_cleaned_up_are_retried_later(bench: Bench) -> None:
    async def then(manager: ClaimManager) -> None:
        del bench.drivers.registered[GPU]
        await manager.reconcile([])
        assert manager.holds(POD)
        before = manager.version
        bench.drivers.add(bench.gpu)
        assert await manager.changed(before) != before
        await manager.reconcile([])
        assert not manager.holds(POD)

    await restarted(bench, then)


@pytest.mark.spec("DN-11.15")
async def test_a_damaged_file_is_set_aside_and_its_legible_claims_are_cleaned_up(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
    path = bench.root / CHECKPOINT
    path.write_bytes(path.read_bytes().replace(b'"Checksum":', b'"Checksum":1'))
    async with bench.manager() as manager:
        assert manager.holds(POD) and not manager.is_prepared(pod())
        assert len(manager.damage) == 1 and "was damaged and set aside" in manager.damage[0]
        assert (
            bench.reports[0].reason == "ClaimCheckpointDamaged" and "1 claims could be read" in bench.reports[0].message
        )
        await manager.reconcile([])
    assert bench.gpu.prepared == set() and len([name for name in os.listdir(bench.root) if "damaged" in name]) == 1


@pytest.mark.spec("DN-11.15")
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("uid-claim", "uid-clain"),
        ("pod-1", "pod-7"),
        (GPU, "gqu.example.com"),
        ("DriverState", "DriverStats"),
        ("pool", "pond"),
    ],
)
async def test_claims_of_running_pods_in_a_damaged_file_are_corrected_before_anything_is_cleaned_up(
    bench: Bench, right: str, wrong: str
) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
    path = bench.root / CHECKPOINT
    path.write_bytes(path.read_bytes().replace(right.encode(), wrong.encode(), 1))
    async with bench.manager() as manager:
        assert not manager.is_prepared(pod())
        await manager.reconcile([POD], [key("claim")])
        assert bench.gpu.prepared == {"uid-claim"}
        await manager.prepare(pod())
        await manager.reconcile([POD], [])
        assert bench.gpu.prepared == {"uid-claim"} and manager.is_prepared(pod())
        await manager.unprepare(POD)
    assert bench.gpu.prepared == set() and bench.on_disk() == {}


async def test_a_hanging_driver_delays_only_the_cleanup_of_its_own_claims(bench: Bench) -> None:
    uids = [f"old-{i}" for i in range(40)]
    bench.claims = Claims(*[claim(f"c-{uid}", pods=(uid,)) for uid in uids], claim("n", drivers=(NIC,)))
    async with bench.manager() as manager:
        for uid in uids:
            await manager.prepare(pod(uid, {"a": f"c-{uid}"}))
        await manager.prepare(pod("pod-1", {"n": "n"}))
        bench.gpu.block()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(manager.reconcile, [])
            await bench.gpu.called.wait()
            await anyio.wait_all_tasks_blocked()
            assert bench.nic.prepared == set()
            bench.gpu.gate.set()
    assert bench.gpu.prepared == set()


async def test_a_pod_that_waits_for_a_locked_claim_says_so(bench: Bench) -> None:
    bench.claims.put(claim(pods=("pod-1", "pod-2")))
    bench.gpu.block()
    async with bench.manager() as manager, anyio.create_task_group() as tasks:
        tasks.start_soon(manager.prepare, pod())
        await bench.gpu.called.wait()
        tasks.start_soon(manager.prepare, pod("pod-2"))
        await anyio.wait_all_tasks_blocked()
        waits = [(each.pod, each.message) for each in manager.waits()]
        bench.gpu.gate.set()
    assert waits == [("pod-2", "claim: being prepared or unprepared for another pod")] and manager.waits() == []


# Reading


@pytest.mark.spec("DN-10.C03")
@pytest.mark.spec("DN-12.3")
async def test_prepared_claims_are_counted_by_driver_and_in_total(bench: Bench) -> None:
    bench.claims = Claims(claim("a", drivers=(GPU, NIC)), claim("b"), claim("c", drivers=(NIC,)))
    bench.nic.problems["c"] = "no"
    async with bench.manager() as manager:
        assert claims_in_use(manager.records()) == {"<any>": 0}
        await manager.prepare(pod(claims={"a": "a", "b": "b"}))
        await refused(manager, pod(claims={"c": "c"}))
        assert claims_in_use(manager.records()) == {"<any>": 2, GPU: 2, NIC: 1}


async def test_the_users_of_a_device_are_known(bench: Bench) -> None:
    async with bench.manager() as manager:
        await manager.prepare(pod())
        assert manager.users([DeviceIdentity(GPU, PoolName("pool"), DeviceName("dev-claim"))]) == {POD}


@pytest.mark.spec("DN-9.3.08")
async def test_a_device_with_admin_access_is_prepared_like_any_other(bench: Bench) -> None:
    plain = claim()
    (result,) = plain.results
    devices = DeviceAllocation(results=(replace(result, admin_access=True),))
    status = replace(plain.status, allocation=AllocationResult(devices=devices))
    bench.claims.put(replace(plain, status=status))
    async with bench.manager() as manager:
        await manager.prepare(pod())
        assert manager.is_prepared(pod())
    assert bench.gpu.calls == [("prepare", ("claim",))]


async def test_a_claim_that_cannot_be_used_on_this_node_is_not_prepared_unless_it_was_before(bench: Bench) -> None:
    bench.misplaced["claim"] = "the devices of ResourceClaim claim cannot be used on node n2"
    async with bench.manager() as manager:
        assert await refused(manager, pod()) == bench.misplaced["claim"]
        assert bench.gpu.calls == [] and bench.on_disk() == {}
        bench.misplaced.clear()
        await manager.prepare(pod())
        bench.misplaced["claim"] = "the node's labels have changed since"
        await manager.prepare(pod())
        assert manager.is_prepared(pod())
