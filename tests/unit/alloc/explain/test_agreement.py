"""What constraints leave."""

from collections.abc import Callable

from devlet.alloc.allocator import Allocator, Fit
from devlet.alloc.explain.agreement import at_odds, objections, refusals, value_text
from devlet.alloc.explain.standing import Scene, look
from devlet.alloc.problems import Problem

SLICES = [
    {"pool": "g", "devices": ["g0 a.example.com/root=x", "g1 a.example.com/root=y", "g2"]},
    {"pool": "b/n", "devices": ["n0 a.example.com/root=x", "n1 a.example.com/root=z"]},
]
CLAIM = {"requests": ["gpu a", "nic b"], "constraints": ["match a.example.com/root"]}


def texts(scene: Scene, request: int) -> dict[str, str]:
    ((option, seen),) = scene.seen[0, request]
    return {entry.device.name: text for entry, (_, text) in objections(scene, option, seen).items()}


def test_devices_without_the_attribute_or_with_an_unshared_value_are_excluded(
    scene: Callable[..., Scene],
) -> None:
    found = texts(scene(slices=SLICES, claims=[CLAIM]), 0)
    assert found == {
        "g1": 'a.example.com/root is "y", but request nic has 0 free devices with that value and needs 1',
        "g2": "has no attribute a.example.com/root",
    }


def test_a_constraint_of_other_requests_is_ignored(scene: Callable[..., Scene]) -> None:
    claim = {"requests": ["gpu a", "nic b"], "constraints": ["match a.example.com/root of nic"]}
    assert texts(scene(slices=SLICES, claims=[claim]), 0) == {}


def test_devices_that_disagree_with_the_chosen_ones_are_refused(read: Callable[..., Problem]) -> None:
    problem = read(slices=SLICES, claims=[CLAIM])
    allocator = Allocator(problem.inventory)
    fit = allocator.allocate(problem.nodes[0], problem.claims)
    assert isinstance(fit, Fit)
    scene = look(allocator, allocator.layout(problem.nodes[0]), allocator.read(problem.claims))
    ((option, seen),) = scene.seen[0, 0]
    found = {str(entry.device.name): text for entry, (_, text) in refusals(scene, option, seen, fit).items()}
    assert found["g1"] == 'a.example.com/root is "y", the chosen have "x"'
    assert found["g2"] == "has no attribute a.example.com/root"


def test_a_long_list_of_values_is_shortened() -> None:
    assert value_text([("ints", number) for number in range(8)]) == "0, 1, 2, 3, 4, 5, …"
    assert value_text([("strings", "x"), ("bools", True)]) == '"x", true'


def test_one_or_two_requests_without_a_common_value_are_found_by_counting(scene: Callable[..., Scene]) -> None:
    rule = ["match a.example.com/root"]
    assert at_odds(scene(slices=SLICES, claims=[{"requests": ["nic 2 b"], "constraints": rule}])) == (0, 0, (0,))
    apart = [SLICES[0], {"pool": "b/n", "devices": ["n0 a.example.com/root=z"]}]
    assert at_odds(scene(slices=apart, claims=[CLAIM])) == (0, 0, (0, 1))
    assert at_odds(scene(slices=SLICES, claims=[CLAIM])) is None
