from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.cluster.client import MergePatch
from devlet.errors import Cause, Conflict, Forbidden, InvalidInput, InvalidObject, Unavailable
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import NODES, RESOURCE_SLICES
from devlet.sdk.slices.controller import SlicePublisher, Statistics
from devlet.sdk.slices.dropped import DroppedFields
from devlet.sdk.values import Capacity, Device, Pool, Taint
from devlet.testing.waiting import deadline, until
from tests.support.workloads import node as made_node

if TYPE_CHECKING:
    from tests.unit.sdk.slices.conftest import Hook, World

pytestmark = pytest.mark.anyio

INVALID = InvalidObject("ResourceSlice.resource.k8s.io", "x", [Cause("FieldValueInvalid", "no", "spec")])
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}


def devices(count: int, **members: Any) -> list[Device]:
    return [Device(f"d{i}", **members) for i in range(count)]


def raises(error: Exception, verb: str, times: int = 1, after: int = 0) -> "Hook":
    """So many calls of that kind fail, the first ones or those after some that do not."""
    left, pass_by = [times], [after]

    async def hook(found: str, document: Document) -> None:
        if found == verb and pass_by[0] > 0:
            pass_by[0] -= 1
        elif found == verb and left[0] > 0:
            left[0] -= 1
            raise error

    return hook


def texts(world: "World") -> list[str]:
    return [str(error) for error, _ in world.reports]


@pytest.mark.spec("DN-10.P01")
@pytest.mark.spec("DN-6.4h")
async def test_an_empty_pool_is_one_slice_that_belongs_to_the_node(world: "World") -> None:
    async with world.running({"node": Pool()}):
        (found,) = await world.slices()
    node = await world.store.get(NODES, "node")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node", "uid": node["metadata"]["uid"], "controller": True}
    assert found["metadata"]["ownerReferences"] == [owner]
    assert found["metadata"]["generateName"] == "00000-gpu.example.com-node-"
    assert found["spec"]["nodeName"] == "node"
    assert await world.numbers() == [("00000", 1, 1, 0)] and not world.reports


@pytest.mark.spec("DN-6.4h")
async def test_the_node_is_looked_up_once(world: "World") -> None:
    async with world.running({"node": Pool(), "more": Pool()}):
        await world.publish({"node": Pool(devices(3))})
    assert world.server.calls.count("get node") == 1


