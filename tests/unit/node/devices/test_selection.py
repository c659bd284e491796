import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import NotAllocated
from devlet.node.devices.selection import Ask, Split, Want, choose, split, still_allocated
from devlet.node.topology import masks
from devlet.objects.identifiers import DeviceID, ResourceName
from devlet.plugins.devices import Device

GPU = ResourceName("vendor.com/gpu")


def ids(text: str) -> tuple[DeviceID, ...]:
    return tuple(map(DeviceID, text.split()))


def want(
    count: int,
    devices: str,
    *,
    taken: str = "",
    reusable: str = "",
    nodes: dict[str, tuple[int, ...]] | None = None,
    near: set[int] | None = None,
    prefers: bool = False,
) -> Want:
    """`near` is the hint's mask as a set of nodes."""
    known = {id: Device(id, nodes=(nodes or {}).get(id, ())) for id in ids(devices)}
    mask = None if near is None else sum(1 << node for node in near)
    return Want(GPU, count, known, ids(devices), set(ids(taken)), ids(reusable), mask, prefers)


def numa(**nodes: str) -> dict[str, tuple[int, ...]]:
    """Return devices by node, as in `numa(n0="a b", n1="c")`."""
    found: dict[str, tuple[int, ...]] = {}
    for node, devices in nodes.items():
        for device in devices.split():
            found[device] = (*found.get(device, ()), int(node[1:]))
    return found


def test_devices_are_chosen_in_their_order() -> None:
    assert choose(want(2, "a b c")) == ("a", "b")
    assert choose(want(2, "a b c", taken="a")) == ("b", "c")


@pytest.mark.spec("DP-8.24")
def test_too_few_free_devices_are_refused_with_both_numbers() -> None:
    with pytest.raises(NotAllocated) as refused:
        choose(want(1, "a b", taken="a b"))
    expected = "requested number of devices unavailable for vendor.com/gpu. Requested: 1, Available: 0"
    assert str(refused.value) == expected


def test_a_huge_request_is_refused_like_any_other() -> None:
    with pytest.raises(NotAllocated, match="Requested: 9999999999999999999, Available: 2"):
        choose(want(9999999999999999999, "a b"))


@pytest.mark.spec("DP-8.26")
def test_without_healthy_devices_nothing_is_chosen() -> None:
    with pytest.raises(NotAllocated, match="no healthy devices present; cannot allocate unhealthy devices vendor"):
        choose(want(1, ""))
    with pytest.raises(NotAllocated, match="no healthy devices present"):
        still_allocated(GPU, ids("a"), 1, (), "pod")


@pytest.mark.spec("DP-8.28")
def test_a_recorded_device_that_is_no_longer_healthy_is_refused() -> None:
    with pytest.raises(NotAllocated, match="previously allocated devices are no longer healthy"):
        still_allocated(GPU, ids("a"), 1, ids("b"), "pod")
    still_allocated(GPU, ids("a"), 1, ids("a b"), "pod")


def test_a_changed_request_is_refused() -> None:
    with pytest.raises(NotAllocated, match=r'pod "u" container "c" changed request for resource ".*" from 1 to 2'):
        still_allocated(GPU, ids("a"), 2, ids("a b"), 'pod "u" container "c"')


def test_reusable_devices_come_first_and_need_not_be_free() -> None:
    assert choose(want(2, "a b c", taken="c", reusable="c")) == ("c", "a")
    assert choose(want(1, "a b c", taken="b c", reusable="b c")) == ("b",)


@pytest.mark.spec("DP-9.22")
def test_a_reusable_device_that_is_no_longer_healthy_is_not_reused() -> None:
    assert choose(want(1, "a b", reusable="broken")) == ("a",)


@pytest.mark.spec("DP-8.39")
def test_without_topology_there_is_nothing_to_align() -> None:
    assert choose(want(1, "a b", near={1})) == ("a",)
    assert choose(want(1, "a b", nodes=numa(n1="b"), near={1})) == ("b",)


