"""When nodes are alike."""

from collections.abc import Callable
from typing import Any

import pytest

from devlet.alloc.explain.situations import situation
from devlet.alloc.explain.standing import Scene

Make = Callable[..., Scene]
SIMPLE: dict[str, Any] = {"slices": [{"pool": "p", "devices": ["d1 x=1", "d2 x=2"]}], "claims": [["r0 a x=1"]]}


def devices(*texts: str, **more: Any) -> dict[str, Any]:
    return SIMPLE | {"slices": [{"pool": "p", "devices": list(texts)}]} | more


def test_names_and_unused_attributes_make_no_difference(scene: Make) -> None:
    one = situation(scene(**devices("d1 x=1 uuid=1", "d2 x=2 uuid=2")))
    assert one == situation(scene(**devices("e1 x=1 uuid=3", "e2 x=3 uuid=4")))


@pytest.mark.parametrize(
    "other",
    [
        devices("d1 x=1"),
        devices("d1 x=1", "d2 x=1"),
        devices("d1 x=1 !NoSchedule", "d2 x=2"),
        devices("d1 x=1 shared", "d2 x=2"),
        devices("d1 x=1", "d2 x=2", allocated=["p/d1"]),
        devices("d1 x=1 memory:4(default=1,min=1)", "d2 x=2"),
        SIMPLE | {"slices": [{"pool": "p", "devices": ["d1 x=1"]}, {"pool": "q", "devices": ["d2 x=2"]}]},
        SIMPLE | {"slices": [{"pool": "p", "devices": ["d1 x=1", "d2 x=2"], "of": 2}]},
    ],
)
def test_relevant_values_make_a_difference(scene: Make, other: dict[str, Any]) -> None:
    assert situation(scene(**SIMPLE)) != situation(scene(**other))


def test_a_missing_value_to_compare_makes_a_difference(scene: Make) -> None:
    claims = [{"requests": ["r0 a"], "constraints": ["match a.example.com/root"]}]
    one, other = (devices(f"d1 {words}", claims=claims) for words in ("root=x", ""))
    assert situation(scene(**one)) != situation(scene(**other))


def test_other_values_on_the_same_devices_make_no_difference(scene: Make) -> None:
    claims = [{"requests": ["r0 2 a"], "constraints": ["match a.example.com/root"]}]
    one, renamed, other = (
        situation(scene(**devices(*(f"d{i} a.example.com/root={root}" for i, root in enumerate(roots)), claims=claims)))
        for roots in ("xxy", "vvw", "xyy")
    )
    assert one == renamed
    assert one != other
