import logging
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from itertools import product
from pathlib import Path

import anyio
import pytest

from devlet.errors import PluginRefused, PluginUnavailable
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.device_plugin import Api, DeviceLists, DevicePlugin, Offer, Settings, connected
from devlet.plugins.devices import Device, Grant, Options
from devlet.testing.fake_device_plugin import NO_RESPONSE, Call, FakeDevicePlugin, large_answer, numbered
from devlet.testing.fake_plugin_services import device_list
from devlet.testing.waiting import deadline

pytestmark = pytest.mark.anyio

A, B, C = (DeviceID(id) for id in "abc")
GRANT = Grant(
    env={"A": "1", "B": ""},
    mounts=(Mount("/in", "/out", True), Mount("/in", "/out")),
    devices=(DeviceNode("/dev/c", "/dev/h", "mrw"),),
    annotations={"k": "v"},
    cdi_devices=("vendor.com/gpu=0", "vendor.com/gpu=0"),
)


def offer(plugin: FakeDevicePlugin) -> Offer:
    return Offer(ResourceName(plugin.resource), plugin.path, plugin.api)


@asynccontextmanager
async def connected_to(
    root: Path, settings: Settings = Settings(), **kwargs: object
) -> AsyncIterator[tuple[FakeDevicePlugin, DevicePlugin]]:
    async with FakeDevicePlugin(root, **kwargs) as fake:  # type: ignore[arg-type]
        async with connected(offer(fake), settings) as plugin:
            yield fake, plugin


@pytest.mark.parametrize(("pre_start", "preferred"), list(product([False, True], repeat=2)))
async def test_a_connected_plugin_has_its_options_and_process(root: Path, pre_start: bool, preferred: bool) -> None:
    options = Options(pre_start, preferred)
    async with connected_to(root, options=options) as (fake, plugin):
        assert plugin.options == options
        assert plugin.pid == os.getpid()
        assert plugin.offer == offer(fake)
        assert fake.calls == [Call("GetDevicePluginOptions")]


@pytest.mark.spec("DP-8.11")
async def test_a_plugin_that_does_not_return_its_options_is_not_connected(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake:
        fake.fail("GetDevicePluginOptions", "INTERNAL", "not today")
        with pytest.raises(PluginRefused) as failed:
            async with connected(offer(fake)):
                pass
    text = "failed to get device plugin options: GetDevicePluginOptions failed: not today"
    assert failed.value.message == text


@pytest.mark.spec("DP-9.04")
async def test_a_plugin_that_hangs_on_its_options_fails_after_the_deadline(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake:
        fake.hang("GetDevicePluginOptions")
        with pytest.raises(PluginUnavailable, match=r"failed to get device plugin options: .* within 0\.05 s"):
            async with connected(offer(fake), Settings(options=0.05)):
                pass


async def test_a_plugin_that_does_not_listen_fails_to_be_dialled(root: Path) -> None:
    nobody = Offer(ResourceName("vendor.com/gpu"), root / "x.sock")
    with pytest.raises(
        PluginUnavailable, match=r"^plugin vendor.com/gpu: failed to dial device plugin: .*x\.sock: no listener"
    ):
        async with connected(nobody, Settings(dial=0.05)):
            pass


async def test_an_error_in_the_block_passes_unchanged(root: Path) -> None:
    with pytest.raises(PluginRefused, match=r"^plugin p: mine$"):
        async with connected_to(root):
            raise PluginRefused("p", "mine")


@pytest.mark.spec("DP-8.07")
async def test_every_list_arrives_complete_and_in_order(root: Path) -> None:
    lists = [numbered(count, (0, 1)) for count in (3, 1, 0, 5)]
    async with connected_to(root, devices=lists[0]) as (fake, plugin), aclosing(plugin.devices()) as devices:
        assert await anext(devices) == lists[0]
        for sent in lists[1:]:
            fake.set_devices(sent)
        assert [await anext(devices) for _ in lists[1:]] == lists[1:]


@pytest.mark.spec("DP-8.12")
async def test_a_plugin_that_fails_to_list_is_called_once(root: Path) -> None:
    async with connected_to(root) as (fake, plugin):
        fake.fail("ListAndWatch", "INTERNAL", "no list")
        with pytest.raises(PluginRefused, match="ListAndWatch failed: no list"):
            await anext(plugin.devices())
        assert len(fake.asked("ListAndWatch")) == 1


async def test_the_stream_of_lists_can_be_opened_again(root: Path) -> None:
    async with connected_to(root) as (fake, plugin):
        for _ in range(2):
            async with aclosing(plugin.devices()) as devices:
                assert await anext(devices) == fake.devices
                fake.end_streams()
                with pytest.raises(PluginUnavailable, match="the plugin closed the stream"):
                    await anext(devices)


async def test_the_stream_of_lists_ends_with_the_process(root: Path) -> None:
    async with connected_to(root) as (fake, plugin), aclosing(plugin.devices()) as devices:
        await anext(devices)
        await fake.crash()
        with pytest.raises(PluginUnavailable), deadline():
            await anext(devices)


@pytest.mark.spec("DP-9.19")
async def test_an_invalid_list_ends_the_stream(root: Path) -> None:
    async with connected_to(root) as (fake, plugin), aclosing(plugin.devices()) as devices:
        await anext(devices)
        fake.send(b"\x0a\x00")
        with pytest.raises(PluginRefused, match="its device list has a device without id"):
            await anext(devices)


@pytest.mark.spec("DP-9.31")
async def test_a_list_of_20_megabytes_does_not_block_the_event_loop(root: Path) -> None:
    many = [Device(DeviceID(f"{number:06d}-{'x' * 390}"), nodes=(number % 2,)) for number in range(50_000)]
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0.001)
            turns += 1

    async with connected_to(root, devices=many) as (_, plugin), aclosing(plugin.devices()) as devices:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn)
            assert await anext(devices) == tuple(many)
            tasks.cancel_scope.cancel()
    assert turns > 10