@pytest.mark.spec("DP-8.40")
@pytest.mark.parametrize(
    ("count", "near", "expected"),
    [
        (1, {0}, {"a"}),
        (2, {1}, {"d", "e"}),
        (3, {0}, {"a", "b", "c"}),
        (4, {0}, {"a", "b", "c", "d"}),
    ],
)
def test_devices_on_the_hinted_node_come_first(count: int, near: set[int], expected: set[str]) -> None:
    chosen = choose(want(count, "a b c d e", nodes=numa(n0="a b c", n1="d e"), near=near))
    assert isinstance(chosen, tuple) and set(chosen) == expected


@pytest.mark.spec("DP-8.41")
def test_a_hint_of_two_nodes_uses_devices_of_both() -> None:
    nodes = numa(n0="x0 x1", n1="b0 b1", n2="y0", n3="d0 d1")
    chosen = choose(want(4, "x0 x1 b0 b1 y0 d0 d1", nodes=nodes, near={1, 3}))
    assert isinstance(chosen, tuple) and set(chosen) == {"b0", "b1", "d0", "d1"}


@pytest.mark.spec("DP-8.44")
def test_the_plugin_may_choose_among_aligned_and_reused_devices() -> None:
    nodes = numa(n0="a b c r", n1="d")
    asked = choose(want(2, "a b c d r", taken="r", reusable="r", nodes=nodes, near={0}, prefers=True))
    assert asked == Ask(available=ids("a b c r"), must_include=ids("r"), size=2)


@pytest.mark.spec("DP-8.44")
def test_too_few_aligned_devices_are_mandatory() -> None:
    nodes = numa(n0="a b", n1="c d")
    asked = choose(want(3, "a b c d", nodes=nodes, near={0}, prefers=True))
    assert asked == Ask(available=ids("a b c d"), must_include=ids("a b"), size=3)


def test_the_plugin_is_not_asked_when_there_is_no_choice() -> None:
    nodes = numa(n0="a b", n1="c d")
    assert choose(want(2, "a b c d", nodes=nodes, near={0}, prefers=True)) == ("a", "b")
    assert choose(want(1, "a b", taken="a", reusable="a", prefers=True)) == ("a",)


@pytest.mark.spec("DP-8.42")
def test_preferred_devices_that_are_aligned_are_taken_and_others_ignored() -> None:
    nodes = numa(n0="a b c", n1="d e")
    wanted = want(2, "a b c d e", nodes=nodes, near={0}, prefers=True)
    assert choose(wanted, ids("c b")) == ("c", "b")
    assert choose(wanted, ids("c d")) == ("c", "a")
    assert choose(wanted, ids("nonsense")) == ("a", "b")


@pytest.mark.spec("DP-8.43")
def test_without_aligned_devices_preferred_devices_of_other_nodes_count() -> None:
    nodes = numa(n0="a b c", n1="d e f")
    wanted = want(4, "a b c d e f", nodes=nodes, near={0}, prefers=True)
    assert choose(wanted, ids("a b c f")) == ("a", "b", "c", "f")
    assert choose(wanted, ids("nonsense")) == ("a", "b", "c", "d")


@given(
    st.integers(1, 6),
    st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.integers(0, 3), unique=True, max_size=2)),
    st.sets(st.sampled_from("abcdefgh")),
    st.none() | st.sets(st.integers(0, 3), min_size=1),
    st.lists(st.sampled_from("abcdefghz")),
)
def test_a_choice_is_complete_free_and_without_repetition(
    count: int,
    devices: dict[str, list[int]],
    taken: set[str],
    near: set[int] | None,
    preferred: list[str],
) -> None:
    nodes = {id: tuple(found) for id, found in devices.items()}
    wanted = want(count, " ".join(devices), taken=" ".join(taken), nodes=nodes, near=near, prefers=True)
    free = devices.keys() - taken
    try:
        chosen = choose(wanted, ids(" ".join(preferred)))
    except NotAllocated:
        assert len(free) < count
    else:
        assert isinstance(chosen, tuple) and len(set(chosen)) == count and free >= set(chosen)


def listed(**nodes: tuple[int, ...]) -> dict[DeviceID, Device]:
    return {DeviceID(id): Device(DeviceID(id), nodes=near) for id, near in nodes.items()}


def id_list(*names: str) -> list[DeviceID]:
    return [DeviceID(name) for name in names]


@pytest.mark.spec("DP-8.38")
def test_a_device_of_any_node_of_the_mask_is_aligned() -> None:
    devices = listed(both=(1, 2), other=(1,), here=(2,))
    assert split(list(devices), devices, masks.bits([2])) == Split(id_list("both", "here"), id_list("other"), [])


