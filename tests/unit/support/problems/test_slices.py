from collections import Counter
from typing import Any

from devlet.kit.dice import Dice
from tests.support.problems.slices import MOST_DEVICES, slices

NODES = [{"metadata": {"name": name}} for name in ("n0", "n1")]
REACHES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def many(*themes: str) -> list[list[dict[str, Any]]]:
    """The specs of many problems' slices."""
    return [[each["spec"] for each in slices(Dice(seed), themes, NODES)] for seed in range(100)]


def pools(specs: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for spec in specs:
        found.setdefault((spec["driver"], spec["pool"]["name"]), []).append(spec)
    return found


def test_a_pool_is_complete_of_one_node_and_small() -> None:
    for specs in many():
        for (_, name), pool in pools(specs).items():
            assert [spec["pool"]["resourceSliceCount"] for spec in pool] == [len(pool)] * len(pool)
            assert {spec["nodeName"] for spec in pool} == {name}
            assert 2 <= sum(len(spec["devices"]) for spec in pool) <= MOST_DEVICES


def test_slices_say_in_exactly_one_of_four_ways_where_they_can_be_used() -> None:
    used: Counter[str] = Counter()
    for specs in many("nodes", "partition"):
        for spec in specs:
            (way,) = (reach for reach in REACHES if reach in spec)
            used[way] += 1
    assert all(used[way] > 10 for way in REACHES)


def test_with_a_choice_per_device_each_device_has_one() -> None:
    specs = [spec for specs in many("nodes") for spec in specs if "perDeviceNodeSelection" in spec]
    assert all(any(reach in device for reach in REACHES[:3]) for spec in specs for device in spec["devices"])


def test_counters_have_slices_of_their_own() -> None:
    specs = [spec for specs in many("partition") for spec in specs]
    assert all(("devices" in spec) != ("sharedCounters" in spec) for spec in specs)
    assert any("sharedCounters" in spec for spec in specs)


def test_spoilt_pools_are_incomplete_invalid_or_of_two_generations() -> None:
    kinds: Counter[str] = Counter()
    for specs in many("pools"):
        for pool in pools(specs).values():
            devices = Counter(device["name"] for spec in pool for device in spec["devices"])
            kinds["generations"] += len({spec["pool"]["generation"] for spec in pool}) > 1
            kinds["count"] += any(spec["pool"]["resourceSliceCount"] != len(pool) for spec in pool)
            kinds["duplicate"] += any(count > 1 for count in devices.values())
            kinds["counters"] += any("consumesCounters" in device for spec in pool for device in spec["devices"])
    assert all(kinds[kind] > 3 for kind in ("generations", "count", "duplicate", "counters"))
