from typing import Any

import pytest

from devlet.kit.dice import Dice
from tests.support.problems.claims import allocated, claims, classes, references
from tests.support.problems.generator import THEMES

SHAREABLE = {"name": "d1", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
SLICE = {"spec": {"driver": "gpu.example.com", "pool": {"name": "p"}, "devices": [{"name": "d0"}, SHAREABLE]}}


def many(*themes: str) -> list[dict[str, Any]]:
    return [claim["spec"]["devices"] for seed in range(100) for claim in claims(Dice(seed), themes)]


def wishes(devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    requests = [request for each in devices for request in each["requests"]]
    return [wish for r in requests for wish in r.get("firstAvailable", [r.get("exactly")])]


@pytest.mark.parametrize(
    ("theme", "field"),
    [("admin", "adminAccess"), ("taints", "tolerations"), ("shared", "capacity")],
)
def test_a_theme_adds_its_field_to_requests(theme: str, field: str) -> None:
    assert any(field in wish for wish in wishes(many(theme)))
    assert not any(field in wish for wish in wishes(many()))


def test_without_themes_claims_are_plain() -> None:
    found = many()
    assert {key for each in found for key in each} == {"requests"}
    assert all("exactly" in request for each in found for request in each["requests"])
    assert {wish["allocationMode"] for wish in wishes(found)} == {"ExactCount"}


def test_requests_are_complete_so_that_nobody_has_to_fill_in_defaults() -> None:
    for wish in wishes(many(*THEMES)):
        assert wish["allocationMode"] in ("ExactCount", "All")
        assert ("count" in wish) == (wish["allocationMode"] == "ExactCount")


def test_classes_are_there_unless_errors_are_wanted() -> None:
    themes = [theme for theme in THEMES if theme != "errors"]
    there = {each["metadata"]["name"] for each in classes(themes)}
    assert {wish["deviceClassName"] for wish in wishes(many(*themes))} == there
    assert {wish["deviceClassName"] for wish in wishes(many(*THEMES))} == there | {"missing"}


def test_constraints_and_configuration_name_requests_of_the_claim() -> None:
    for devices in many(*THEMES):
        for each in (*devices.get("constraints", ()), *devices.get("config", ())):
            assert set(each.get("requests", ())) <= set(references(devices["requests"]))


def test_both_kinds_of_constraint_appear() -> None:
    found = [c for devices in many("match", "distinct", "lists") for c in devices.get("constraints", ())]
    assert {key for each in found for key in each} == {"matchAttribute", "distinctAttribute", "requests"}


def test_only_a_device_that_can_be_shared_is_allocated_in_shares() -> None:
    results = [
        (claim["metadata"]["uid"], result)
        for seed in range(100)
        for claim in allocated(Dice(seed), [SLICE])
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    assert {result["device"] for _, result in results if "shareID" in result} == {"d1"}
    assert any(result["device"] == "d1" and "shareID" not in result for _, result in results)
    assert any(result.get("adminAccess") for _, result in results)
    assert any(result["pool"] == "gone" for _, result in results)


def test_without_devices_nothing_is_allocated() -> None:
    assert allocated(Dice(1), [{"spec": {"driver": "d", "pool": {"name": "p"}, "sharedCounters": []}}]) == []