@pytest.mark.spec("DP-8.39")
def test_without_a_mask_all_devices_are_without_affinity() -> None:
    devices = listed(a=(1,), b=())
    assert split(list(devices), devices, None) == Split([], [], id_list("a", "b"))


@pytest.mark.spec("DP-8.39")
def test_without_topology_a_mask_changes_nothing() -> None:
    devices = listed(a=(), b=())
    assert split(list(devices), devices, masks.bits([0])) == Split([], [], id_list("a", "b"))


@pytest.mark.spec("DP-8.39")
def test_only_devices_with_topology_can_be_aligned() -> None:
    devices = listed(a=(), b=(1,), c=())
    assert split(list(devices), devices, masks.bits([1])) == Split(id_list("b"), [], id_list("a", "c"))


@pytest.mark.spec("DP-8.40")
def test_devices_of_other_nodes_are_unaligned() -> None:
    devices = listed(a0=(0,), b1=(1,), c0=(0,), d1=(1,), e0=(0,))
    assert split(list(devices), devices, masks.bits([0])) == Split(id_list("a0", "c0", "e0"), id_list("b1", "d1"), [])
    assert split(list(devices), devices, masks.bits([1])) == Split(id_list("b1", "d1"), id_list("a0", "c0", "e0"), [])


@pytest.mark.spec("DP-8.41")
def test_devices_of_all_nodes_of_the_mask_are_aligned() -> None:
    devices = listed(a=(0,), b=(1,), c=(1,), d=(2,), e=(3,), f=(3,))
    assert split(list(devices), devices, masks.bits([1, 3])).aligned == id_list("b", "c", "e", "f")


def test_nodes_with_fewer_devices_come_first_then_lower_ones() -> None:
    devices = listed(a=(0,), b=(0,), c=(1,), d=(2,), e=(3,), f=(3,), g=(4,), h=(5,))
    found = split(list(devices), devices, masks.bits([0, 1, 2]))
    assert found == Split(id_list("c", "d", "a", "b"), id_list("g", "h", "e", "f"), [])


def test_only_available_devices_count_for_a_node() -> None:
    devices = listed(a=(0,), b=(0,), c=(1,), d=(1,))
    assert split(id_list("a", "b", "d"), devices, masks.bits([0, 1])).aligned == id_list("d", "a", "b")


def test_devices_of_a_node_keep_their_order() -> None:
    devices = listed(a=(0,), b=(0,), c=(0,))
    assert split(id_list("c", "a", "b"), devices, masks.bits([0])).aligned == id_list("c", "a", "b")


@pytest.mark.spec("DP-9.05")
def test_a_device_that_is_not_listed_has_no_node() -> None:
    assert split(id_list("gone"), {}, masks.bits([0])) == Split([], [], id_list("gone"))


near = st.lists(st.integers(0, 4), max_size=3, unique=True).map(tuple)
inventories = st.dictionaries(st.text("abc", min_size=1, max_size=3).map(DeviceID), near, max_size=12)


@pytest.mark.spec("DP-9.30")
@given(inventories, st.data(), st.none() | st.integers(0, 31))
def test_every_available_device_is_in_exactly_one_part_in_a_stable_order(
    nodes: dict[DeviceID, tuple[int, ...]], data: st.DataObject, affinity: int | None
) -> None:
    devices = {id: Device(id, nodes=near) for id, near in nodes.items()}
    available = [id for id in devices if data.draw(st.booleans())]
    found = split(available, devices, affinity)
    assert sorted([*found.aligned, *found.unaligned, *found.no_affinity]) == sorted(available)
    assert found == split(available, dict(reversed(devices.items())), affinity)


@given(inventories, st.integers(0, 31))
def test_a_device_is_aligned_exactly_if_it_touches_the_mask(
    nodes: dict[DeviceID, tuple[int, ...]], affinity: int
) -> None:
    found = split(list(nodes), {id: Device(id, nodes=near) for id, near in nodes.items()}, affinity)
    assert set(found.aligned) == {id for id, near in nodes.items() if masks.bits(near) & affinity}
    assert set(found.no_affinity) == {id for id, near in nodes.items() if not near}
