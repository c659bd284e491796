from pathlib import Path

import grpc
import pytest

from devlet.objects.identifiers import DeviceID
from devlet.plugins.channels import target
from devlet.plugins.device_plugin import Api
from devlet.plugins.devices import Device, Options
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.fake_plugin_services import device_list, register_request

pytestmark = pytest.mark.anyio

METHODS = {
    "/v1beta1.DevicePlugin/GetDevicePluginOptions",
    "/v1beta1.DevicePlugin/Allocate",
    "/v1beta1.DevicePlugin/PreStartContainer",
    "/deviceplugin.DevicePlugin/Allocate",
    "/pluginregistration.Registration/GetInfo",
    "/pluginregistration.Registration/NotifyRegistrationStatus",
}


async def served(plugin: FakeDevicePlugin) -> set[str]:
    found = set()
    options = [("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(target(plugin.path), options=options) as channel:
        for method in METHODS:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
            try:
                await call(b"")
            except grpc.aio.AioRpcError as e:
                assert e.code() is grpc.StatusCode.UNIMPLEMENTED
            else:
                found.add(method)
    return found


async def test_a_plugin_serves_the_methods_of_its_api_and_no_others(root: Path) -> None:
    async with FakeDevicePlugin(root) as plugin:
        assert await served(plugin) == {method for method in METHODS if method.startswith("/v1beta1")}
    for api in (Api.V1ALPHA1, Api.V1ALPHA2):
        async with FakeDevicePlugin(root, api=api) as plugin:
            assert await served(plugin) == {"/deviceplugin.DevicePlugin/Allocate"}


async def test_a_plugin_that_is_to_be_found_also_says_what_it_is(root: Path) -> None:
    async with FakeDevicePlugin(root, registry=root) as plugin:
        assert await served(plugin) == {method for method in METHODS if not method.startswith("/deviceplugin")}


def test_a_list_has_the_fields_of_the_api() -> None:
    devices = [Device(DeviceID("a"), "Healthy", (0, 1)), Device(DeviceID("b"), "Odd")]
    topology = b"\x1a\x06\x0a\x00\x0a\x02\x08\x01"
    assert device_list(devices) == b"\x0a\x14\x0a\x01a\x12\x07Healthy" + topology + b"\x0a\x08\x0a\x01b\x12\x03Odd"


def test_a_registration_has_the_fields_of_the_api() -> None:
    assert register_request("v1beta1", "x", "a/b", Options(pre_start=True)) == (
        b"\x0a\x07v1beta1\x12\x01x\x1a\x03a/b\x22\x02\x08\x01"
    )