@pytest.mark.spec("DP-8.08")
async def test_what_a_plugin_grants_and_prefers_is_passed_on_unchanged(root: Path) -> None:
    async with connected_to(root) as (fake, plugin):
        fake.grant = lambda ids: GRANT
        fake.prefer = lambda available, must_include, size: ["c", "unknown", "c"]
        assert await plugin.allocate([B, A]) == GRANT
        assert await plugin.preferred([A, B, C], [B], 2) == ("c", "unknown", "c")
        await plugin.pre_start([C, A])
        assert fake.calls[1:] == [
            Call("Allocate", ("b", "a")),
            Call("GetPreferredAllocation", ("a", "b", "c"), ("b",), 2),
            Call("PreStartContainer", ("c", "a")),
        ]


async def test_no_container_response_is_refused_for_allocate_and_no_preference_otherwise(root: Path) -> None:
    async with connected_to(root) as (fake, plugin):
        fake.answer("Allocate", NO_RESPONSE)
        fake.answer("GetPreferredAllocation", NO_RESPONSE)
        with pytest.raises(PluginRefused, match="its answer to Allocate has no container response"):
            await plugin.allocate([A])
        assert await plugin.preferred([A], [], 1) == ()


async def test_a_grant_of_more_than_a_megabyte_is_refused(root: Path) -> None:
    async with connected_to(root) as (fake, plugin):
        fake.answer("Allocate", large_answer(5 << 20))
        with pytest.raises(PluginRefused, match=r"its answer to Allocate has 52429.. bytes, more than the 1048576"):
            await plugin.allocate([A])
        fake.answer("Allocate", large_answer(1_000_000))
        assert len((await plugin.allocate([A])).env["LARGE"]) == 1_000_000


async def test_an_answer_that_is_not_utf8_is_refused(root: Path) -> None:
    async with connected_to(root) as (fake, plugin):
        fake.answer("Allocate", b"\x0a\x09\x0a\x07\x0a\x01A\x12\x02\xff\xff")
        with pytest.raises(PluginRefused, match="its answer to Allocate cannot be decoded"):
            await plugin.allocate([A])


@pytest.mark.spec("DP-9.04")
@pytest.mark.parametrize("method", ["Allocate", "GetPreferredAllocation", "PreStartContainer"])
async def test_every_call_has_a_deadline(root: Path, method: str) -> None:
    settings = Settings(allocate=0.05, preferred=0.05, pre_start=0.05)
    async with connected_to(root, settings) as (fake, plugin):
        fake.hang(method)
        with pytest.raises(PluginUnavailable, match=rf"{method} was not answered within 0\.05 s"):
            match method:
                case "Allocate":
                    await plugin.allocate([A])
                case "PreStartContainer":
                    await plugin.pre_start([A])
                case _:
                    await plugin.preferred([A], [], 1)


@pytest.mark.spec("DP-8.09")
async def test_a_plugin_whose_block_has_ended_is_stopped(root: Path) -> None:
    async with FakeDevicePlugin(root) as fake:
        async with connected(offer(fake)) as plugin:
            pass
        for call in (plugin.allocate([A]), plugin.preferred([A], [], 1), plugin.pre_start([A])):
            with pytest.raises(PluginUnavailable, match=r"endpoint .* has been stopped"):
                await call


@pytest.mark.parametrize("api", [Api.V1ALPHA2, Api.V1ALPHA1])
async def test_a_plugin_of_an_old_api_is_only_called_to_list_and_allocate(root: Path, api: Api) -> None:
    async with connected_to(root, api=api) as (fake, plugin), aclosing(plugin.devices()) as devices:
        assert plugin.options == Options()
        assert await anext(devices) == fake.devices
        assert await plugin.preferred([A], [], 1) == ()
        await plugin.pre_start([A])
        fake.grant = lambda ids: Grant(env={"IDS": ",".join(ids)}, mounts=GRANT.mounts[:1], devices=GRANT.devices)
        granted = await plugin.allocate([A])
        assert granted == Grant(env={"IDS": "a"}, mounts=GRANT.mounts[:1], devices=GRANT.devices)
        assert fake.calls == [Call("ListAndWatch"), Call("Allocate", ("a",))]


