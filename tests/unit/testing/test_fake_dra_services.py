from pathlib import Path

import grpc
import pytest

from devlet.plugins.channels import target
from devlet.plugins.dra import HealthService, Service
from devlet.testing.fake_dra_driver import FakeDraDriver

pytestmark = pytest.mark.anyio

UNARY = {
    f"/{service}/{method}"
    for service, methods in {
        "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin": ("NodePrepareResources", "NodeUnprepareResources"),
        "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin": ("NodePrepareResources", "NodeUnprepareResources"),
        "v1alpha3.Node": ("NodePrepareResources", "NodeUnprepareResources"),
        "v1alpha2.Node": ("NodePrepareResource", "NodeUnprepareResource"),
        "v1alpha1.Node": ("NodePrepareResource", "NodeUnprepareResource"),
        "pluginregistration.Registration": ("GetInfo", "NotifyRegistrationStatus"),
    }.items()
    for method in methods
}
STREAMS = {f"/{service}/NodeWatchResources" for service in HealthService}


async def call(channel: grpc.aio.Channel, method: str) -> None:
    stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(method)
    unary: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    if method in STREAMS:
        await stream(b"").read()
    else:
        await unary(b"")


async def served(path: Path) -> set[str]:
    """The services that have all their methods there; none has only some of them."""
    found: set[str] = set()
    missing: set[str] = set()
    options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(target(path), options=options) as channel:
        for method in UNARY | STREAMS:
            try:
                await call(channel, method)
            except grpc.aio.AioRpcError as e:
                (missing if e.code() is grpc.StatusCode.UNIMPLEMENTED else found).add(method.split("/")[1])
            else:
                found.add(method.split("/")[1])
    assert not found & missing
    return found


@pytest.mark.parametrize(
    ("service", "name"),
    [
        (Service.V1, "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"),
        (Service.V1BETA1, "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"),
        (Service.V1ALPHA4, "v1alpha3.Node"),
        (Service.V1ALPHA3, "v1alpha3.Node"),
        (Service.V1ALPHA2, "v1alpha2.Node"),
        (Service.V1ALPHA1, "v1alpha1.Node"),
    ],
)
async def test_a_driver_has_the_service_of_its_version_and_no_other(root: Path, service: Service, name: str) -> None:
    async with FakeDraDriver(root, services=[service]) as driver:
        assert await served(driver.path) == {name}
        assert await served(driver.registry_path) == {"pluginregistration.Registration"}


async def test_services_come_and_go_while_it_runs(root: Path) -> None:
    async with FakeDraDriver(root, services=[Service.V1ALPHA2]) as driver:
        driver.services = ()
        driver.health_services = list(HealthService)
        assert await served(driver.path) == set(HealthService)


async def test_with_one_socket_it_has_everything_there(root: Path) -> None:
    async with FakeDraDriver(root, services=[Service.V1ALPHA1], one_socket=True) as driver:
        assert await served(driver.registry_path) == {"pluginregistration.Registration", "v1alpha1.Node"}
        assert not (root / "plugins").exists()
