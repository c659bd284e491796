from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from devlet.errors import InvalidInput, PluginRefused, PluginUnavailable
from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.plugins.channels import Connection, connection
from devlet.plugins.dra import ClaimProblem, ClaimRef
from devlet.testing.dra_script import GARBAGE, PREPARE, UNPREPARE, WATCH, Call, DraScript
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.testing.waiting import deadline
from devlet.wire.dra_v1 import api_pb2 as pb

pytestmark = pytest.mark.anyio

V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
TRAIN = ClaimRef("default", ClaimName("train"), ClaimUID("u1"))
SERVE = ClaimRef("default", ClaimName("serve"), ClaimUID("u2"))


async def prepare(dialled: Connection, *claims: ClaimRef) -> dict[str, str]:
    """By UID, the error or the first device."""
    wire = [pb.Claim(namespace=each.namespace, name=each.name, uid=each.uid) for each in claims]
    request = pb.NodePrepareResourcesRequest(claims=wire)
    blob = await dialled.call(f"{V1}/NodePrepareResources", request.SerializeToString(), timeout=600)
    answers = pb.NodePrepareResourcesResponse.FromString(blob).claims
    return {uid: one.error or (one.devices[0].device_name if one.devices else "") for uid, one in answers.items()}


def dialled(driver: FakeDraDriver) -> AbstractAsyncContextManager[Connection]:
    return connection("p", driver.path, within=60, max_message=1 << 20)


async def test_calls_are_kept_in_their_order_and_can_be_waited_for() -> None:
    script = DraScript()
    heard: list[Call] = []
    script.on_call = heard.append
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(script.until_asked, PREPARE, 2)
        await anyio.lowlevel.checkpoint()
        with script.record(Call(PREPARE, (TRAIN,), service="v1")):
            assert (script.underway(PREPARE), script.underway(WATCH)) == (1, 0)
            with script.record(Call(WATCH)), script.record(Call(PREPARE, (TRAIN, SERVE))):
                assert script.underway(PREPARE) == 2
        await script.until_underway(PREPARE, 0)
    assert script.asked(PREPARE) == [Call(PREPARE, (TRAIN,)), Call(PREPARE, (TRAIN, SERVE))]
    assert [call.method for call in script.calls] == [PREPARE, WATCH, PREPARE]
    assert heard == script.calls
    assert script.calls[-1].names == ("train", "serve")


async def test_a_method_fails_the_given_number_of_times_without_doing_its_work(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.fail(PREPARE, "NOT_FOUND", "no such device", times=2)
        for _ in range(2):
            with pytest.raises(PluginRefused, match="no such device"):
                await prepare(wire, TRAIN)
        assert not driver.prepared
        assert await prepare(wire, TRAIN) == {"u1": "dev-train"}


async def test_a_method_fails_until_it_recovers(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.fail(PREPARE)
        for _ in range(3):
            with pytest.raises(PluginRefused, match="told to fail"):
                await prepare(wire, TRAIN)
        driver.recover(UNPREPARE)
        with pytest.raises(PluginRefused):
            await prepare(wire, TRAIN)
        driver.recover(PREPARE)
        assert await prepare(wire, TRAIN) == {"u1": "dev-train"}


async def test_a_method_may_fail_after_its_work_is_done(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.fail(PREPARE, after=True)
        with pytest.raises(PluginRefused):
            await prepare(wire, TRAIN)
        assert "u1" in driver.prepared


async def test_a_fault_of_a_path_is_one_of_that_version_alone(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.fail("/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources")
        assert await prepare(wire, TRAIN)
        driver.fail(f"{V1}/NodePrepareResources", "UNIMPLEMENTED")
        with pytest.raises(PluginRefused):
            await prepare(wire, TRAIN)


async def test_a_call_that_hangs_is_answered_when_the_driver_recovers(root: Path) -> None:
    answers: list[dict[str, str]] = []

    async with FakeDraDriver(root) as driver, dialled(driver) as wire:

        async def ask() -> None:
            answers.append(await prepare(wire, TRAIN))

        driver.hang(PREPARE, times=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await driver.until_underway(PREPARE, 1)
            assert await prepare(wire, SERVE) == {"u2": "dev-serve"}
            assert answers == []
            driver.recover()
    assert answers == [{"u1": "dev-train"}]


async def test_a_call_that_hangs_is_left_when_the_client_gives_up(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.hang(PREPARE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepare, wire, TRAIN)
            await driver.until_underway(PREPARE, 1)
            tasks.cancel_scope.cancel()
        with deadline():
            await driver.until_underway(PREPARE, 0)
        assert not driver.prepared


async def test_a_delay_comes_before_the_answer(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.delay(PREPARE, 0.05)
        began = anyio.current_time()
        assert await prepare(wire, TRAIN)
        assert anyio.current_time() - began >= 0.05


async def test_an_answer_may_be_any_bytes(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.answer(PREPARE, GARBAGE)
        assert await wire.call(f"{V1}/NodePrepareResources", b"", timeout=60) == GARBAGE


@pytest.mark.parametrize("after", [False, True])
async def test_it_hangs_up_in_the_middle_of_a_call_before_or_after_its_work(root: Path, after: bool) -> None:
    async with FakeDraDriver(root) as driver:
        async with dialled(driver) as wire:
            driver.hang_up(PREPARE, times=1, after=after)
            with pytest.raises(PluginUnavailable), deadline():
                await prepare(wire, TRAIN)
            assert ("u1" in driver.prepared) is after
        async with dialled(driver) as wire:
            assert await prepare(wire, TRAIN) == {"u1": "dev-train"}


async def test_one_claim_fails_by_its_name_or_uid_and_the_others_do_not(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.fail_claim("train", "no such device", times=1)
        driver.fail_claim("u2", "", times=1)
        assert await prepare(wire, TRAIN, SERVE) == {"u1": "no such device", "u2": ""}
        assert not driver.prepared
        assert await prepare(wire, TRAIN, SERVE) == {"u1": "dev-train", "u2": "dev-serve"}


async def test_a_claim_is_left_out_of_the_answer_but_prepared(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.skip_claim("train")
        assert await prepare(wire, TRAIN, SERVE) == {"u2": "dev-serve"}
        assert set(driver.prepared) == {"u1", "u2"}
        driver.recover(PREPARE)
        assert set(await prepare(wire, TRAIN, SERVE)) == {"u1", "u2"}


async def test_an_answer_may_have_a_claim_that_was_not_requested(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.answer_also("u9", times=1)
        driver.answer_also("u8", ClaimProblem("who?"), times=1)
        assert await prepare(wire, TRAIN) == {"u1": "dev-train", "u9": "", "u8": "who?"}
        assert await prepare(wire, TRAIN) == {"u1": "dev-train"}


async def test_the_last_fault_of_a_method_counts_and_frees_those_that_hang(root: Path) -> None:
    async with FakeDraDriver(root) as driver, dialled(driver) as wire:
        driver.hang(PREPARE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepare, wire, TRAIN)
            await driver.until_underway(PREPARE, 1)
            driver.fail(PREPARE, "UNAVAILABLE", "second")
            with pytest.raises(PluginUnavailable, match="second"):
                await prepare(wire, SERVE)
        assert set(driver.prepared) == {"u1"}


def test_a_status_that_gRPC_does_not_know_is_a_mistake_of_the_test() -> None:
    with pytest.raises(InvalidInput, match="there is no gRPC status 'NO_SUCH_STATUS'"):
        DraScript().fail(PREPARE, "NO_SUCH_STATUS")