async def test_after_a_foreign_delete_the_node_is_looked_up_again(world: "World") -> None:
    """A node that was deleted and made again has another UID, and the garbage collector took its slices."""
    async with world.running({"node": Pool()}):
        await world.quiet()
        await world.store.delete(NODES, "node")
        new = await world.store.create(NODES, {"metadata": {"name": "node"}})
        for each in await world.slices():
            await world.store.delete(RESOURCE_SLICES, each["metadata"]["name"])
        await world.planned(30)
        await world.clock.advance(30)
        (found,) = await world.seen(bool)
    assert found["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]


async def test_look_again_restores_deleted_slices_at_once(world: "World") -> None:
    async with world.running({"node": Pool(devices(1))}):
        await world.quiet()
        for each in await world.slices():
            await world.store.delete(RESOURCE_SLICES, each["metadata"]["name"])
        await world.planned(30)
        world.publisher.look_again()
        (found,) = await world.seen(bool)
    assert [each["name"] for each in found["spec"]["devices"]] == ["d0"]


async def test_a_look_at_what_is_as_it_should_be_makes_no_call(world: "World") -> None:
    world.publisher.look_again()
    async with world.running({"node": Pool(devices(1))}):
        await world.quiet()
        world.publisher.look_again()
        await world.publisher.published()
    assert world.publisher.statistics == Statistics(creates=1)


@pytest.mark.spec("DN-10.P02")
@pytest.mark.spec("DN-10.P22")
@pytest.mark.parametrize("count", [0, 1, 128, 200])
async def test_a_second_look_at_the_same_pools_makes_no_call(world: "World", count: int) -> None:
    pools = {"node": Pool(devices(count, attributes={"a": 1}, capacity={"memory": "1024Mi"}))}
    async with world.running(pools):
        assert await world.publish(pools) == []
        await world.quiet()
        assert await world.publish(pools) == []


@pytest.mark.spec("DN-6.3a")
@pytest.mark.spec("DN-10.P03")
async def test_a_change_is_written_at_once(world: "World") -> None:
    async with world.running({"node": Pool(devices(1))}):
        assert await world.publish({"node": Pool(devices(2))}) == ["update"]
        assert await world.numbers() == [("00000", 1, 1, 2)]
        assert world.publisher.statistics == Statistics(creates=1, updates=1, deletes=0)


@pytest.mark.spec("DN-10.P11")
async def test_all_devices_of_a_full_slice_are_changed(world: "World") -> None:
    async with world.running({"node": Pool(devices(128))}):
        assert await world.publish({"node": Pool(devices(128, attributes={"a": 1}))}) == ["update"]
        (found,) = await world.slices()
        assert all(device["attributes"] == {"a": {"int": 1}} for device in found["spec"]["devices"])


@pytest.mark.spec("DN-10.P09")
@pytest.mark.spec("DN-10.P08")
async def test_pools_grow_and_shrink_by_whole_slices(world: "World") -> None:
    async with world.running({"node": Pool(devices(128))}):
        assert await world.publish({"node": Pool(devices(300))}) == ["update", "create", "create"]
        assert await world.numbers() == [("00000", 2, 3, 128), ("00001", 2, 3, 128), ("00002", 2, 3, 44)]
        assert await world.publish({"node": Pool(devices(200))}) == ["delete", "update", "update"]
        assert await world.numbers() == [("00000", 3, 2, 128), ("00001", 3, 2, 72)]


@pytest.mark.spec("DN-10.P10")
@pytest.mark.spec("DN-6.4i")
async def test_a_pool_that_is_no_longer_wanted_is_deleted(world: "World") -> None:
    async with world.running({"node": Pool(devices(200)), "other": Pool()}):
        assert await world.publish({"other": Pool()}) == ["delete", "delete"]
        assert await world.numbers() == [("00000", 1, 1, 0)]
        assert await world.publish({}) == ["delete"]
        assert world.publisher.statistics.deletes == 3


@pytest.mark.spec("DN-10.P23")
async def test_a_thousand_devices_are_written_once_and_replaced_by_nothing(world: "World") -> None:
    big = Pool(
        devices(1000, attributes={f"a{i}": "x" * 64 for i in range(20)}, taints=[Taint(f"k{i}") for i in range(4)])
    )
    async with world.running({"node": big}):
        found = await world.numbers()
        assert [each[3] for each in found] == [64] * 15 + [40] and {each[1:3] for each in found} == {(1, 16)}
        calls = list(world.server.calls)
        await world.clock.advance(120)
        await world.quiet()
        assert world.server.calls == calls
        assert await world.publish({"node": Pool()}) == [*["delete"] * 15, "update"]
        assert await world.numbers() == [("00000", 1, 1, 0)]
        assert not world.reports


# What others do


async def foreign_delete(world: "World") -> None:
    for each in await world.slices():
        await world.store.delete(RESOURCE_SLICES, each["metadata"]["name"])


async def foreign_change(world: "World", name: str = "nonsense") -> None:
    for each in await world.slices():
        patch = MergePatch({"spec": {"devices": [{"name": name}]}})
        await world.store.patch(RESOURCE_SLICES, each["metadata"]["name"], patch)


async def foreign_surplus(world: "World") -> None:
    for each in await world.slices():
        metadata = {"name": "another", "labels": {"by": "somebody"}}
        await world.store.create(RESOURCE_SLICES, {**each, "metadata": metadata})


@pytest.mark.spec("DN-6.3b")
@pytest.mark.parametrize("meddle", [foreign_delete, foreign_change, foreign_surplus])
async def test_what_others_did_is_repaired_after_the_delay_and_not_before(
    world: "World", meddle: Callable[["World"], Any]
) -> None:
    async with world.running({"node": Pool(devices(2))}):
        await world.quiet()
        before = list(world.server.calls)
        await meddle(world)
        await world.planned(30)
        await world.clock.advance(29.9)
        assert world.server.calls == before
        await world.clock.advance(0.1)

        def is_repaired(found: list[Document]) -> bool:
            return [[d["name"] for d in each["spec"].get("devices") or ()] for each in found] == [["d0", "d1"]]

        await world.seen(is_repaired)
        await world.quiet()
        await world.seen(is_repaired)


@pytest.mark.spec("DN-6.5b")
async def test_a_new_slice_that_was_deleted_unseen_is_created_again_after_a_while(world: "World") -> None:
    async def deaf(kind: str, document: Document) -> None:
        await anyio.sleep_forever()

    world.server.hearing = deaf
    async with world.running({"node": Pool(devices(1))}):
        await foreign_delete(world)
        assert await world.publish({"node": Pool(devices(1))}) == []
        await world.planned(60)
        await world.clock.advance(60)
        await world.seen(bool)


@pytest.mark.spec("DN-6.5a")
async def test_a_change_before_the_watch_tells_of_the_last_one_makes_nothing_twice(world: "World") -> None:
    async def deaf(kind: str, document: Document) -> None:
        await anyio.sleep_forever()

    world.server.hearing = deaf
    async with world.running({"node": Pool(devices(1))}):
        assert await world.publish({"node": Pool(devices(2))}) == ["update"]
        assert await world.publish({"node": Pool(devices(129))}) == ["update", "create"]
        assert await world.publish({"node": Pool(devices(130))}) == ["update"]
        assert await world.numbers() == [("00000", 2, 2, 128), ("00001", 2, 2, 2)]


@pytest.mark.spec("DN-10.P17")
async def test_slices_of_an_older_driver_are_taken_over(world: "World") -> None:
    async with world.running({"node": Pool(devices(300))}):
        pass
    for each in await world.slices():
        old = {"name": f"gpu.example.com-{each['metadata']['name'][:5]}"}
        await world.store.create(RESOURCE_SLICES, {**each, "metadata": old})
        await world.store.delete(RESOURCE_SLICES, each["metadata"]["name"])
    world.make()
    async with world.running():
        assert await world.publish({"node": Pool(devices(300))}) == ["delete"] * 3 + ["create"] * 3
        assert {each[1] for each in await world.numbers()} == {2}


@pytest.mark.spec("DN-6.8")
async def test_slices_stay_when_the_driver_ends_and_are_found_when_it_returns(world: "World") -> None:
    async with world.running({"node": Pool(devices(3)), "old": Pool()}):
        pass
    assert len(await world.slices()) == 2
    world.make()
    async with world.running():
        assert await world.publish({"node": Pool(devices(3))}) == []
        await world.clock.advance(30)
        await world.seen(lambda found: len(found) == 1)


async def test_nothing_is_touched_before_the_driver_says_what_it_has(world: "World") -> None:
    async with world.running({"node": Pool(devices(3)), "old": Pool()}):
        pass
    world.make()
    async with world.running():
        await world.quiet()
        assert len(await world.slices()) == 2
        assert await world.publish({"node": Pool(devices(3))}) == ["delete"]


@pytest.mark.spec("DN-6.2a")
async def test_slices_of_others_are_none_of_our_business(world: "World") -> None:
    pool = {"name": "node", "generation": 5, "resourceSliceCount": 1}
    for driver, node in (("gpu.example.com", "n2"), ("other.example.com", "node")):
        spec = {"driver": driver, "nodeName": node, "pool": pool}
        await world.store.create(RESOURCE_SLICES, {"metadata": {"generateName": "x"}, "spec": spec})
    async with world.running({"node": Pool()}):
        assert sorted(each[1] for each in await world.numbers()) == [1, 5, 5]
        await world.publish({})
        await world.quiet()
        assert len(await world.slices()) == 2


# Taints


def taints(found: list[Document]) -> dict[str, dict[str, str]]:
    return {
        device["name"]: {taint["key"]: taint["timeAdded"] for taint in device.get("taints") or ()}
        for each in found
        for device in each["spec"].get("devices") or ()
    }


async def made_older(world: "World") -> None:
    """As if the taints had been there for long."""
    for each in await world.slices():
        for device in each["spec"]["devices"]:
            for i, taint in enumerate(device.get("taints") or ()):
                taint["timeAdded"] = f"2020-01-0{i + 1}T00:00:00Z"
        await world.store.update(RESOURCE_SLICES, each)


@pytest.mark.spec("DN-10.P12")
@pytest.mark.spec("DN-11.09")
async def test_taints_keep_their_times_wherever_their_device_goes(world: "World") -> None:
    tainted = Device("d", taints=[Taint("x"), Taint("y")])
    async with world.running({"node": Pool([tainted])}):
        assert await world.publish({"node": Pool([tainted])}) == []
    await made_older(world)
    world.make()
    async with world.running():
        more = Device("d", taints=[Taint("x"), Taint("y"), Taint("z")])
        assert await world.publish({"node": Pool([*devices(128), more])}) == ["update", "create"]
        found = taints(await world.slices())["d"]
        assert (found["x"], found["y"]) == ("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z")
        assert found["z"] > "2026"
        assert await world.publish({"node": Pool([*devices(128), more])}) == []


@pytest.mark.spec("DN-10.P12")
async def test_a_time_that_the_server_gave_survives_the_loss_of_the_slice(world: "World") -> None:
    pools = {"node": Pool([Device("d", taints=[Taint("x")])])}
    async with world.running(pools):
        pass
    await made_older(world)
    world.make()
    async with world.running(pools):
        await world.quiet()
        await foreign_delete(world)
        await world.planned(30)
        await world.clock.advance(30)
        assert taints(await world.seen(bool)) == {"d": {"x": "2020-01-01T00:00:00Z"}}


async def test_a_taint_that_comes_back_is_a_new_one(world: "World") -> None:
    async with world.running({"node": Pool([Device("d", taints=[Taint("x")])])}):
        pass
    await made_older(world)
    world.make()
    async with world.running({"node": Pool([Device("d")])}):
        await world.publish({"node": Pool([Device("d", taints=[Taint("x")])])})
        assert taints(await world.slices())["d"]["x"] > "2026"


# Fields that the server drops

_POLICY = {"default": "1", "validRange": {"min": "1"}}


@pytest.mark.spec("DN-10.P13")
@pytest.mark.spec("DN-6.4j")
@pytest.mark.parametrize(
    ("gate", "pool", "left_out"),
    [
        ("DRADeviceTaints", Pool([Device("d", taints=[Taint("x")])]), ("taints",)),
        (
            "DRAConsumableCapacity",
            Pool([Device("d", capacity={"m": Capacity(2, _POLICY)}, allow_multiple_allocations=True)]),
            ("allowMultipleAllocations", "capacity"),
        ),
        (
            "DRAPartitionableDevices",
            Pool([Device("d", consumes={"s": {"c": 1}})], counters={"s": {"c": 2}}),
            ("consumesCounters", "sharedCounters"),
        ),
        (
            "DRADeviceBindingConditions",
            Pool([Device("d", more={"bindingConditions": ["a"], "bindingFailureConditions": ["b"]})]),
            ("bindingConditions", "bindingFailureConditions"),
        ),
        ("unknown", Pool([Device("d", attributes={"a": 1})]), ("attributes",)),
    ],
)
async def test_a_field_that_the_server_drops_is_reported_once(
    world: "World", gate: str, pool: Pool, left_out: tuple[str, ...]
) -> None:
    def without(document: Document) -> Document:
        return {key: value for key, value in document.items() if key not in left_out}

    world.server.leave_out = lambda spec: {
        **without(spec),
        "devices": [without(device) for device in spec.get("devices") or ()],
    }
    async with world.running({"node": pool}):
        slices = len(await world.slices())
        errors = [error for error, _ in world.reports]
        assert all(isinstance(error, DroppedFields) for error in errors) and len(errors) == slices
        assert all(f"features are disabled: {gate} (" in str(error) for error in errors)
        assert await world.publish({"node": pool}) == []
        await world.quiet()
        assert await world.publish({"node": pool}) == []
        assert len(world.reports) == slices
        await world.publish({"node": Pool([Device("e")])})
        assert len(world.reports) == slices


# Where devices are


@pytest.mark.spec("DN-10.P14")
async def test_pools_without_a_node_are_where_they_say(world: "World") -> None:
    world.make(owner=None)
    async with world.running({"all": Pool(all_nodes=True), "some": Pool(node_selector=SELECTOR)}):
        found = {each["spec"]["pool"]["name"]: each for each in await world.slices()}
        assert found["all"]["spec"]["allNodes"] is True and found["some"]["spec"]["nodeSelector"] == SELECTOR
        assert all("nodeName" not in each["spec"] for each in found.values())
        assert all("ownerReferences" not in each["metadata"] for each in found.values())
        other = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k2", "operator": "Exists"}]}]}
        assert await world.publish({"all": Pool(all_nodes=True), "some": Pool(node_selector=other)}) == ["update"]
        local = Pool([Device("d", more={"nodeName": "n1"})])
        assert await world.publish({"all": Pool(all_nodes=True), "some": local}) == ["update"]
        assert not world.reports


@pytest.mark.spec("DN-10.P15")
@pytest.mark.spec("DN-6.9")
async def test_a_single_pool_belongs_to_the_node_and_is_seen_by_others(world: "World") -> None:
    pool = {"name": "of-n2", "generation": 5, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "allNodes": True, "pool": pool}
    await world.store.create(RESOURCE_SLICES, {"metadata": {"name": "theirs"}, "spec": spec})
    world.make(single_pool="mine")
    async with world.running({"mine": Pool(node_selector=SELECTOR)}):
        found = next(each for each in await world.slices() if each["metadata"]["name"] != "theirs")
        assert "nodeName" not in found["spec"] and found["metadata"]["ownerReferences"][0]["name"] == "node"
        for wrong in ({"other": Pool(all_nodes=True)}, {"mine": Pool(all_nodes=True), "other": Pool(all_nodes=True)}):
            assert await world.publish(wrong) == []
        assert texts(world) == [
            "only pool mine may be published (`single_pool`), but not other",
            "only pool mine may be published (`single_pool`), but not mine, other",
        ]
        await world.quiet()
        assert len(await world.slices()) == 2
        assert await world.publish({}) == ["delete"]
        await world.quiet()
        assert [each["metadata"]["name"] for each in await world.slices()] == ["theirs"]


# What goes wrong

_MISTAKES: Mapping[str, Pool] = {
    "device": Pool([Device("a"), Device("a")]),
    "set": Pool([Device("a", consumes={"x": {"c": 1}})]),
    "counter": Pool([Device("a", consumes={"s": {"x": 1}})], counters={"s": {"c": 1}}),
    "limit": Pool([Device("a", attributes={f"a{i}": 1 for i in range(40)})]),
}


@pytest.mark.spec("DN-10.P16")
@pytest.mark.spec("DN-6.4k")
@pytest.mark.parametrize("mistake", _MISTAKES)
async def test_a_mistake_in_any_pool_is_one_error_and_no_write(world: "World", mistake: str) -> None:
    async with world.running({"node": Pool(devices(1))}):
        before = await world.slices()
        assert await world.publish({"node": Pool(), "wrong": _MISTAKES[mistake]}) == []
        await world.quiet()
        assert await world.slices() == before
        ((error, text),) = world.reports
        assert isinstance(error, InvalidInput) and text == "pools not published" and "pool wrong" in str(error)


@pytest.mark.spec("DN-11.26")
async def test_report_may_publish_other_pools(world: "World") -> None:
    def report(error: Exception, text: str) -> None:
        world.reports.append((error, text))
        world.publisher.publish({"node": Pool(devices(1))})

    world.publisher = SlicePublisher(world.server, "gpu.example.com", "node", report, world.clock)
    async with world.running():
        await world.publish({"node": Pool([Device("a"), Device("a")])})
        assert await world.numbers() == [("00000", 1, 1, 1)] and len(world.reports) == 1


@pytest.mark.spec("DN-11.25")
async def test_a_cluster_that_does_not_answer_does_not_block(world: "World") -> None:
    world.server.before = raises(Unavailable("nobody there"), "list", 3)
    async with running(world.publisher.run):
        await world.publish({"node": Pool()})
        assert [(str(error), text) for error, text in world.reports] == [
            ("nobody there", "looking for ResourceSlice objects")
        ]

        async def look() -> list[Document]:
            await world.clock.advance(1)
            return await world.slices()

        await until(look)
        assert len(world.reports) == 1


async def test_a_missing_node_is_reported_once_with_what_to_do(world: "World") -> None:
    world.make("wrong")
    async with world.running({"wrong": Pool()}):

        async def tries() -> int:
            await world.clock.advance(60)
            return world.server.calls.count("get wrong")

        await until(tries, lambda found: found > 3)
        [(error, text)] = world.reports
        assert text == "processing ResourceSlice objects"
        assert str(error) == "node wrong does not exist: check --node-name or NODE_NAME"
        await world.store.create(NODES, made_node("wrong"))

        async def look() -> list[Document]:
            await world.clock.advance(60)
            return await world.slices()

        assert await until(look) and len(world.reports) == 1


async def test_devices_are_known_as_soon_as_they_are_to_be_published(world: "World") -> None:
    assert world.publisher.devices is None
    world.publisher.publish({"left": Pool(devices(1)), "right": Pool()})
    assert world.publisher.devices == {("left", "d0")}


@pytest.mark.spec("DN-6.6")
@pytest.mark.parametrize("verb", ["create", "update", "delete", "get"])
@pytest.mark.parametrize("done", [False, True])
async def test_a_write_that_fails_is_reported_and_done_again(world: "World", verb: str, done: bool) -> None:
    hook = raises(Unavailable("try later"), verb)
    first, second = ({"node": Pool(devices(129))}, {"node": Pool(devices(1))})
    async with world.running(None if verb in ("create", "get") else first):
        if done and verb != "get":
            world.server.after = hook
        else:
            world.server.before = hook
        await world.publish(first if verb in ("create", "get") else second)
        assert [(str(error), text) for error, text in world.reports] == [
            ("try later", "processing ResourceSlice objects")
        ]
        wanted = [128, 1] if verb in ("create", "get") else [1]
        await world.clock.sleeping(1)
        await world.clock.advance(0.06)

        async def sizes() -> list[int]:
            return [each[3] for each in await world.numbers()]

        await until(sizes, lambda found: found == wanted)
        await world.quiet()
        assert await sizes() == wanted and len(world.reports) == 1
        indexes = [each[0] for each in await world.numbers()]
        assert len(set(indexes)) == len(indexes)


@pytest.mark.spec("DN-6.5c")
async def test_a_create_whose_answer_was_lost_is_not_repeated(world: "World") -> None:
    """Even if the watch has not told of it when it is tried again: the cluster is asked."""

    async def deaf(kind: str, document: Document) -> None:
        await anyio.sleep_forever()

    world.server.hearing = deaf
    world.server.after = raises(Unavailable("lost"), "create")
    async with world.running({"node": Pool(devices(1))}):
        assert texts(world) == ["lost"]
        assert await world.publish({"node": Pool(devices(1))}) == []
        assert await world.publish({"node": Pool(devices(2))}) == ["update"]
        assert len(await world.slices()) == 1


@pytest.mark.spec("DN-6.6")
async def test_a_conflict_is_read_again(world: "World") -> None:
    async def deaf(kind: str, document: Document) -> None:
        await anyio.sleep_forever()

    world.server.hearing = deaf
    async with world.running({"node": Pool(devices(1))}):
        await foreign_change(world)
        assert await world.publish({"node": Pool(devices(2))}) == ["update"]
        ((error, _),) = world.reports
        assert isinstance(error, Conflict)
        assert await world.publish({"node": Pool(devices(2))}) == ["update"]
        assert await world.numbers() == [("00000", 1, 1, 2)]


@pytest.mark.spec("DN-6.6a")
async def test_what_the_server_refuses_is_reported_once_and_not_tried_again(world: "World") -> None:
    world.server.before = raises(INVALID, "create", 1000, after=1)
    pools = {"node": Pool(devices(300))}
    async with world.running(pools):
        assert [(error, text) for error, text in world.reports] == [(INVALID, "processing ResourceSlice objects")]
        calls = list(world.server.calls)
        for _ in range(5):
            await world.quiet()
            assert await world.publish(pools) == []
        assert world.server.calls == calls and len(world.reports) == 1


@pytest.mark.spec("DN-6.6a")
async def test_other_pools_than_the_refused_ones_are_tried(world: "World") -> None:
    world.server.before = raises(INVALID, "create", 1)
    async with world.running({"node": Pool(devices(1))}):
        assert not await world.slices()
        assert await world.publish({"node": Pool(devices(2))}) == ["create"]
        assert await world.numbers() == [("00000", 1, 1, 2)] and len(world.reports) == 1


@pytest.mark.spec("DN-6.6a")
async def test_a_refused_pool_is_retried_if_another_client_changes_the_slices(world: "World") -> None:
    world.server.before = raises(INVALID, "update", 2)
    async with world.running({"node": Pool(devices(1))}):
        assert await world.publish({"node": Pool(devices(2))}) == ["update"]
        await world.quiet()
        for expected in (1, 2):
            await foreign_change(world, f"nonsense-{expected}")
            await world.planned(30)
            await world.clock.advance(30)
            await world.quiet()
            found = await world.slices()
            assert len(found[0]["spec"]["devices"]) == expected
        assert len(world.reports) == 1, "the same refusal of the same content"


@pytest.mark.spec("DN-6.6b")
async def test_a_forbidden_write_is_retried_and_reported_once(world: "World") -> None:
    """Rights are given without a trace in the slices. Names that a server makes up differ each time."""

    async def forbidden(verb: str, document: Document) -> None:
        if verb == "create" and (calls := world.server.calls.count("create")) < 20:
            raise Forbidden(f'resourceslices "x{calls}" is forbidden')

    world.server.before = forbidden
    async with world.running({"node": Pool()}):
        await world.retried(bool)
        assert texts(world) == ['resourceslices "x1" is forbidden']


async def test_a_forbidden_write_is_retried_even_if_another_client_changed_the_slices(world: "World") -> None:
    """The change is looked at first, and must not be the last look."""
    world.server.before = raises(Forbidden("not you"), "update", 15)
    async with world.running({"node": Pool(devices(1))}):
        await world.quiet()
        await foreign_change(world)
        await world.publish({"node": Pool(devices(2))})
        await world.retried(lambda found: len(found[0]["spec"]["devices"]) == 2)
        assert texts(world) == ["not you"]


async def test_a_look_asks_again_for_what_was_refused(world: "World") -> None:
    world.server.before = raises(INVALID, "create", 2)
    async with world.running({"node": Pool()}):
        for calls in (2, 3):
            assert not await world.slices()
            world.publisher.look_again()
            await until(_calls(world), calls.__eq__)
        await world.seen(bool)
        assert len(world.reports) == 1, "the same refusal of the same content"


def _calls(world: "World") -> Callable[[], Any]:
    async def count() -> int:
        return world.server.calls.count("create")

    return count


async def test_an_unknown_field_is_reported_once_and_published(world: "World") -> None:
    pools = {"node": Pool([Device("d", more={"bindsToNod": True})])}
    async with world.running(pools):
        await world.publish(pools)
        (found,) = await world.slices()
    assert found["spec"]["devices"][0]["bindsToNod"] is True
    text = "unknown fields: pool node, device d: bindsToNod (did you mean bindsToNode?)"
    assert [(str(error), doing) for error, doing in world.reports] == [(text, "pools published as they are")]


async def test_pools_may_change_while_they_are_written(world: "World") -> None:
    async def meanwhile(verb: str, document: Document) -> None:
        if document["spec"]["pool"]["resourceSliceCount"] == 2:
            world.publisher.publish({"node": Pool(devices(5))})

    world.server.before = _only_creates(meanwhile)
    async with world.running():
        await world.publish({"node": Pool(devices(200))})
        assert [each[3] for each in await world.numbers()] == [5]


def _only_creates(hook: "Hook") -> "Hook":
    async def only(verb: str, document: Document) -> None:
        if verb == "create":
            await hook(verb, document)

    return only


async def test_nothing_published_is_published_at_once(world: "World") -> None:
    with deadline():
        await world.publisher.published()


async def test_a_cancelled_publisher_has_not_published(world: "World") -> None:
    begun = anyio.Event()

    async def hang(verb: str, document: Document) -> None:
        if verb == "create":
            begun.set()
            await anyio.sleep_forever()

    world.server.before = hang
    async with running(world.publisher.run):
        world.publisher.publish({"node": Pool()})
        await begun.wait()
    with anyio.move_on_after(0) as scope:
        await world.publisher.published()
    assert scope.cancelled_caught
