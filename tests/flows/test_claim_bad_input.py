"""Whatever DRA drivers do wrong on a whole node: the pod that needs them says what it is, others do not notice, and the
pod runs, or ends, when it is over."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from devlet.testing.fake_dra_driver import (
    GARBAGE,
    GET_INFO,
    PREPARE,
    UNPREPARE,
    FakeDraDriver,
    PreparedDevice,
    large_answer,
)
from devlet.testing.node_api import MERGE
from devlet.testing.wire_faults import Direction
from tests.flows.conftest import NO_RETRY
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, given
from tests.support.node_drivers import NodeDrivers

pytestmark = [pytest.mark.anyio]

NOT_UNPREPARED = "FailedUnprepareDynamicResources"
KEEP = ("bystander",)
CONFIGURATION = NO_RETRY
MAX_MESSAGE = 1024  # characters of an event, for the API

Check = Callable[[], Awaitable[None]]


@pytest.fixture(scope="module")
async def good(claim_node: ClaimNode) -> AsyncIterator[FakeDraDriver]:
    """Another driver, and a pod that has a device of it."""
    async with FakeDraDriver(claim_node.root, "good.example.com") as driver:
        await claim_node.until_connected(driver)
        await claim_node.run_pod("bystander", driver.name)
        yield driver


@pytest.fixture
async def others(node: ClaimNode, good: FakeDraDriver) -> AsyncIterator[Check]:
    """To be called in the middle of the trouble: whether the other pod is undisturbed, and a new one is not held up."""
    before, asked = await node.pod("bystander"), len(good.calls)

    async def check() -> None:
        await node.run_pod("another", good.name)
        await node.delete("another")
        assert await node.pod("bystander") == before
        assert await node.failures("bystander") == await node.failures("another") == []

    yield check
    assert await node.pod("bystander") == before
    assert [(call.method, call.names) for call in good.calls[asked:]] == [
        (PREPARE, ("another",)),
        (UNPREPARE, ("another",)),
    ]


async def add_pod(node: ClaimNode, driver: str) -> str:
    """Named `train`, with a claim of the same name. The UID of the claim."""
    uid = await node.add_claim("train", given(driver))
    await node.add_pod(claim_pod("train", "train", restart="Never"))
    return uid


async def fails(node: ClaimNode, text: str, reason: str) -> None:
    """The pod says so, in words that can be read."""
    message = await node.until_failed("train", text, reason)
    assert len(message) <= MAX_MESSAGE


async def until_runs(node: ClaimNode) -> None:
    """At once, because its claim changes."""
    await node.call("PATCH", f"{CLAIMS}/train", {"metadata": {"annotations": {"touched": "yes"}}}, MERGE)
    await node.until_phase("train", "Running")


# Registration


def file(driver: FakeDraDriver) -> None:
    path = driver.directory / "file"
    path.write_text("not a socket")
    driver.endpoint = str(path)


def directory(driver: FakeDraDriver) -> None:
    driver.endpoint = str(driver.directory)


def somebody_elses_socket(driver: FakeDraDriver) -> None:
    os.chown(driver.path, 65534, 65534)


def said(**attributes: Any) -> Callable[[FakeDraDriver], None]:
    def change(driver: FakeDraDriver) -> None:
        for name, value in attributes.items():
            setattr(driver, name, value)

    return change


REFUSED: dict[str, tuple[Callable[[FakeDraDriver], None], str]] = {
    "another type": (said(type="FluxPlugin"), "no handler for plugin type 'FluxPlugin'"),
    "no name": (said(name=""), "driver name is empty"),
    "a name that is none": (said(name="Not A Name"), "driver name 'Not A Name'"),
    "a name that is a path": (said(name="../../etc/passwd"), "driver name '../../etc/passwd'"),
    "a name that is too long": (said(name="x" * 300), "driver name 'xxx"),
    "a relative endpoint": (said(endpoint="dra.sock"), "the endpoint 'dra.sock' is not an absolute path"),
    "an endpoint that is too long": (said(endpoint=f"/{'x' * 200}"), "longer than 107 bytes"),
    "an endpoint that is a file": (file, "file is a file, not a socket"),
    "an endpoint that is a directory": (directory, "is a directory, not a socket"),
    "no versions": (said(versions=[]), "the list of supported versions is empty"),
    "versions from the future": (said(versions=["v9.DRAPlugin"]), "[v9.DRAPlugin] is known, there are [v1.DRAPlugin"),
}
if os.geteuid() == 0:
    REFUSED["somebody else's socket"] = (somebody_elses_socket, "belongs to uid 65534")


@pytest.mark.parametrize("what", REFUSED)
async def test_a_driver_is_told_why_it_is_refused_and_can_do_better(
    node: ClaimNode, drivers: NodeDrivers, others: Check, what: str
) -> None:
    wrong, text = REFUSED[what]
    gpu = await drivers.add("gpu")
    name, endpoint = gpu.name, gpu.endpoint
    await gpu.start_service()
    wrong(gpu)
    await gpu.start_registrar()
    assert text in await gpu.until_refused()
    kind, rows = ("DRA", node.driver_states) if gpu.type == "DRAPlugin" else ("", node.plugin_states)
    await node.until_event(f"{kind}PluginRegistrationFailed", text)
    assert any(text in each["message"] for each in (await rows()).values() if each["state"] == "Refused")
    await add_pod(node, name)
    await fails(node, f"DRA driver {name} is not registered", "FailedPrepareDynamicResources")
    assert gpu.connections == 0 and node.claim_checkpoint().keys() == {"bystander"}
    await others()
    said(type="DRAPlugin", name=name, endpoint=endpoint, versions=None)(gpu)
    await gpu.stop()
    await gpu.start()
    await node.until_phase("train", "Running")


async def test_two_registrations_with_one_endpoint_are_one(
    node: ClaimNode, drivers: NodeDrivers, gpu: FakeDraDriver, others: Check
) -> None:
    double = await drivers.add("gpu", instance="double")
    double.endpoint = gpu.endpoint
    await double.start_registrar()
    assert f"endpoint {gpu.endpoint} already registered" in await double.until_refused()
    await double.stop_registrar()
    await add_pod(node, gpu.name)
    await until_runs(node)
    await others()
    assert gpu.connections == 1


INTRODUCTIONS: dict[str, Callable[[FakeDraDriver], None]] = {
    "nothing": lambda driver: driver.hang(GET_INFO),
    "garbage": lambda driver: driver.answer(GET_INFO, GARBAGE),
    "100 KB": lambda driver: driver.answer(GET_INFO, bytes(100_000)),
    "an error": lambda driver: driver.fail(GET_INFO),
    "the end of the connection": lambda driver: driver.hang_up(GET_INFO),
}


@pytest.mark.long
@pytest.mark.parametrize("what", INTRODUCTIONS)
async def test_a_driver_that_does_not_introduce_itself_is_asked_again(
    node: ClaimNode, drivers: NodeDrivers, others: Check, what: str
) -> None:
    gpu = await drivers.add("gpu")
    INTRODUCTIONS[what](gpu)
    await gpu.start()
    await gpu.until_asked(GET_INFO)
    await add_pod(node, gpu.name)
    await fails(node, f"DRA driver {gpu.name} is not registered", "FailedPrepareDynamicResources")
    await others()
    gpu.recover()
    await gpu.until_registered()
    await node.until_phase("train", "Running")


# Answers


def devices(*found: PreparedDevice) -> Callable[[FakeDraDriver], None]:
    return lambda driver: driver.set_devices("train", list(found))


def device(*cdi: str, pool: str = "pool", name: str = "dev-0", request: str = "req") -> PreparedDevice:
    return PreparedDevice(pool, name, requests=(request,), cdi_devices=cdi or None)


ANSWERS: dict[str, tuple[Callable[[FakeDraDriver], None], str]] = {
    "a claim that nobody asked about": (
        lambda driver: driver.answer_also("stranger"),
        "has an entry for a claim that was not asked about: UID 'stranger'",
    ),
    "not all claims": (lambda driver: driver.skip_claim("train"), "the driver skipped this claim"),
    "an error for the claim": (lambda driver: driver.fail_claim("train", "no such device"), "no such device"),
    "an endless error": (lambda driver: driver.fail_claim("train", "x" * 200_000), "xxx"),
    "a CDI device twice": (devices(device("a.com/b=c", "a.com/b=c")), "names the CDI device a.com/b=c twice"),
    "no CDI name": (devices(device("gpu 0")), "gpu 0"),
    "a CDI name without device": (devices(device("a.com/b=")), "a.com/b="),
    "a CDI name with a path": (devices(device("a.com/b=../../c")), "../../c"),
    "an endless name": (devices(device(name="x" * 5000)), "has a name of 5000 characters"),
    "a device without pool": (devices(device(pool="")), "a device without pool"),
    "a device without name": (devices(device(name="")), "a device without name"),
    "a request that is not there": (
        devices(device(request="other")),
        "'other', for which the claim has no device of this driver",
    ),
    "a device that is not allocated": (devices(device(name="other")), "device pool/other, which is not allocated"),
    "another pool": (devices(device(pool="other")), "which is not allocated to the claim"),
    "too many devices": (devices(*(device(name=f"dev-{n}") for n in range(2000))), "2000 devices"),
    "garbage": (lambda driver: driver.answer(PREPARE, GARBAGE), "cannot be decoded"),
    "17 MB": (lambda driver: driver.answer(PREPARE, large_answer(17 << 20)), "larger than"),
    "an error": (lambda driver: driver.fail(PREPARE, "RESOURCE_EXHAUSTED", "sold out"), "sold out"),
    "a service that it does not have": (lambda driver: said(services=())(driver), "unknown service"),
}


@pytest.mark.parametrize("what", ANSWERS)
async def test_a_wrong_answer_keeps_the_pod_from_starting_until_there_is_a_right_one(
    node: ClaimNode, gpu: FakeDraDriver, others: Check, what: str
) -> None:
    wrong, text = ANSWERS[what]
    services = gpu.services
    wrong(gpu)
    uid = await add_pod(node, gpu.name)
    await fails(node, text, "FailedPrepareDynamicResources")
    assert (await node.pod("train") or {})["status"]["phase"] == "Pending"
    await others()
    gpu.recover()
    gpu.services = services
    gpu.set_all_devices({})
    gpu.prepared.remove(uid)
    await until_runs(node)
    assert await node.environment("train") == {"CLAIM_train": uid}


UNPREPARED: dict[str, tuple[Callable[[FakeDraDriver], None], str]] = {
    "a claim that nobody asked about": (
        lambda driver: driver.answer_also("stranger", method=UNPREPARE),
        "has an entry for a claim that was not asked about: UID 'stranger'",
    ),
    "not all claims": (lambda driver: driver.skip_claim("train", method=UNPREPARE), "the driver skipped this claim"),
    "an error for the claim": (lambda driver: driver.fail_claim("train", "in use", method=UNPREPARE), "in use"),
    "garbage": (lambda driver: driver.answer(UNPREPARE, GARBAGE), "cannot be decoded"),
    "nothing": (lambda driver: driver.hang(UNPREPARE), "NodeUnprepareResources was not answered within 1 s"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", UNPREPARED)
async def test_a_wrong_answer_keeps_the_pod_from_ending_until_there_is_a_right_one(
    node: ClaimNode, gpu: FakeDraDriver, others: Check, what: str
) -> None:
    wrong, text = UNPREPARED[what]
    await add_pod(node, gpu.name)
    await node.until_phase("train", "Running")
    wrong(gpu)
    await node.ask_to_delete("train")
    await fails(node, text, NOT_UNPREPARED)
    await others()
    assert await node.pod("train") is not None
    gpu.recover()
    gpu.service.proxy.cut()  # a driver that comes back is called at once
    await node.until_gone("train")
    assert not gpu.prepared


# Calls that come to nothing


@pytest.mark.long
@pytest.mark.parametrize("after", [False, True])
async def test_a_driver_that_hangs_costs_only_its_own_pod(
    node: ClaimNode, gpu: FakeDraDriver, others: Check, after: bool
) -> None:
    gpu.hang(PREPARE, after=after)
    await add_pod(node, gpu.name)
    await gpu.until_asked(PREPARE)
    await others()
    await fails(node, "NodePrepareResources was not answered within 1 s", "FailedPrepareDynamicResources")
    gpu.recover()
    await until_runs(node)


@pytest.mark.parametrize("after", [False, True])
async def test_a_connection_that_is_lost_in_the_middle_of_a_call(
    node: ClaimNode, gpu: FakeDraDriver, others: Check, after: bool
) -> None:
    gpu.hang_up(PREPARE, times=1, after=after)
    await add_pod(node, gpu.name)
    await fails(node, f"claim train: driver {gpu.name}: ", "FailedPrepareDynamicResources")
    await node.until_phase("train", "Running")
    await others()
    assert gpu.connections > 1


async def test_a_connection_that_is_lost_in_the_middle_of_an_answer(
    node: ClaimNode, gpu: FakeDraDriver, others: Check
) -> None:
    gpu.service.proxy.cut_after(20, Direction.TO_CLIENT)
    await add_pod(node, gpu.name)
    await fails(node, f"claim train: driver {gpu.name}: ", "FailedPrepareDynamicResources")
    await node.until_phase("train", "Running")
    await others()
    assert gpu.connections > 1


async def test_a_driver_that_dies_between_call_and_answer_is_asked_again(
    node: ClaimNode, gpu: FakeDraDriver, others: Check
) -> None:
    gpu.hang(PREPARE, after=True)
    uid = await add_pod(node, gpu.name)
    await gpu.until_asked(PREPARE)
    await gpu.crash()
    await fails(node, f"claim train: driver {gpu.name}: ", "FailedPrepareDynamicResources")
    await others()
    assert list(gpu.prepared) == [uid]
    gpu.recover()
    await gpu.start()
    await node.until_phase("train", "Running")
    assert len(gpu.asked(PREPARE)) == 2


async def test_a_pod_that_is_deleted_while_its_driver_dies_is_unprepared_when_that_is_back(
    node: ClaimNode, gpu: FakeDraDriver, others: Check
) -> None:
    gpu.hang(PREPARE, after=True)
    await add_pod(node, gpu.name)
    await gpu.until_asked(PREPARE)
    await node.ask_to_delete("train")
    await gpu.crash()
    await fails(node, gpu.name, NOT_UNPREPARED)
    await others()
    assert await node.pod("train") is not None
    gpu.recover()
    await gpu.start()
    await node.until_gone("train")
    assert [call.method for call in gpu.calls if call.claims] == [PREPARE, UNPREPARE]
