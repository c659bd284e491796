"""Claims on a whole node whose drivers fail, hang and recover while claims are prepared and unprepared."""

import pytest

from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver, PreparedDevice, Service
from devlet.testing.waiting import until
from tests.support.claim_node import CLAIMS, ClaimNode, claim_pod, given
from tests.support.node_drivers import NodeDrivers

pytestmark = [pytest.mark.anyio]

NOT_UNPREPARED = "FailedUnprepareDynamicResources"
SHARES = ("6f0b1ef0-7c5c-4b1a-9a2c-2c5f2ab7b1b0", "0c9e6c1e-54c1-4b9f-8f0a-9d1f3f1c2d3e")


async def phase(node: ClaimNode, name: str) -> str:
    document = await node.pod(name)
    return "gone" if document is None else str(document["status"]["phase"])


# Prepare


@pytest.mark.long
@pytest.mark.spec("DN-9.2.06")
async def test_a_pod_is_pending_while_prepare_hangs_beyond_its_time(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.hang(PREPARE)
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    await node.until_failed("train", f"driver {gpu.name}: NodePrepareResources was not answered within 1 s")
    await gpu.until_asked(PREPARE, 2)
    assert await phase(node, "train") == "Pending"
    gpu.recover()
    await node.until_phase("train", "Running")


@pytest.mark.spec("DN-9.2.07")
async def test_a_pod_whose_prepare_failed_runs_when_it_works(node: ClaimNode, gpu: FakeDraDriver) -> None:
    gpu.fail(PREPARE, "INTERNAL", "out of order")
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train", restart="Never", exit_code=0))
    text = await node.until_failed("train", "out of order")
    assert text.startswith(f"Failed to prepare dynamic resources: claim train: driver {gpu.name}: ")
    assert await phase(node, "train") == "Pending"
    gpu.recover()
    await node.until_phase("train", "Succeeded")


@pytest.mark.spec("DN-9.3.02")
@pytest.mark.parametrize("service", [Service.V1, Service.V1BETA1])
async def test_prepare_is_called_again_in_each_version_of_the_api(
    node: ClaimNode, drivers: NodeDrivers, service: Service
) -> None:
    gpu = await drivers.start("gpu", services=(service,))
    gpu.fail(PREPARE, times=1)
    await node.run_pod("train", gpu.name)
    assert [call.service for call in gpu.asked(PREPARE)] == [service, service]


@pytest.mark.parametrize("service", [Service.V1, Service.V1BETA1, Service.V1ALPHA4])
async def test_a_driver_that_only_says_1_0_0_is_tried_with_each_service_once(
    node: ClaimNode, drivers: NodeDrivers, service: Service
) -> None:
    gpu = await drivers.start("gpu", services=(service,), versions=["1.0.0"])
    await node.run_pod("train", gpu.name)
    await node.run_pod("again", gpu.name)
    assert [call.service for call in gpu.asked(PREPARE)] == [service, service]


@pytest.mark.parametrize("service", [Service.V1ALPHA3, Service.V1ALPHA2])
async def test_a_driver_of_an_older_api_is_reported_with_what_to_do(
    node: ClaimNode, drivers: NodeDrivers, service: Service
) -> None:
    """v1alpha3 has the name of v1alpha4 on the wire, and other messages."""
    gpu = await drivers.start("gpu", services=(service,), versions=["1.0.0"])
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    await node.until_failed("train", "set its API in `legacyDrivers` of the configuration")
    gpu.services = (Service.V1,)  # so that the claim can be unprepared


@pytest.mark.spec("DN-9.2.14")
@pytest.mark.parametrize("layout", ["a directory of its own", "the registry directory"])
async def test_a_pod_runs_when_the_service_comes_after_the_registration(
    node: ClaimNode, drivers: NodeDrivers, layout: str
) -> None:
    path = node.registry / "gpu-dra.sock" if "registry" in layout else None
    gpu = await drivers.add("gpu", service_path=path)
    await gpu.start_registrar()
    await gpu.until_registered()
    await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    await node.until_failed("train", f"DRA driver {gpu.name} is registered, but not connected")
    assert node.claim_checkpoint() == {}
    await gpu.start_service()
    await node.until_phase("train", "Running")


@pytest.mark.spec("DN-9.2.17")
async def test_all_calls_use_one_connection(node: ClaimNode, gpu: FakeDraDriver) -> None:
    for name in ("first", "second"):
        await node.run_pod(name, gpu.name)
        await node.finish(name)
        await node.until_phase(name, "Succeeded")
    assert [call.method for call in gpu.calls if call.claims] == [PREPARE, UNPREPARE] * 2
    assert gpu.connections == 1


@pytest.mark.spec("DN-9.2.36")
@pytest.mark.parametrize("shares", [(None,), SHARES[:1], SHARES], ids=["no share", "a share", "two shares"])
async def test_shares_of_a_device_are_prepared_kept_and_unprepared(
    node: ClaimNode, gpu: FakeDraDriver, shares: tuple[str | None, ...]
) -> None:
    gpu.set_devices("train", [PreparedDevice("pool", "dev-0", share, requests=("req",)) for share in shares])
    await node.add_claim("train", *(given(gpu.name, "dev-0", share=share or "") for share in shares))
    await node.add_pod(claim_pod("train", "train", restart="Never"))
    await node.until_phase("train", "Running")
    [driver] = (await node.prepared())["train"]["drivers"]
    assert [each.get("shareID") for each in driver["devices"]] == list(shares)
    kept = (node.claim_checkpoint()["train"].drivers or {})[gpu.name] or ()
    assert [(each.device, each.share) for each in kept] == [("dev-0", share) for share in shares]
    await node.finish("train")
    await node.until_phase("train", "Succeeded")
    await node.until_forgotten("train")
    assert len(gpu.asked(UNPREPARE)) == 1


# Unprepare


@pytest.mark.spec("DN-9.2.08")
async def test_a_pod_has_succeeded_only_when_its_claim_is_unprepared(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.run_pod("train", gpu.name)
    gpu.fail(UNPREPARE, "INTERNAL", "stuck")
    await node.finish("train")
    text = await node.until_failed("train", "stuck", NOT_UNPREPARED)
    assert text.startswith(f"Failed to unprepare dynamic resources: claim train: driver {gpu.name}: ")
    assert await phase(node, "train") == "Running"
    assert "train" in node.claim_checkpoint()
    gpu.recover()
    await node.until_phase("train", "Succeeded")
    assert not gpu.prepared
    await node.until_forgotten("train")


@pytest.mark.spec("DN-9.2.11")
async def test_a_deleted_pod_stays_until_its_claim_is_unprepared(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.run_pod("train", gpu.name)
    gpu.fail(UNPREPARE)
    await node.ask_to_delete("train")
    await gpu.until_asked(UNPREPARE)
    document = await node.pod("train")
    assert document is not None and document["metadata"]["deletionTimestamp"]
    gpu.recover()
    await node.until_gone("train")
    assert len(gpu.asked(UNPREPARE)) > 1
    assert not gpu.prepared


@pytest.mark.spec("DN-9.3.04")
async def test_a_pod_that_is_deleted_by_force_is_unprepared(node: ClaimNode, gpu: FakeDraDriver) -> None:
    await node.run_pod("train", gpu.name)
    await node.ask_to_delete("train", force=True)
    assert await node.pod("train") is None
    await gpu.until_asked(UNPREPARE)
    await node.until_forgotten("train")


@pytest.mark.spec("DN-9.3.07")
async def test_a_claim_of_the_same_name_waits_until_the_old_one_is_unprepared(
    node: ClaimNode, gpu: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name)
    [old] = gpu.prepared
    gpu.fail(UNPREPARE)
    await node.ask_to_delete("train", force=True)
    await node.call("DELETE", f"{CLAIMS}/train")
    new = await node.add_claim("train", given(gpu.name))
    await node.add_pod(claim_pod("train", "train"))
    text = f"old ResourceClaim with same name train and different UID {old} still exists"
    await node.until_failed("train", text)
    assert list(gpu.prepared) == [old]
    gpu.recover()
    await node.until_phase("train", "Running")
    assert list(gpu.prepared) == [new]
    assert (await node.environment("train"))["CLAIM_train"] == new


# Two drivers


@pytest.mark.spec("DN-9.2.18")
async def test_a_claim_with_two_drivers_is_prepared_and_unprepared_by_both(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name, nic.name)
    [main] = (await node.containers("train")).values()
    assert [each["driver"] for each in main["claims"]] == [gpu.name, nic.name]
    assert gpu.prepared.keys() == nic.prepared.keys() == {(node.claim_checkpoint())["train"].uid}
    await node.finish("train")
    await node.until_phase("train", "Succeeded")
    assert [len(each.asked(UNPREPARE)) for each in (gpu, nic)] == [1, 1]


@pytest.mark.spec("DN-9.2.19")
async def test_the_metric_counts_claims_in_use_in_all_and_of_each_driver(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    async def in_use() -> dict[str, str]:
        lines = (await node.read("/metrics"))[1].splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line.startswith("dra_resource_claims_in_use{"))

    def label(driver: str) -> str:
        return f'dra_resource_claims_in_use{{driver_name="{driver}"}}'

    await node.run_pod("train", gpu.name, nic.name)
    assert await in_use() == {label("<any>"): "1", label(gpu.name): "1", label(nic.name): "1"}
    await node.delete("train")
    await until(in_use, lambda found: found == {label("<any>"): "0"})


@pytest.mark.spec("DN-9.2.20")
async def test_while_one_driver_fails_to_prepare_what_the_other_did_is_kept(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    gpu.fail(PREPARE)
    await node.add_claim("train", given(gpu.name), given(nic.name))
    await node.add_pod(claim_pod("train", "train", restart="Never"))
    assert nic.name not in await node.until_failed("train", gpu.name)
    assert await phase(node, "train") == "Pending"
    gpu.recover()
    await node.until_phase("train", "Running")
    assert len(nic.asked(PREPARE)) == 1


@pytest.mark.spec("DN-9.2.21")
async def test_while_one_driver_fails_to_unprepare_the_other_is_not_asked_again(
    node: ClaimNode, gpu: FakeDraDriver, nic: FakeDraDriver
) -> None:
    await node.run_pod("train", gpu.name, nic.name)
    gpu.fail(UNPREPARE)
    await node.finish("train")
    await node.until_failed("train", gpu.name, NOT_UNPREPARED)
    assert await phase(node, "train") == "Running"
    gpu.recover()
    await node.until_phase("train", "Succeeded")
    assert len(nic.asked(UNPREPARE)) == 1
