"""Merging of hints."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.topology import masks
from devlet.node.topology.hints import Hint, Hints, Mask
from devlet.node.topology.machine import Machine, simulated
from devlet.node.topology.merge import Pick, best_count, better, closest, hint_lists, intersections, merge, narrowest
from devlet.objects.identifiers import ResourceName

GPU, NIC = ResourceName("example.com/gpu"), ResourceName("example.com/nic")

# Four nodes in a ring of pairs: 0-1 and 2-3 are near, 1-2 less, the ends are far.
RING = Machine((0, 1, 2, 3), ((10, 11, 12, 12), (11, 10, 12, 12), (12, 12, 10, 11), (12, 12, 11, 10)))


def yes(*nodes: int) -> Hint:
    return Hint(masks.bits(nodes), True)


def no(*nodes: int) -> Hint:
    return Hint(masks.bits(nodes), False)


ANY = Hint(None, True)
NEVER = Hint(None, False)


def test_a_provider_without_resources_has_no_preference() -> None:
    assert [list(hints) for hints in hint_lists([None, {}])] == [[ANY], [ANY]]


def test_no_preference_and_impossible_become_different_hints() -> None:
    hints: Hints = {GPU: None, NIC: ()}
    assert [list(each) for each in hint_lists([hints])] == [[ANY], [NEVER]]


def test_every_resource_of_every_provider_has_a_list() -> None:
    provided: list[Hints] = [{GPU: [yes(0)], NIC: [yes(1)]}, {GPU: [no(0)]}]
    assert [list(each) for each in hint_lists(provided)] == [[yes(0)], [yes(1)], [no(0)]]


@pytest.mark.spec("DP-8.68")
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], 0),
        ([[ANY], [NEVER]], 0),
        ([[yes(0, 1)]], 2),
        ([[yes(0, 1)], [yes(0, 1, 2)]], 3),
        ([[yes(0, 1), yes(0, 1, 2)], [yes(0, 1, 2), no(0, 1, 2, 3)]], 3),
        ([[yes(0, 1, 2)], [ANY]], 3),
        ([[]], 0),
    ],
)
def test_the_best_count_is_the_most_that_a_resource_needs_at_its_narrowest(
    lists: list[list[Hint]], expected: int
) -> None:
    assert best_count(lists) == expected


A, B = "current", "candidate"


@pytest.mark.spec("DP-8.69")
@pytest.mark.parametrize(
    ("current", "candidate", "best", "winner"),
    [
        (None, no(), -1, None),
        (yes(0), no(), 1, A),
        (no(0), yes(), 1, A),
        (None, no(0), 1, B),
        (None, yes(0), 1, B),
        # one preferred, the other not
        (yes(0, 1, 2), no(0), 1, A),
        (no(0), yes(0, 1, 2), 1, B),
        # both preferred
        (yes(0), yes(0), 1, A),
        (yes(0, 1), yes(0), 2, B),
        (yes(0), yes(0, 1), 2, A),
        (yes(1), yes(0), 1, B),
        (yes(0), yes(1), 1, A),
        # the current one has more nodes than the best count
        (no(0, 1, 2), no(0, 1, 2, 3), 2, A),
        (no(0, 1, 2, 3), no(0, 1, 2), 2, B),
        (no(1, 2, 3), no(0, 1, 2), 2, B),
        (no(0, 1, 2), no(1, 2, 3), 2, A),
        (no(0, 1, 2), no(2, 3), 2, B),
        (no(0, 1, 2), no(3), 2, B),
        # exactly as many
        (no(2, 3), no(0, 1, 2), 2, A),
        (no(2, 3), no(0), 2, A),
        (no(2, 3), no(0, 1), 2, B),
        (no(0, 1), no(2, 3), 2, A),
        # fewer
        (no(3), no(0, 1, 2, 3), 3, A),
        (no(3), no(0, 1, 2), 3, B),
        (no(3), no(0, 1), 3, B),
        (no(2, 3), no(0), 3, A),
        (no(1), no(0), 3, B),
        (no(0), no(1), 3, A),
        (no(0), no(0), 3, A),
    ],
)
def test_of_two_hints_the_better_one_is_kept(
    current: Hint | None, candidate: Hint, best: int, winner: str | None
) -> None:
    expected = {A: current, B: candidate, None: None}[winner]
    assert better(current, candidate, best) is expected


def test_closest_prefers_fewer_nodes_then_close_ones_then_low_ones() -> None:
    pick = closest(RING)
    assert pick(masks.bits([0, 1]), masks.bits([3])) == masks.bits([3])
    assert pick(masks.bits([1, 2]), masks.bits([2, 3])) == masks.bits([2, 3])
    assert pick(masks.bits([2, 3]), masks.bits([0, 1])) == masks.bits([0, 1])
    assert pick(masks.bits([0, 1]), masks.bits([2, 3])) == masks.bits([0, 1])


def test_distances_are_found_by_node_where_ids_have_gaps() -> None:
    pick = closest(Machine((1, 5, 9), ((10, 20, 30), (20, 10, 12), (30, 12, 10))))
    assert pick(masks.bits([1, 5]), masks.bits([5, 9])) == masks.bits([5, 9])


@pytest.mark.spec("DP-8.70")
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([[yes(0)], [yes(1)]], no(0, 1, 2, 3)),
        ([[yes(0)], [yes(0, 1)]], no(0)),
        ([[yes(0)], [no(0)]], no(0)),
        ([[yes(0)], [yes(0)]], yes(0)),
        ([[yes(0)], [ANY]], yes(0)),
        ([[yes(0)], [NEVER]], no(0)),
        ([[yes(0), yes(1), no(0, 1)], [yes(1)]], yes(1)),
        ([[no(0, 1, 2, 3), no(0, 1)], [no(0, 3)]], no(0, 3)),
        ([[no(0, 1, 2, 3), no(0, 1)], [no(1, 2), no(2, 3)]], no(1, 2)),
        ([[ANY]], yes(0, 1, 2, 3)),
        ([[NEVER]], no(0, 1, 2, 3)),
        ([[yes(0)], []], no(0, 1, 2, 3)),
    ],
)
def test_hints_are_merged_into_the_best_common_one(lists: list[list[Hint]], expected: Hint) -> None:
    assert merge(lists, masks.bits(range(4))) == expected


@pytest.mark.spec("DP-8.70")
def test_closest_nodes_win_if_they_are_requested() -> None:
    lists = [[no(0, 1, 2, 3), no(0, 1)], [no(1, 2), no(2, 3)]]
    assert merge(lists, masks.bits(range(4)), closest(RING)) == no(2, 3)


@pytest.mark.spec("DP-8.70")
def test_equally_narrow_preferred_hints_are_decided_by_lower_nodes() -> None:
    hints = [yes(0, 4), yes(0, 2)]
    assert merge([hints, hints], masks.bits(range(8))) == yes(0, 2)


@pytest.mark.spec("DP-8.71")
def test_without_lists_the_result_is_the_whole_machine() -> None:
    assert merge([], masks.bits([0, 1])) == yes(0, 1)


def test_nodes_that_the_machine_does_not_have_are_ignored() -> None:
    assert merge([[yes(1, 7)], [yes(1, 7)]], masks.bits([0, 1])) == yes(1)
    assert merge([[yes(7)]], masks.bits([0, 1])) == no(0, 1)


def literally(lists: Sequence[Sequence[Hint]], machine: Mask, pick: Pick) -> Hint:
    """Merge as the definition says: compare every combination."""
    best, found = best_count(lists), None
    for chosen in product(*lists):
        present = [hint.mask for hint in chosen if hint.mask is not None]
        mask = machine
        for each in present:
            mask &= each
        preferred = all(hint.preferred for hint in chosen) and len(set(present)) <= 1
        found = literally_better(found, Hint(mask, preferred), best, pick)
    return found or Hint(machine, False)


def literally_better(current: Hint | None, candidate: Hint, best: int, pick: Pick) -> Hint | None:
    if not candidate.mask:
        return current
    if current is None:
        return candidate
    if current.preferred != candidate.preferred:
        return current if current.preferred else candidate
    assert current.mask is not None
    picked = current if pick(current.mask, candidate.mask) == current.mask else candidate
    now, then = masks.count(current.mask), masks.count(candidate.mask)
    if current.preferred or now > best:
        return picked
    if now == best:
        return picked if then == best else current
    if then > best:
        return current
    if then == best or then > now:
        return candidate
    return current if then < now else picked


hints_of_four = st.builds(Hint, st.none() | st.integers(0, 31), st.booleans())  # node 4 is not in the machine
machines = st.sampled_from([masks.bits(range(4)), masks.bits([1, 3])])


@given(st.lists(st.lists(hints_of_four, max_size=6), max_size=4), st.sampled_from([narrowest, closest(RING)]), machines)
def test_merging_equals_comparing_the_whole_product(lists: list[list[Hint]], pick: Pick, machine: Mask) -> None:
    assert merge(lists, machine, pick) == literally(lists, machine, pick)


@given(hints_of_four, hints_of_four, hints_of_four, st.integers(0, 5))
def test_the_better_of_several_does_not_depend_on_their_sequence(a: Hint, b: Hint, c: Hint, best: int) -> None:
    def best_of(*hints: Hint) -> Hint | None:
        found = None
        for hint in hints:
            found = better(found, hint, best)
        return found

    assert best_of(a, b, c) == best_of(c, b, a) == best_of(b, a, c, b, a)


@pytest.mark.spec("DP-9.29")
def test_eight_resources_on_eight_nodes_are_merged_quickly() -> None:
    every = [Hint(mask, False) for mask in range(1, 256)]
    assert merge([every] * 8, 255, closest(simulated(8))) == Hint(1, False)


few = st.frozensets(st.integers(0, 2**64 - 1), max_size=20)


@st.composite
def dense(draw: st.DrawFn) -> set[int]:
    """Return most masks of eight nodes that have at least some number of nodes: counting is then cheaper than pairs."""
    least, needed = draw(st.integers(0, 5)), draw(st.sampled_from([0, 0b1, 0b1000_0000]))
    every = {mask for mask in range(256) if masks.count(mask) >= least and mask & needed == needed}
    return every - draw(st.frozensets(st.integers(0, 255), max_size=2))


@given(few, few)
def test_sparse_masks_are_intersected_like_all_pairs(left: frozenset[int], right: frozenset[int]) -> None:
    assert intersections(left, right) == {a & b for a in left for b in right}


@given(dense(), dense(), st.lists(st.integers(0, 63), min_size=8, max_size=8, unique=True))
def test_dense_masks_are_intersected_like_all_pairs(left: set[int], right: set[int], places: list[int]) -> None:
    def moved(every: set[int]) -> set[int]:
        return {masks.bits(places[node] for node in masks.nodes(mask)) for mask in every}

    left, right = moved(left), moved(right)
    assert intersections(left, right) == {a & b for a in left for b in right}


def test_empty_sets_have_no_intersections() -> None:
    assert intersections(set(), {1}) == set()
    assert intersections({1}, {2}) == {0}


@pytest.mark.spec("DP-9.29")
def test_sixteen_nodes_do_not_take_four_thousand_million_pairs() -> None:
    every = set(range(1, 2**16))
    assert intersections(every, every) == every | {0}
