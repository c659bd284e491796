"""Each sentence is one that the scheduler says; then a number or a word in it is another."""

from collections.abc import Sequence

import pytest

from tests.support.allocation.supply import DeviceKey
from tests.support.chaos.texts import Option, Summary, is_true, read

SELECTOR = "device.attributes['d'].index < 3"


def keys(count: int) -> frozenset[DeviceKey]:
    return frozenset(DeviceKey("d", "n1", f"gpu-{i}") for i in range(count))


def option(number: int, *, free: int = 0, matching: int = 8, here: int = 8) -> Option:
    return Option(number, "c", (SELECTOR,), here, here, keys(matching), keys(free), lambda part: part == SELECTOR)


def never(_: Sequence[str]) -> bool:
    return False


def test_a_summary_has_nodes_and_causes() -> None:
    assert read(
        "0/3 nodes are available: 2 Insufficient cpu; 1 node(s): request gpu needs 9 devices, the node has 8"
    ) == (Summary(3, ((2, "Insufficient cpu"), (1, "node(s): request gpu needs 9 devices, the node has 8"))))
    assert read("0/1 nodes are available: 1 node(s): request a: none of its alternatives: x no; y no") == (
        Summary(1, ((1, "node(s): request a: none of its alternatives: x no; y no"),))
    )


@pytest.mark.parametrize("text", ["", "no luck", "0/1 nodes are available: ", "0/1 nodes are available: rain"])
def test_what_is_no_summary_is_none(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("found", "right", "wrong"),
    [
        (
            option(2, free=1),
            "needs 2 devices, 1 is free of 8 that match (7 in use)",
            [
                "needs 3 devices, 1 is free of 8 that match (7 in use)",
                "needs 2 devices, 0 are free of 8 that match (7 in use)",
                "needs 2 devices, 1 is free of 7 that match (7 in use)",
                "needs 2 devices, 1 is free of 8 that match (6 in use)",
                "needs 2 devices, 1 is free of 8 that match (7 tainted)",
                "needs 2 devices, the node has 8",
                "finds no free devices (in use)",
                "needs 2 devices, it rains",
            ],
        ),
        (option(2, free=1), "finds too few free devices (in use)", ["finds no devices on the node"]),
        (option(1), "finds no free devices (in use)", ["finds too few free devices (in use)"]),
        (
            option(9, free=8),
            "needs 9 devices, the node has 8",
            [
                "needs 9 devices, the node has 7",
                "needs 9 devices, the node has none",
                "needs 9 devices, 8 are free of 8 that match (0 in use)",
            ],
        ),
        (option(9), "needs more devices than the node has", ["finds no devices on the node"]),
        (option(1, here=0, matching=0), "needs 1 device, the node has none", []),
        (option(1, here=0, matching=0), "finds no devices on the node", ["needs more devices than the node has"]),
        (
            option(1, matching=0),
            f"needs 1 device, 0 of 8 of class c match its selectors: {SELECTOR} is false (selector #0: index is 4)",
            [
                "needs 1 device, 1 of 8 of class c matches its selectors",
                "needs 1 device, 0 of 7 of class c match its selectors",
                "needs 1 device, 0 of 8 of class d match its selectors",
                "needs 1 device, 0 of 8 of class c match its selectors: true is false (selector #0)",
                "needs 1 device, 0 are free of 0 that match (0 in use)",
            ],
        ),
        (
            option(1, matching=0),
            f"finds no devices that match {SELECTOR}",
            ["finds no devices that match true", f"finds too few devices that match {SELECTOR}"],
        ),
    ],
)
def test_a_sentence_about_a_request_is_true_with_its_own_numbers_only(
    found: Option, right: str, wrong: list[str]
) -> None:
    requests = {"request gpu": {"": found}}
    assert is_true(f"request gpu {right}", requests, never)
    assert not is_true(f"request fpga {right}", requests, never)
    assert [text for text in wrong if is_true(f"request gpu {text}", requests, never)] == []


def test_there_is_no_such_sentence_about_a_request_that_has_what_it_needs() -> None:
    requests = {"request gpu": {"": option(2, free=2)}}
    assert not is_true("request gpu needs 2 devices, 2 are free of 8 that match (6 in use)", requests, never)


def test_of_alternatives_all_have_to_be_told() -> None:
    requests = {"request gpu": {"many": option(4, free=0), "few": option(1, free=0)}}
    many, few = ("needs 4 devices, 0 are free of 8 that match (8 in use)", "finds no free devices (in use)")
    begin = "request gpu: none of its alternatives:"
    assert is_true(f"{begin} many {many}; few {few}", requests, never)
    assert not is_true(f"{begin} many {many}", requests, never)
    assert not is_true(f"{begin} many {many}; few {many}", requests, never)
    assert not is_true(f"{begin} few {few}; many {many}", requests, never)
    assert not is_true(f"request gpu {many}", requests, never)


SEVERAL = {
    "claim default/a, request gpu": {"": option(1, free=2)},
    "claim default/b, request gpu": {"": option(2, free=2)},
}
A, B = SEVERAL
NEED = f"{A} (1 device) and {B} (2 devices) need"


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        (f"{NEED} 3 devices together, but only 2 are free and match any of them", True),
        (f"{NEED} 4 devices together, but only 2 are free and match any of them", False),
        (f"{NEED} 3 devices together, 1 is free that match any of them", False),
        (
            f"{A} (2 devices) and {B} (2 devices) need 3 devices together, but only 2 are free and match any of them",
            False,
        ),
        (f"{A} and {B} together need more devices than are free", True),
        (f"{A} and rain and {B} together need more devices than are free", False),
        (f"{A} together need more devices than are free", False),
        ("claim default/c, request gpu together need more devices than are free", False),
    ],
)
def test_requests_that_need_more_than_there_is_together_are_counted(text: str, truth: bool) -> None:
    assert is_true(text, SEVERAL, never) is truth


def test_that_they_fit_one_by_one_and_not_together_is_asked_of_the_allocator() -> None:
    text = (
        f"{A} (1 device) and {B} (2 devices) can be satisfied separately but not together: they need the same devices"
    )
    assert is_true(text, SEVERAL, lambda names: len(names) == 1)
    assert not is_true(text, SEVERAL, lambda _: True)
    assert not is_true(text, SEVERAL, never)