async def test_annotations_of_a_1_9_plugin_are_supported(root: Path) -> None:
    async with connected_to(root, api=Api.V1ALPHA2) as (fake, plugin):
        fake.grant = lambda ids: Grant(annotations={"k": "v"})
        assert await plugin.allocate([A]) == Grant(annotations={"k": "v"})


async def test_the_grants_of_a_1_8_plugin_for_each_device_are_merged(root: Path) -> None:
    def grant(ids: object) -> Grant:
        [id] = list(ids)  # type: ignore[call-overload]
        own = DeviceNode(f"/dev/{id}", f"/dev/h{id}", "rw")
        return Grant(
            {"ID": id, f"ID_{id}": "x"}, (Mount("/lib", f"/lib/{id}"),), (own, DeviceNode("/dev/ctl", f"/c{id}"))
        )

    async with connected_to(root, api=Api.V1ALPHA1) as (fake, plugin):
        fake.grant = grant
        assert await plugin.allocate([B, A]) == Grant(
            env={"ID": "b", "ID_a": "x", "ID_b": "x"},
            mounts=(Mount("/lib", "/lib/b"),),
            devices=(
                DeviceNode("/dev/b", "/dev/hb", "rw"),
                DeviceNode("/dev/ctl", "/cb"),
                DeviceNode("/dev/a", "/dev/ha", "rw"),
            ),
        )


def device(id: str, health: str = "Healthy", *nodes: int) -> Device:
    return Device(DeviceID(id), health, nodes)


def decoded(*devices: Device, limit: int = 100) -> tuple[Device, ...]:
    return DeviceLists(ResourceName("vendor.com/gpu"), limit).decode(device_list(devices))


def test_a_list_is_decoded_in_order_with_health_and_nodes() -> None:
    devices = (device("b", "Unhealthy"), device("a", "Healthy", 0, 1), device("c", "on fire"))
    assert decoded(*devices) == devices


def test_an_empty_list_is_valid() -> None:
    assert decoded() == ()


@pytest.mark.spec("DP-9.19")
def test_the_last_entry_of_a_repeated_id_counts() -> None:
    assert decoded(device("a"), device("b"), device("a", "Unhealthy")) == (device("a", "Unhealthy"), device("b"))


@pytest.mark.spec("DP-9.19")
def test_a_list_with_an_empty_id_is_refused() -> None:
    with pytest.raises(PluginRefused, match=r"^plugin vendor.com/gpu: its device list has a device without id$"):
        decoded(device("a"), device(""))


@pytest.mark.spec("DP-9.31")
def test_ids_of_up_to_1024_bytes_are_accepted_and_longer_ones_refused() -> None:
    assert decoded(device("x" * 1024)) == (device("x" * 1024),)
    with pytest.raises(PluginRefused, match="id has 1025 bytes, more than 1024: xxx"):
        decoded(device("x" * 1025))
    with pytest.raises(PluginRefused, match="id has 1026 bytes"):
        decoded(device("ä" * 513))


@pytest.mark.spec("DP-9.31")
def test_a_list_of_too_many_devices_is_refused() -> None:
    assert len(decoded(*map(device, "abc"), limit=3)) == 3
    with pytest.raises(PluginRefused, match="has 4 devices, more than the 3 that are accepted"):
        decoded(*map(device, "abcd"), limit=3)


def test_impossible_numa_nodes_are_dropped_and_the_rest_is_sorted() -> None:
    odd = (device("a", "Healthy", 1, -1, 0, 64, 1), device("b", "Healthy", 63), device("c", "Healthy", -1))
    assert [one.nodes for one in decoded(*odd)] == [(0, 1), (63,), ()]


def test_each_kind_of_ignored_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    lists = DeviceLists(ResourceName("vendor.com/gpu"), 100)
    blob = device_list([device("x" * 64), device("y" * 64), device("a"), device("a"), device("b", "Healthy", 99)])
    with caplog.at_level(logging.WARNING):
        lists.decode(blob)
        lists.decode(blob)
    assert [record.getMessage() for record in caplog.records] == [
        "device id longer than the documented 63 characters",
        "NUMA nodes outside of 0 to 63 ignored",
        "device listed more than once; the last entry counts",
    ]


@pytest.mark.parametrize("blob", [b"\x0a\x05", b"\xff\xff", b"\x0a\x03\x0a\x01\xff"])
def test_bytes_that_are_not_a_list_are_refused(blob: bytes) -> None:
    with pytest.raises(PluginRefused, match="its device list cannot be decoded"):
        DeviceLists(ResourceName("vendor.com/gpu"), 100).decode(blob)
