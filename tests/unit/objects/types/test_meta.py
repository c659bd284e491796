"""Views of all kinds against the samples, and what all objects share."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devlet.objects.conversion import convert
from devlet.objects.documents import Document, view
from devlet.objects.kinds import BUILT_IN
from devlet.objects.types.claim import ResourceClaim, ResourceClaimTemplate
from devlet.objects.types.core import ConfigMap, Event, Lease, Namespace, Secret, ServiceAccount
from devlet.objects.types.device_class import DeviceClass
from devlet.objects.types.meta import (
    Condition,
    LabelSelector,
    ListMeta,
    Nullable,
    ObjectMeta,
    OwnerReference,
    View,
    empty_if_null,
)
from devlet.objects.types.node import Node
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import ResourceSlice
from devlet.objects.types.taint_rule import DeviceTaintRule, ResourcePoolStatusRequest

VIEWS: dict[str, type[View]] = {
    type_.__name__: type_
    for type_ in (
        ConfigMap,
        DeviceClass,
        DeviceTaintRule,
        Event,
        Lease,
        Namespace,
        Node,
        Pod,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourcePoolStatusRequest,
        ResourceSlice,
        Secret,
        ServiceAccount,
    )
}
KINDS = {kind.kind: kind for kind in BUILT_IN}
VECTORS = [
    pytest.param(convert(vector["json"], KINDS[vector["kind"]].storage_version), id=vector["name"])
    for vector in json.loads((Path(__file__).parents[3] / "vectors/kube_protobuf.json").read_text())["vectors"]
    if vector["kind"] in VIEWS and vector["apiVersion"] in KINDS[vector["kind"]].api_versions
]
# Not in every sample that is said to be filled: only ephemeral containers have a target.
SOMETIMES = {"targetContainerName"}


def differences(encoded: Any, document: Any, path: str = "") -> list[str]:
    """Where an encoded view holds something that the document does not say."""
    match encoded, document:
        case dict(), dict():
            pairs = [(value, document.get(key), f"{path}.{key}") for key, value in encoded.items()]
        case list() | tuple(), list() if len(encoded) == len(document):
            pairs = [(value, document[index], f"{path}[{index}]") for index, value in enumerate(encoded)]
        case _, None if is_default(encoded):
            return []
        case _:
            return [] if encoded == document else [f"{path}: {encoded!r} instead of {document!r}"]
    return [found for pair in pairs for found in differences(*pair)]


def is_default(encoded: Any) -> bool:
    if isinstance(encoded, dict):
        return all(map(is_default, encoded.values()))
    return encoded in (None, "", 0, False, "0", (), [])


def absent(view_: Any, document: Any, path: str) -> list[str]:
    """Fields of the view that the document does not have."""
    match view_:
        case View():
            names = [*zip(view_.__struct_fields__, view_.__struct_encode_fields__, strict=True)]
            missing = [f"{path}.{key}" for _, key in names if key not in document and key not in SOMETIMES]
            deeper = [(getattr(view_, name), document[key], key) for name, key in names if key in document]
            return missing + [found for a, b, key in deeper for found in absent(a, b, f"{path}.{key}")]
        case tuple():
            return [found for a, b in zip(view_, document, strict=True) for found in absent(a, b, f"{path}[]")]
        case dict():
            return [found for key, a in view_.items() for found in absent(a, document[key], f"{path}.{key}")]
    return []


def test_every_kind_with_a_view_has_samples() -> None:
    assert {str(sample.id).split("/")[-1] for sample in VECTORS} >= set(VIEWS)


@pytest.mark.parametrize("document", VECTORS)
def test_a_view_has_the_values_of_its_document(document: Document) -> None:
    assert differences(msgspec.to_builtins(view(VIEWS[document["kind"]], document)), document) == []


@pytest.mark.parametrize("document", [sample for sample in VECTORS if str(sample.id).startswith("filled/")])
def test_every_field_of_a_view_is_a_field_of_the_kind(document: Document) -> None:
    assert absent(view(VIEWS[document["kind"]], document), document, "") == []


def test_keys_that_a_view_does_not_know_are_passed_over() -> None:
    assert view(ObjectMeta, {"name": "a", "new": {"deep": 1}}) == ObjectMeta(name="a")


def test_a_view_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ObjectMeta().name = "b"  # type: ignore[misc]


def test_the_controller_is_the_owner_that_says_so() -> None:
    owner, controller = OwnerReference(name="a"), OwnerReference(name="b", controller=True)
    assert ObjectMeta(owner_references=(owner, controller)).controller is controller
    assert ObjectMeta(owner_references=(owner,)).controller is None


def test_an_object_with_a_time_of_deletion_is_being_deleted() -> None:
    assert ObjectMeta(deletion_timestamp="2026-01-01T00:00:00Z").is_deleting
    assert not ObjectMeta().is_deleting


def test_a_list_that_is_null_is_read_as_empty() -> None:
    class Holder(View, frozen=True, kw_only=True):
        items: Nullable[str] = ()

        def __post_init__(self) -> None:
            empty_if_null(self, "items")

    assert view(Holder, {"items": None}).items == ()
    assert view(Holder, {"items": ["a"]}).items == ("a",)
    assert Holder().items == ()


def test_the_metadata_of_a_list_has_the_continue_token() -> None:
    assert view(ListMeta, {"continue": "token", "remainingItemCount": 3}).continue_ == "token"


def test_selectors_and_conditions_are_read() -> None:
    selector = view(LabelSelector, {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]})
    assert selector.match_expressions[0].values == ("b",)
    assert view(Condition, {"type": "Ready", "lastTransitionTime": None}).type == "Ready"
