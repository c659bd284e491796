from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from devlet.cluster.client import MergePatch
from devlet.cluster.store.store import Store, open_store
from devlet.daemon import feature_gates
from devlet.daemon.config import Config, load
from devlet.daemon.node_claims import NodeClaims
from devlet.daemon.node_settings import NodeSettings
from devlet.kit.clock import SystemClock
from devlet.kit.metrics import Registry
from devlet.objects.documents import Document, view
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.pod import Pod
from devlet.testing.fake_dra_driver import DeviceReport, FakeDraDriver, HealthService
from devlet.testing.waiting import until
from tests.support.claim_specimens import GPU, device

pytestmark = pytest.mark.anyio

SHARE = "0b4d3a1e-5f55-4a3a-9c0e-6a9a3c1d2e4f"
DEVICES = [
    device("a", f"{GPU}/c=a", f"{GPU}/c=both", requests=("one",)),
    PreparedDevice("pool", "b", SHARE, ("two",), (f"{GPU}/c=b",)),
]


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "store") as opened:
        yield opened


def made(store: Store, config: Config, registry: Registry | None = None) -> NodeClaims:
    return NodeClaims(
        store,
        config,
        SystemClock(),
        registry or Registry(),
        wake=lambda uid: None,
        health_changed=lambda uids: None,
        report=lambda report: None,
        labels=lambda: None,
        drivers_changed=lambda: None,
    )


async def _allocate(store: Store, devices: list[tuple[str, str, str | None]], pod: Pod) -> None:
    results = [
        {"request": request, "driver": GPU, "pool": "pool", "device": name, **({"shareID": share} if share else {})}
        for request, name, share in devices
    ]
    user = {"resource": "pods", "name": pod.name, "uid": pod.uid}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [user]}
    await store.patch(RESOURCE_CLAIMS, "claim", MergePatch({"status": status}), "default", subresource="status")


async def prepared(claims: NodeClaims, driver: FakeDraDriver, store: Store, uses: list[Document]) -> Pod:
    """A pod whose container uses a claim of two requests, each with a device of its own."""
    requests = [{"name": name, "exactly": {"deviceClassName": "gpu"}} for name in ("one", "two")]
    spec = {"devices": {"requests": requests}}
    await store.create(RESOURCE_CLAIMS, {"metadata": {"name": "claim"}, "spec": spec}, "default")
    container = {"name": "main", "image": "i", "resources": {"claims": uses}}
    entry = {"name": "gpu", "resourceClaimName": "claim"}
    document = {"metadata": {"name": "p"}, "spec": {"containers": [container], "resourceClaims": [entry]}}
    made = view(Pod, await store.create(PODS, document, "default"))
    await _allocate(store, [("one", "a", None), ("two", "b", SHARE)], made)
    driver.set_devices("claim", DEVICES)
    await claims.drivers.register(GPU, driver.path, ["v1.DRAPlugin", HealthService.V1])

    async def usable() -> bool:
        return claims.drivers.is_usable(GPU)

    await until(usable)
    await claims.manager.prepare(made)
    return made


def config(root: Path, **gates: bool) -> Config:
    settings = replace(NodeSettings(), feature_gates=feature_gates.defaults() | gates)
    return replace(load({"root": root}, environ={}), node=settings)


@pytest.mark.spec("DN-11.16")
@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ({"name": "gpu", "request": "two"}, [("b", (f"{GPU}/c=b",), SHARE)]),
        ({"name": "gpu"}, [("a", (f"{GPU}/c=a", f"{GPU}/c=both"), None), ("b", (f"{GPU}/c=b",), SHARE)]),
    ],
)
async def test_pod_resources_hears_of_each_device_its_own_names_and_of_the_requests_of_the_container(
    store: Store, root: Path, uses: Document, expected: list[tuple[str, tuple[str, ...], str | None]]
) -> None:
    claims = made(store, config(root))
    async with claims.running(), FakeDraDriver(root, GPU) as driver:
        one = await prepared(claims, driver, store, [uses])
        (resource,) = claims.dynamic_resources(one, one.containers[0])
        assert (resource.claim, resource.namespace) == ("claim", "default")
        assert [(each.device, each.cdi_devices, each.share_id) for each in resource.devices] == expected


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ({}, [("Unhealthy", "hot")]),
        ({feature_gates.RESOURCE_HEALTH_STATUS_MESSAGE: False}, [("Unhealthy", None)]),
        ({feature_gates.RESOURCE_HEALTH_STATUS: False}, []),
    ],
)
async def test_gates_decide_what_health_is_reported(
    store: Store, root: Path, gates: dict[str, bool], expected: list[tuple[str, str | None]]
) -> None:
    claims = made(store, config(root, **gates))
    async with claims.running(), FakeDraDriver(root, GPU, health_services=[HealthService.V1]) as driver:
        driver.health.set([DeviceReport("pool", "a", "Unhealthy", message="hot")])
        one = await prepared(claims, driver, store, [{"name": "gpu", "request": "one"}])

        async def told() -> list[tuple[str, str | None]]:
            found = claims.statuses(one, one.containers[0])
            return [(each.health or "", each.message) for status in found for each in status.resources]

        assert await until(told, lambda found: found == expected) == expected


async def test_metrics_of_claims_are_registered(store: Store, root: Path) -> None:
    registry = Registry()
    claims = made(store, config(root), registry)
    async with claims.running(), FakeDraDriver(root, GPU) as driver:
        await prepared(claims, driver, store, [])
        text = registry.text()
    assert f'dra_resource_claims_in_use{{driver_name="{GPU}"}} 1' in text
    assert 'dra_operations_duration_seconds_count{operation_name="PrepareResources",is_error="false"} 1' in text
    assert 'grpc_status_code="OK"' in text
