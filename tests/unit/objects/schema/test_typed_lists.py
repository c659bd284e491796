"""The fast way to shape a list gives what the slow way gives, or nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.documents import Document
from devlet.objects.schema import typed_lists
from devlet.objects.schema.leaves import Mismatch
from devlet.objects.schema.messages import Field, Message, kinds, message, message_of
from devlet.objects.schema.shape import conform, plan
from devlet.objects.schema.typed_lists import WORTH_IT, shaped

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "kube_protobuf.json").read_text(encoding="utf-8"))
SAMPLES = VECTORS["vectors"] + VECTORS["recorded_requests"]

DEVICE = message("k8s.io.api.resource.v1.Device")
CONTAINER = message("k8s.io.api.core.v1.Container")


SLICE_SPEC = "k8s.io.api.resource.v1.ResourceSliceSpec"


def device(i: int, **members: Any) -> Document:
    return {"name": f"gpu-{i}", "attributes": {"index": {"int": i}, "model": {"string": "A"}}, **members}


def one_by_one(values: list[Any], layout: Message) -> list[Document] | None:
    unknown: list[str] = []
    try:
        made = [plan(layout).convert(value, unknown) for value in values]
    except Mismatch:
        return None
    return None if unknown else made


def test_plain_devices_are_copied_unchanged() -> None:
    values = [device(i, capacity={"memory": {"value": "80Gi"}}) for i in range(3)]
    made = shaped(values, DEVICE) or [{}]
    assert made == values
    assert made[0]["attributes"]["model"] is not values[0]["attributes"]["model"]


def test_quantities_become_canonical_plain_strings() -> None:
    (made,) = shaped([device(0, capacity={"memory": {"value": "1024Mi"}})], DEVICE) or [{}]
    assert made["capacity"] == {"memory": {"value": "1Gi"}}
    assert type(made["capacity"]["memory"]["value"]) is str


def test_members_are_put_into_the_order_of_the_schema() -> None:
    (made,) = shaped([{"allNodes": True, "name": "a"}], DEVICE) or [{}]
    assert list(made) == ["name", "allNodes"]


def test_a_pointer_to_zero_stays_and_a_zero_goes() -> None:
    (made,) = shaped([{"name": "a", "nodeName": "", "allNodes": False}], DEVICE) or [{}]
    assert made == {"name": "a", "nodeName": "", "allNodes": False}
    (made,) = shaped([{"name": "a", "image": "", "resources": {}, "tty": False}], CONTAINER) or [{}]
    assert made == {"name": "a", "resources": {}}


@pytest.mark.parametrize(
    "unusual",
    [
        {"strange": 1},
        {"nodeName": None},
        {"attributes": {}},
        {"attributes": {"a": None}},
        {"attributes": {"a": {"int": 1.5}}},
        {"attributes": {"a": {"int": 1 << 63}}},
        {"attributes": {"a": {"int": True}}},
        {"capacity": {"memory": {"value": "much"}}},
        {"capacity": {"memory": {}}},
        {"capacity": {"memory": {"value": []}}},
        {"capacity": {"memory": {"value": True}}},
        {"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]},
        {"name": 7},
    ],
    ids=str,
)
def test_unusual_values_are_left_to_the_slow_path(unusual: Document) -> None:
    assert shaped([device(0), {**device(1), **unusual}], DEVICE) is None


def test_no_message_of_the_schema_contains_itself() -> None:
    def depth(layout: Message) -> int:
        return 1 + max((depth(f.message()) for f in layout.properties.values() if f.is_message), default=0)

    assert max(depth(message(name)) for name in set(kinds().values())) < 20


def test_conform_says_where_a_long_list_is_wrong() -> None:
    layout = message_of("resource.k8s.io/v1", "ResourceSlice")
    assert layout
    devices = [device(i) for i in range(WORTH_IT)] + [device(99, strange=1)]
    made = conform({"spec": {"devices": devices}}, layout)
    assert made.unknown == (f"spec.devices[{WORTH_IT}].strange",)
    assert made.document["spec"]["devices"] == devices


def test_a_short_list_needs_no_types() -> None:
    typed_lists._type.cache_clear()
    typed_lists._list_type.cache_clear()
    before = typed_lists._type.cache_info().currsize
    conform({"devices": [device(i) for i in range(WORTH_IT - 1)]}, message(SLICE_SPEC))
    assert typed_lists._type.cache_info().currsize == before
    conform({"devices": [device(i) for i in range(WORTH_IT)]}, message(SLICE_SPEC))
    assert typed_lists._type.cache_info().currsize > before


def lists_in(document: Any, layout: Message) -> Iterator[tuple[list[Any], Message]]:
    for key, field in layout.properties.items():
        value = document.get(key) if isinstance(document, dict) else None
        if not value or not field.is_message:
            continue
        inner = field.message()
        parts = value if field.label == "repeated" else value.values() if field.label == "map" else [value]
        if field.label == "repeated":
            yield value, inner
        for part in parts:
            yield from lists_in(part, inner)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.get("name") or s["path"])
def test_lists_that_the_reference_wrote_are_shaped_as_the_slow_way_does_it_or_not_at_all(sample: Document) -> None:
    for values, layout in lists_in(sample["json"], message(sample["message"])):
        assert repr(shaped(values, layout)) in (repr(one_by_one(values, layout)), "None")


MESSAGES = sorted(
    {field.type for name in set(kinds().values()) for field in message(name).properties.values() if field.is_message}
    | {DEVICE.name, CONTAINER.name, "k8s.io.api.core.v1.PodSpec", SLICE_SPEC}
)
_RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "1Gi"]),
    "bool": st.booleans(),
    "int32": st.sampled_from([0, 1, -(1 << 31), 1 << 31]),
    "int64": st.sampled_from([0, -5, (1 << 63) - 1, 1 << 63]),
    "quantity": st.sampled_from(["0", "1", "1000m", "1.5Gi", "x", 3, 0.5]),
}
_odd = st.sampled_from([None, 0, 1.0, "", True, [], {}, [None], {"a": None}])


def values_of(field: Field, depth: int) -> st.SearchStrategy[Any]:
    if field.is_message:
        one = documents_of(field.message(), depth - 1) if depth else st.just({})
    else:
        one = _RIGHT.get(field.special or field.type, _odd)
    match field.label:
        case "repeated":
            return st.lists(one, max_size=2)
        case "map":
            return st.dictionaries(st.sampled_from(["a", "b"]), one, max_size=2)
    return one


@st.composite
def documents_of(draw: st.DrawFn, layout: Message, depth: int) -> Document:
    keys = draw(st.lists(st.sampled_from(sorted(layout.properties) or ["x"]), max_size=4, unique=True))
    keys += [key for key in layout.required if key not in keys]
    made: Document = {}
    for key in keys:
        field = layout.properties.get(key)
        right = values_of(field, depth) if field else _odd
        made[key] = draw(_odd if draw(st.integers(0, 19)) == 0 else right)
    return made


@given(st.data())
def test_whatever_is_shaped_is_shaped_as_the_slow_way_does_it(data: st.DataObject) -> None:
    layout = message(data.draw(st.sampled_from(MESSAGES)))
    values = data.draw(st.lists(documents_of(layout, 2), min_size=1, max_size=3))
    made = shaped(values, layout)
    if made is not None:
        assert repr(made) == repr(one_by_one(values, layout))
