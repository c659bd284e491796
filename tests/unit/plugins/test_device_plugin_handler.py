from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from devlet.objects.identifiers import ResourceName
from devlet.plugins.device_plugin import Offer
from devlet.plugins.device_plugin_handler import DevicePluginHandler, check_resource_name

ENDPOINT = Path("/run/gpu.sock")


class Manager:
    def __init__(self) -> None:
        self.calls: list[tuple[str, Offer]] = []

    async def register(self, offer: Offer) -> None:
        self.calls.append(("register", offer))

    def deregister(self, offer: Offer) -> None:
        self.calls.append(("deregister", offer))


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
def handler(manager: Manager) -> DevicePluginHandler:
    return DevicePluginHandler(manager.register, manager.deregister)


@pytest.mark.anyio
@pytest.mark.spec("DP-8.58")
async def test_the_manager_gets_resource_and_endpoint(handler: DevicePluginHandler, manager: Manager) -> None:
    offer = Offer(ResourceName("vendor.com/gpu"), ENDPOINT)
    handler.validate("vendor.com/gpu", ENDPOINT, ["v1beta1"])
    await handler.register("vendor.com/gpu", ENDPOINT, ["v1beta1"])
    await handler.deregister("vendor.com/gpu", ENDPOINT)
    assert manager.calls == [("register", offer), ("deregister", offer)]


def test_one_supported_version_is_enough(handler: DevicePluginHandler) -> None:
    handler.validate("vendor.com/gpu", ENDPOINT, ["v2", "v1beta1", "v1alpha2"])


@pytest.mark.parametrize(("versions", "shown"), [(["v2", "v1alpha2"], "[v2 v1alpha2]"), ([], "[]")])
def test_a_plugin_of_other_versions_is_refused(handler: DevicePluginHandler, versions: list[str], shown: str) -> None:
    with pytest.raises(InvalidInput) as error:
        handler.validate("vendor.com/gpu", ENDPOINT, versions)
    assert str(error.value) == f"manager version, v1beta1, is not among plugin supported versions {shown}"


@pytest.mark.parametrize("name", ["gpu", "", "kubernetes.io/gpu", "requests.vendor.com/gpu", "vendor.com/g/pu"])
def test_a_name_that_is_not_an_extended_resource_is_refused(handler: DevicePluginHandler, name: str) -> None:
    with pytest.raises(InvalidInput) as error:
        handler.validate(name, ENDPOINT, ["v1beta1"])
    assert str(error.value) == f'invalid name of device plugin socket: the ResourceName "{name}" is invalid'


@pytest.mark.parametrize("name", ["vendor.com/gpu", "a/b", "vendor.com/Gpu_1.x-y", f"v.com/{'x' * 63}"])
def test_a_name_in_the_vendors_domain_is_accepted(name: str) -> None:
    check_resource_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpu",
        "/gpu",
        "vendor.com/",
        "kubernetes.io/gpu",
        "x.kubernetes.io/gpu",
        "requests.vendor.com/gpu",
        "Vendor.com/gpu",
        "vendor.com/a/b",
        "vendor.com/-gpu",
        f"vendor.com/{'x' * 64}",
        f"{'a' * 245}/gpu",  # with `requests.` in front these are too many
        "vendor.com/gpu\n",
    ],
)
def test_any_other_name_is_refused_with_the_name_in_quotes(name: str) -> None:
    with pytest.raises(InvalidInput, match=r'^the ResourceName ".*" is invalid$'):
        check_resource_name(name)


def test_a_very_long_name_is_cut_in_the_error() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_resource_name("x" * 100_000)
    assert len(str(refused.value)) < 500
