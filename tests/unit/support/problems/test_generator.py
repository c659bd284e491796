import json

import pytest

from tests.support.problems.generator import THEMES, bench_problem, mixed_problem, random_problem, symmetric_problem


def test_the_same_seed_and_themes_give_the_same_problem() -> None:
    assert random_problem(1, ["lists", "match"]) == random_problem(1, ["match", "lists"])
    assert random_problem(1) != random_problem(2)


def test_an_unknown_theme_is_named() -> None:
    with pytest.raises(ValueError, match="no theme 'tains'; there are admin, all, "):
        random_problem(1, ["tains"])


def test_a_problem_has_the_members_of_the_vectors_and_is_json() -> None:
    problem = random_problem(4)
    assert list(problem) == ["name", "theme", "nodes", "classes", "slices", "allocated", "claims"]
    assert json.loads(json.dumps(problem)) == problem


def test_objects_of_a_kind_have_different_names() -> None:
    for seed in range(200):
        problem = mixed_problem(seed)
        for kind in ("nodes", "classes", "slices", "claims"):
            names = [each["metadata"]["name"] for each in problem[kind]]
            assert len(names) == len(set(names)), (seed, kind)


def test_mixed_problems_have_what_they_always_should_and_in_the_end_everything() -> None:
    seen = {theme for seed in range(50) for theme in mixed_problem(seed, ["lists"])["theme"].split("+")}
    assert seen == set(THEMES)
    assert all("lists" in mixed_problem(seed, ["lists"])["theme"].split("+") for seed in range(50))


def test_a_bench_problem_has_as_many_claims_as_devices_that_suit_them() -> None:
    problem = bench_problem(3, 8)
    devices = [device for each in problem["slices"] for device in each["spec"]["devices"]]
    assert (problem["name"], problem["mode"], len(devices)) == ("fill-rotate-3x8", "fill-rotate", 24)
    assert len(problem["claims"]) == sum(device["attributes"]["model"] == {"string": "a100"} for device in devices) == 6


def test_a_bench_problem_can_have_another_number_of_claims() -> None:
    assert len(bench_problem(2, 4, claims=9, mode="fill")["claims"]) == 9


def test_the_devices_of_a_symmetric_problem_differ_in_name_only() -> None:
    problem = symmetric_problem(6, 3)
    devices = [dict(device) for device in problem["slices"][0]["spec"]["devices"]]
    assert len({device.pop("name") for device in devices}) == 6
    assert all(device == devices[0] for device in devices)
    requests = problem["claims"][0]["spec"]["devices"]["requests"]
    assert [(r["name"], r["exactly"]["count"]) for r in requests] == [("r", 3), ("q", 6)]
