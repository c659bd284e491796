"""The inventory, and that it is the same however it came to be what it is."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from devlet.alloc.inventory import DeviceEntry, Inventory
from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import NodeName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.slice import ResourceSlice
from tests.support.allocation.shorthand import identity, problem


def slice_of(name: str, pool: str, *devices: str, at: str = "node-1", **more: Any) -> ResourceSlice:
    short = {"name": name, "pool": pool, "devices": list(devices), "at": at, "of": 1, **more}
    return view(ResourceSlice, problem({"case": "c", "slices": [short]})["slices"][0])


def holder(name: str, *held: str) -> ResourceClaim:
    """A claim that has devices, such as `p1/d1` or `p1/d1 shared lanes:2`."""
    claims = problem({"case": "c", "allocated": list(held)})["allocated"]
    results = [result for claim in claims for result in claim["status"]["allocation"]["devices"]["results"]]
    metadata = {"name": name, "namespace": "default"}
    return view(ResourceClaim, {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}})


def entry(inventory: Inventory, device: str) -> DeviceEntry:
    found = view(ResourceSlice, {"spec": {"driver": "a.example.com", "pool": {"name": identity(device)["pool"]}}})
    return next(
        each
        for slice_ in inventory.slices_of((found.spec.driver, found.spec.pool.name))
        for each in slice_.devices
        if each.device.name == identity(device)["device"]
    )


def names(entries: Any) -> list[str]:
    return [each.name for each in entries]


# Slices


def test_a_slice_of_a_node_is_there_for_that_node_alone() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1"), slice_of("s2", "p2", "d1", at="all")])
    assert names(inventory.slices_for(NodeName("node-1"))) == ["s1", "s2"]
    assert names(inventory.slices_for(NodeName("node-2"))) == ["s2"]
    assert names(inventory.slices()) == ["s1", "s2"]


@pytest.mark.spec("DA-3.3a")
def test_counters_of_one_node_are_there_for_all() -> None:
    inventory = Inventory([slice_of("s1", "p1", counters={"set1": {"n": 1}})])
    assert names(inventory.slices_for(NodeName("node-2"))) == ["s1"]


def test_a_slice_of_the_same_name_is_replaced() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1")])
    before = inventory.revisions.now
    inventory.put_slice(slice_of("s1", "p2", "d2", at="node-2"))
    assert inventory.revisions.now > before
    assert names(inventory.slices_for(NodeName("node-1"))) == []
    assert [each.device.name for each in next(inventory.slices()).devices] == ["d2"]


def test_a_removed_slice_is_found_nowhere() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1")])
    device = entry(inventory, "p1/d1").identity
    inventory.remove_slice("s1")
    inventory.remove_slice("s1")
    assert (names(inventory.slices()), inventory.find(device)) == ([], [])


@pytest.mark.parametrize("broken", ["d1 lanes:much", "d1 set1.n-=much"])
def test_an_invalid_slice_changes_nothing(broken: str) -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1"), slice_of("s2", "p2", "d1")])
    before = (inventory.revisions.now, names(inventory.slices()))
    with pytest.raises(InvalidInput, match=r"slice s1, device d1, .* 'much' is not a quantity"):
        inventory.put_slice(slice_of("s1", "p1", "d0", broken))
    assert (inventory.revisions.now, names(inventory.slices())) == before
    assert entry(inventory, "p1/d1").device.capacity == {}


def test_a_device_is_found_in_every_slice_that_has_it() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1"), slice_of("s2", "p1", "d1", generation=2)])
    assert names(each.slice for each in inventory.find(entry(inventory, "p1/d1").identity)) == ["s1", "s2"]


def test_devices_are_chosen_by_their_bits_in_order() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1", "d2", "d3")])
    slice_ = next(inventory.slices())
    assert [each.device.name for each in slice_.chosen(0b101)] == ["d1", "d3"]
    assert [each.device.name for each in slice_.chosen(0b111)] == ["d1", "d2", "d3"]
    assert slice_.chosen(0) == []


# Classes


def test_classes_come_and_go() -> None:
    gpu = view(DeviceClass, {"metadata": {"name": "gpu"}})
    inventory = Inventory([], [gpu])
    assert inventory.classes == {"gpu": gpu}
    inventory.remove_class("gpu")
    inventory.remove_class("gpu")
    assert inventory.classes == {}


# Claims


@pytest.mark.spec("DA-3.2a")
def test_a_claim_has_a_device_for_itself_until_it_is_released() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1", "d2")])
    inventory.hold(holder("c", "p1/d2"))
    assert [entry(inventory, f"p1/{d}").is_taken for d in ("d1", "d2")] == [False, True]
    assert [each.claim for each in inventory.holders(entry(inventory, "p1/d2").identity)] == ["c"]
    inventory.release("default", "c")
    inventory.release("default", "c")
    assert not entry(inventory, "p1/d2").is_allocated


def test_a_claim_that_is_noted_again_is_replaced() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1", "d2")])
    inventory.hold(holder("c", "p1/d1"))
    inventory.hold(holder("c", "p1/d2"))
    assert [entry(inventory, f"p1/{d}").is_taken for d in ("d1", "d2")] == [False, True]
    inventory.hold(holder("c"))
    assert not entry(inventory, "p1/d2").is_taken


def test_a_device_that_two_claims_have_stays_taken_until_both_are_released() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1")])
    inventory.hold(holder("c", "p1/d1"))
    inventory.hold(holder("d", "p1/d1"))
    inventory.release("default", "c")
    assert entry(inventory, "p1/d1").is_taken
    inventory.release("default", "d")
    assert not entry(inventory, "p1/d1").is_taken


@pytest.mark.spec("DA-3.2b")
def test_admin_access_takes_nothing_away() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1")])
    inventory.hold(holder("c", "p1/d1 admin"))
    assert not entry(inventory, "p1/d1").is_allocated
    assert inventory.holders(entry(inventory, "p1/d1").identity) == ()


@pytest.mark.spec("DA-3.2c")
def test_shares_add_up() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1 lanes:8 shared")])
    inventory.hold(holder("c", "p1/d1 shared lanes:1", "p1/d1 shared lanes:2"))
    inventory.hold(holder("d", "p1/d1 shared lanes:4"))
    device = entry(inventory, "p1/d1")
    assert (device.is_taken, device.is_allocated, device.shares) == (False, True, 3)
    assert device.consumed == {"lanes": 7 * 10**9}
    inventory.release("default", "c")
    assert device.consumed == {"lanes": 4 * 10**9}
    inventory.release("default", "d")
    assert device.shares == 0
    assert not device.is_allocated


def test_a_device_that_is_published_later_is_taken_already() -> None:
    inventory = Inventory()
    inventory.hold(holder("c", "p1/d1"))
    inventory.put_slice(slice_of("s1", "p1", "d1"))
    assert entry(inventory, "p1/d1").is_taken


def test_an_invalid_amount_is_named_and_changes_nothing() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1 lanes:8 shared", "d2")])
    inventory.hold(holder("c", "p1/d2"))
    text = "claim default/c, device a.example.com/p1/d1, consumed capacity lanes: 'much' is not a quantity"
    with pytest.raises(InvalidInput, match=text):
        inventory.hold(holder("c", "p1/d1 shared lanes:much"))
    assert entry(inventory, "p1/d2").is_taken
    assert not entry(inventory, "p1/d1").is_allocated


def test_a_slice_is_plain_if_its_devices_are_free_or_not() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1 lanes:8 x=1", "d2 ?Ready")])
    assert next(inventory.slices()).is_plain


@pytest.mark.parametrize("odd", ["shared", "!NoSchedule", "set1.n-=1", "lanes:8(default=1)", "lanes:-1"])
def test_a_slice_with_more_to_look_at_is_not_plain(odd: str) -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1", f"d2 {odd}")])
    assert not next(inventory.slices()).is_plain


def test_a_slice_is_not_plain_while_shares_are_left_of_a_device_that_is_no_longer_shared() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1 lanes:8")])
    before = inventory.revisions.now
    inventory.hold(holder("c", "p1/d1 shared lanes:8"))
    assert not next(inventory.slices()).is_plain
    assert inventory.revisions.now > before
    inventory.release("default", "c")
    assert next(inventory.slices()).is_plain


def test_what_claims_take_changes_no_revision_of_slices() -> None:
    inventory = Inventory([slice_of("s1", "p1", "d1", "d2 shared")])
    before = inventory.revisions.now
    inventory.hold(holder("c", "p1/d1", "p1/d2 shared"))
    inventory.release("default", "c")
    assert inventory.revisions.now == before


# However it came to be


def shown(inventory: Inventory) -> Document:
    """All that can be asked, in an order that does not depend on what came first."""
    slices = sorted(inventory.slices(), key=lambda each: each.name)
    return {
        "slices": [each.slice for each in slices],
        "plain": [each.is_plain for each in slices],
        "nodes": {node: sorted(names(inventory.slices_for(NodeName(node)))) for node in ("node-1", "node-2")},
        "pools": {each.pool: sorted(names(inventory.slices_of(each.pool))) for each in slices},
        "devices": [
            (
                str(device.identity),
                device.is_taken,
                device.shares,
                device.consumed,
                sorted((holder.claim, str(holder.result)) for holder in inventory.holders(device.identity)),
                sorted(other.slice.name for other in inventory.find(device.identity)),
            )
            for each in slices
            for device in each.devices
        ],
    }


DEVICES = st.lists(
    st.sampled_from(["d1", "d2", "d3 lanes:8 shared", "d1 lanes:8 shared", "d2 !NoSchedule"]), max_size=3
)
HELD = st.lists(
    st.sampled_from(["p1/d1", "p1/d2", "p2/d1", "p1/d3 shared lanes:1", "p1/d1 shared lanes:2", "p1/d2 admin"]),
    max_size=3,
    unique=True,
)


class Changes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.inventory = Inventory()
        self.slices: dict[str, ResourceSlice] = {}
        self.claims: dict[str, ResourceClaim] = {}

    @rule(
        name=st.sampled_from(["s1", "s2", "s3"]),
        pool=st.sampled_from(["p1", "p2"]),
        devices=DEVICES,
        at=st.sampled_from(["node-1", "node-2", "all"]),
    )
    def put_slice(self, name: str, pool: str, devices: list[str], at: str) -> None:
        self.slices[name] = slice_of(name, pool, *devices, at=at)
        self.inventory.put_slice(self.slices[name])

    @rule(name=st.sampled_from(["s1", "s2", "s3"]))
    def remove_slice(self, name: str) -> None:
        self.slices.pop(name, None)
        self.inventory.remove_slice(name)

    @rule(name=st.sampled_from(["c", "d"]), held=HELD)
    def hold(self, name: str, held: list[str]) -> None:
        self.claims[name] = holder(name, *held)
        self.inventory.hold(self.claims[name])

    @rule(name=st.sampled_from(["c", "d"]))
    def release(self, name: str) -> None:
        self.claims.pop(name, None)
        self.inventory.release("default", name)

    @rule()
    def put_something_broken(self) -> None:
        with pytest.raises(InvalidInput):
            self.inventory.put_slice(slice_of("s1", "p1", "d1", "d2 lanes:much"))

    @invariant()
    def it_is_as_if_made_anew(self) -> None:
        fresh = Inventory(self.slices.values())
        for claim in self.claims.values():
            fresh.hold(claim)
        assert shown(self.inventory) == shown(fresh)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=40, stateful_step_count=20)
