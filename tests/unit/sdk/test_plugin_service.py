"""The service is called as gRPC would: bytes in, bytes out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import DevletError, InvalidInput, NotFound
from devlet.sdk.board import Board
from devlet.sdk.device_lists import DeviceList, device_list
from devlet.sdk.plugin_service import Optional, PluginService
from devlet.sdk.values import DeviceNode, Grant, Mount, PluginDevice
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

pytestmark = pytest.mark.anyio

LED = "example.com/led"
CONTEXT: Any = None


class Leds:
    """Answers as a test says."""

    resource = LED

    def __init__(self) -> None:
        self.grant: Any = Grant()
        self.choice: Sequence[str] = ()
        self.calls: list[tuple[Any, ...]] = []

    async def allocate(self, ids: Sequence[str]) -> Grant:
        self.calls.append(("allocate", *ids))
        return self.grant  # type: ignore[no-any-return]

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Sequence[str]:
        self.calls.append(("prefer", available, must_include, size))
        return self.choice

    async def pre_start(self, ids: Sequence[str]) -> None:
        self.calls.append(("pre_start", *ids))


def listing(*ids: str) -> DeviceList:
    return device_list(LED, map(PluginDevice, ids))


class ServicePart:
    def __init__(self, *ids: str, optional: Optional = Optional(), plugin: Leds | None = None) -> None:
        self.leds = plugin or Leds()
        self.board: Board[DeviceList] = Board()
        self.board.show(listing(*ids))
        self.service = PluginService(self.leds, self.board, optional)

    async def ask(self, method: str, request: Message | bytes) -> bytes:
        blob = request if isinstance(request, bytes) else request.SerializeToString()
        return await self.service.methods.unary[f"/v1beta1.DevicePlugin/{method}"](blob, CONTEXT)

    async def allocate(self, *containers: Sequence[str]) -> list[pb.ContainerAllocateResponse]:
        requests = [pb.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
        answer = await self.ask("Allocate", pb.AllocateRequest(container_requests=requests))
        return list(pb.AllocateResponse.FromString(answer).container_responses)

    async def prefer(self, available: Sequence[str], must: Sequence[str], size: int) -> list[str]:
        one = pb.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=must, allocation_size=size
        )
        answer = await self.ask("GetPreferredAllocation", pb.PreferredAllocationRequest(container_requests=[one]))
        [response] = pb.PreferredAllocationResponse.FromString(answer).container_responses
        return list(response.deviceIDs)

    def stream(self) -> Any:
        return self.service.methods.streams["/v1beta1.DevicePlugin/ListAndWatch"](b"", CONTEXT)


def ids(blob: bytes) -> list[str]:
    return [device.ID for device in pb.ListAndWatchResponse.FromString(blob).devices]


@pytest.mark.parametrize("pre_start", [False, True])
@pytest.mark.parametrize("preferred", [False, True])
async def test_the_options_are_those_of_the_plugin(pre_start: bool, preferred: bool) -> None:
    service = ServicePart(optional=Optional(pre_start, preferred))
    options = pb.DevicePluginOptions.FromString(await service.ask("GetDevicePluginOptions", b""))
    assert options.pre_start_required is pre_start
    assert options.get_preferred_allocation_available is preferred


@pytest.mark.spec("DP-8.07")
async def test_every_stream_begins_with_the_newest_list_and_goes_at_its_own_pace() -> None:
    service = ServicePart("a")
    early = service.stream()
    assert ids(await anext(early)) == ["a"]
    service.board.show(listing("a", "b"))
    late = service.stream()
    assert ids(await anext(late)) == ["a", "b"]
    service.board.show(listing("c"))
    assert ids(await anext(early)) == ["c"]  # who was slow gets no list that is out of date
    assert ids(await anext(late)) == ["c"]
    assert service.board.readers == 2
    await early.aclose()
    await late.aclose()
    assert service.board.readers == 0


async def test_each_container_request_is_allocated_for_itself() -> None:
    service = ServicePart("a", "b", "c")
    service.leds.grant = Grant(env={"X": "1"})
    one, other = await service.allocate(["a", "b"], ["c"])
    assert service.leds.calls == [("allocate", "a", "b"), ("allocate", "c")]
    assert one.envs == other.envs == {"X": "1"}


@pytest.mark.spec("DP-8.08")
async def test_a_grant_is_passed_on_with_paths_of_the_host_where_none_is_given() -> None:
    service = ServicePart("a")
    service.leds.grant = Grant(
        env={"X": "1"},
        devices=["/dev/a", DeviceNode("/dev/b", "/dev/c", "rwm")],
        mounts=[Mount("/d"), Mount("/e", "/f", read_only=False)],
        annotations={"k": "v"},
        cdi_devices=["example.com/led=a"],
    )
    [answer] = await service.allocate(["a"])
    assert answer == pb.ContainerAllocateResponse(
        envs={"X": "1"},
        devices=[
            pb.DeviceSpec(host_path="/dev/a", container_path="/dev/a", permissions="rw"),
            pb.DeviceSpec(host_path="/dev/b", container_path="/dev/c", permissions="rwm"),
        ],
        mounts=[
            pb.Mount(host_path="/d", container_path="/d", read_only=True),
            pb.Mount(host_path="/e", container_path="/f", read_only=False),
        ],
        annotations={"k": "v"},
        cdi_devices=[pb.CDIDevice(name="example.com/led=a")],
    )


@pytest.mark.parametrize(
    ("grant", "problem"),
    [
        ({"X": "1"}, "expected a Grant"),
        (Grant(env={"X": cast(str, 1)}), r"gave a Grant in which .*env: Expected `str`, got `int`"),
        (Grant(devices="/dev/null"), r"devices: Expected `array`, got `str`"),
        (Grant(devices=[cast(str, Path("/dev/null"))]), r"devices\[0\]: Expected `str .*`, got `PosixPath`"),
        (Grant(devices=[DeviceNode(cast(str, 3))]), r"devices\[0\].path: Expected `str`, got `int`"),
        (Grant(mounts=[cast(Mount, "/x")]), r"mounts\[0\]: Expected"),
        (Grant(devices=["null"]), "'null' is not an absolute path"),
        (Grant(devices=[DeviceNode("/dev/a", permissions="rx")]), "permissions of /dev/a are 'rx', expected some of r"),
        (Grant(mounts=[Mount("/a", "b")]), "'b' is not an absolute path"),
        (Grant(env={"A=B": "5"}), "env: 'A=B' is not the name of a variable"),
        (Grant(cdi_devices=["led"]), "'led' is not the name of a CDI device"),
    ],
)
async def test_a_grant_that_no_runtime_could_use_is_the_plugins_mistake(grant: Any, problem: str) -> None:
    service = ServicePart("a")
    service.leds.grant = grant
    with pytest.raises((TypeError, ValueError, DevletError), match=problem):
        await service.allocate(["a"])


class NotAsync(Leds):
    def allocate(self, ids: Sequence[str]) -> Any:
        return Grant()

    def pre_start(self, ids: Sequence[str]) -> Any:
        return None

    def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> Any:
        return available[:size]


async def test_a_method_without_async_is_named() -> None:
    service = ServicePart("a", plugin=NotAsync())
    expected = "expected `async def` and `return`"
    with pytest.raises(TypeError, match=rf"NotAsync.allocate\(\) gave a Grant, {expected}"):
        await service.allocate(["a"])
    with pytest.raises(TypeError, match=rf"NotAsync.prefer\(\) gave a tuple, {expected}"):
        await service.prefer(["a"], [], 1)
    with pytest.raises(TypeError, match=rf"NotAsync.pre_start\(\) gave a NoneType, {expected}"):
        await service.ask("PreStartContainer", pb.PreStartContainerRequest(devices_ids=["a"]))


class Ends(Leds):
    async def allocate(self, ids: Sequence[str]) -> Grant:
        raise SystemExit("no lamp")


async def test_a_call_that_would_end_the_process_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"Ends.allocate\(\) called sys.exit: raise an error instead: .*no lamp"):
        await ServicePart("a", plugin=Ends()).allocate(["a"])


async def test_nothing_is_allocated_if_one_container_asks_for_what_is_not_there() -> None:
    service = ServicePart("a")
    with pytest.raises(NotFound, match=r"example.com/led has no device b: it is not in the newest list"):
        await service.allocate(["a"], ["b"])
    assert service.leds.calls == []


@pytest.mark.parametrize(("asked", "problem"), [([], "names no device"), (["a", "a"], "names a device twice: a, a")])
async def test_a_request_for_nothing_or_for_the_same_twice_is_refused(asked: list[str], problem: str) -> None:
    service = ServicePart("a")
    with pytest.raises(InvalidInput, match=problem):
        await service.allocate(asked)
    with pytest.raises(InvalidInput, match=problem):
        await service.ask("PreStartContainer", pb.PreStartContainerRequest(devices_ids=asked))
    assert service.leds.calls == []


async def test_many_unknown_devices_are_not_all_named() -> None:
    with pytest.raises(NotFound, match=r"has no device x0, .*, x9 and 90 more: it is not"):
        await ServicePart("a").allocate([f"x{number}" for number in range(100)])


async def test_pre_start_gets_the_devices() -> None:
    service = ServicePart("a", "b")
    assert await service.ask("PreStartContainer", pb.PreStartContainerRequest(devices_ids=["b"])) == b""
    assert service.leds.calls == [("pre_start", "b")]
    with pytest.raises(NotFound, match="no device c"):
        await service.ask("PreStartContainer", pb.PreStartContainerRequest(devices_ids=["c"]))


async def test_a_preference_is_asked_for_and_passed_on() -> None:
    service = ServicePart("a", "b", "c")
    service.leds.choice = ["c", "a"]
    assert await service.prefer(["a", "b", "c"], ["a"], 2) == ["c", "a"]
    assert service.leds.calls == [("prefer", ("a", "b", "c"), ("a",), 2)]


async def test_no_preference_is_an_answer() -> None:
    assert await ServicePart("a", "b").prefer(["a", "b"], ["a"], 2) == []


async def test_a_device_that_was_just_removed_is_not_offered_and_no_request_is_refused() -> None:
    service = ServicePart("a", "c")
    service.leds.choice = ["a"]
    assert await service.prefer(["a", "b", "c"], [], 1) == ["a"]
    assert service.leds.calls == [("prefer", ("a", "c"), (), 1)]


@pytest.mark.parametrize(
    ("available", "must", "size", "problem"),
    [
        (["a", "b"], [], 3, "3 devices cannot be chosen, 2 are available"),
        (["a", "gone"], [], 2, "2 devices cannot be chosen, 1 are available"),
        (["a"], [], 0, "a preference for 0 devices, of which 0 are given, makes no sense"),
        (["a"], [], -1, "a preference for -1 devices"),
        (["a", "b"], ["a", "b"], 1, "a preference for 1 devices, of which 2 are given"),
        (["a"], ["b"], 1, "b must be among the chosen devices and is not available"),
        (["a"], ["gone"], 1, "has no device gone"),
    ],
)
async def test_a_preference_that_cannot_be_had_is_refused(
    available: list[str], must: list[str], size: int, problem: str
) -> None:
    service = ServicePart("a", "b")
    with pytest.raises((InvalidInput, NotFound), match=problem):
        await service.prefer(available, must, size)
    assert service.leds.calls == []


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        (["a", "b", "c"], "expected at most 2 different ones"),
        (["a", "a"], "expected at most 2 different ones"),
        (["a", "x"], "x is not available"),
        (["b", "c"], "a must be among them"),
    ],
)
async def test_a_choice_that_breaks_the_rules_is_the_plugins_mistake(choice: list[str], problem: str) -> None:
    service = ServicePart("a", "b", "c")
    service.leds.choice = choice
    with pytest.raises(ValueError, match=rf"prefer\(\) of example.com/led gave .*: {problem}"):
        await service.prefer(["a", "b", "c"], ["a"], 2)


@pytest.mark.parametrize("method", ["Allocate", "GetPreferredAllocation", "PreStartContainer"])
async def test_bytes_that_are_not_a_request_are_refused(method: str) -> None:
    with pytest.raises(InvalidInput, match=r"the request is not a valid \w+: "):
        await ServicePart("a").ask(method, b"\xff\xff\xff")


@given(st.binary(max_size=200), st.sampled_from(["Allocate", "GetPreferredAllocation", "PreStartContainer"]))
async def test_any_bytes_get_an_answer_or_an_error_with_a_meaning(blob: bytes, method: str) -> None:
    try:
        assert isinstance(await ServicePart("a").ask(method, blob), bytes)
    except DevletError as e:
        assert str(e)


@pytest.mark.parametrize("chosen", [None, "a", [1]])
async def test_a_preference_that_is_not_a_list_of_ids_is_reported(chosen: Any) -> None:
    service = ServicePart("a")
    service.leds.choice = chosen
    with pytest.raises(TypeError, match=r"prefer\(\) gave .*, expected a list of ids"):
        await service.prefer(["a"], [], 1)
