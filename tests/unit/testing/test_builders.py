"""Objects that an API accepts as they are."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from devlet.cluster.client import FieldValidation, WriteOptions
from devlet.cluster.store.store import open_store
from devlet.objects import kinds
from devlet.testing.builders import (
    DRIVER,
    Value,
    Version,
    claim,
    container,
    device,
    device_class,
    pod,
    request,
    resource_slice,
    template,
)

Attributes = dict[str, Value | Sequence[Value]]
STRICT = WriteOptions(field_validation=FieldValidation.STRICT)


@pytest.mark.anyio
async def test_everything_is_accepted_by_an_api_that_refuses_unknown_keys(root: Path) -> None:
    attributes: Attributes = {"model": "a", "fast": True, "numa": 1, "driver": Version("1.2.3"), "links": ["a", "b"]}
    taints = [{"key": "example.com/t", "effect": "NoSchedule"}]
    constraint = {"matchAttribute": "example.com/numa", "requests": ["a"]}
    made = [
        (kinds.RESOURCE_SLICES, resource_slice("n1", [device("d", attributes, {"memory": "1Gi"}, taints=taints), "e"])),
        (kinds.RESOURCE_SLICES, resource_slice("n1", 2, pool="other", generation=3, slices=2, name="second")),
        (kinds.DEVICE_CLASSES, device_class(extended="example.com/gpu")),
        (kinds.DEVICE_CLASSES, device_class("fast", select="true")),
        (kinds.RESOURCE_CLAIMS, claim("c", request("a", count=2), request("b"), constraints=[constraint])),
        (kinds.RESOURCE_CLAIM_TEMPLATES, template("t", count=3, select="true", device_class="fast")),
        (kinds.PODS, pod("one", claim="c", limits={"example.com/x": 1}, run_for="1s", exit_code=3, restart="Never")),
        (kinds.PODS, pod("two", claims={"a": "c"}, templates={"b": "t"}, node="n1", labels={"a": "b"}, priority=0)),
        (kinds.PODS, pod("three", claim="c", containers=[container("x", claims=[{"name": "gpu", "request": "a"}])])),
    ]
    async with open_store(root / "cluster.db") as store:
        for resource, document in made:
            await store.create(resource, document, document["metadata"].get("namespace", ""), options=STRICT)


def test_an_attribute_has_the_type_of_its_value() -> None:
    values: Attributes = {
        "s": "a",
        "b": False,
        "i": 3,
        "v": Version("1.0.0"),
        "l": [Version("1.0.0"), Version("2.0.0")],
    }
    assert device("d", values)["attributes"] == {
        "s": {"string": "a"},
        "b": {"bool": False},
        "i": {"int": 3},
        "v": {"version": "1.0.0"},
        "l": {"versions": ["1.0.0", "2.0.0"]},
    }
    assert device("d") == {"name": "d"}


def test_what_says_nothing_is_of_the_one_driver() -> None:
    assert claim("c")["spec"]["devices"]["requests"] == [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    assert device_class()["metadata"]["name"] == DRIVER
    spec = resource_slice("n1", 2)["spec"]
    assert (spec["driver"], spec["pool"]["name"]) == (DRIVER, "n1")
    assert [each["name"] for each in spec["devices"]] == ["gpu-0", "gpu-1"]


def test_the_container_of_a_pod_uses_all_claims_and_resources_of_the_pod() -> None:
    spec = pod("p", claims={"a": "first"}, templates={"b": "second"}, limits={"example.com/x": 2})["spec"]
    assert spec["resourceClaims"] == [
        {"name": "a", "resourceClaimName": "first"},
        {"name": "b", "resourceClaimTemplateName": "second"},
    ]
    assert spec["containers"][0]["resources"] == {
        "requests": {"example.com/x": "2"},
        "limits": {"example.com/x": "2"},
        "claims": [{"name": "a"}, {"name": "b"}],
    }
    assert "resources" not in pod("p")["spec"]["containers"][0]


def test_how_a_pod_ends_is_said_in_annotations() -> None:
    assert pod("p", exit_code=0, run_for="2s", annotations={"a": "b"})["metadata"]["annotations"] == {
        "a": "b",
        "devlet.dev/run-for": "2s",
        "devlet.dev/exit-code": "0",
    }
    assert "annotations" not in pod("p")["metadata"]
