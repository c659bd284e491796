import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import BadRequest
from devlet.objects import documents
from devlet.objects.documents import Document
from devlet.objects.patches import merge_patch
from devlet.objects.schema.messages import Field, Message, kinds, message, message_of
from devlet.objects.schema.shape import Conformed, conform, conform_any, conform_kind

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "kube_protobuf.json").read_text(encoding="utf-8"))
SAMPLES = VECTORS["vectors"] + VECTORS["recorded_requests"]


def conformed(api_version: str, kind: str, **members: Any) -> Conformed:
    message = message_of(api_version, kind)
    assert message
    return conform({"apiVersion": api_version, "kind": kind, **members}, message)


def pod(**spec: Any) -> Document:
    made: Document = conformed("v1", "Pod", spec={"containers": [], **spec}).document["spec"]
    return made


def container(**members: Any) -> Document:
    made: Document = pod(containers=[{"name": "c", **members}])["containers"][0]
    return made


def refusal(**spec: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        pod(**spec)
    return str(caught.value)


@pytest.mark.spec("KA-2.3")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.get("name") or s["path"])
def test_what_the_reference_wrote_is_already_in_shape(sample: Document) -> None:
    before = documents.copy(sample["json"])
    made = conform(sample["json"], message(sample["message"]))
    assert made == Conformed(before, ())
    assert sample["json"] == before


@pytest.mark.spec("KA-2.3")
@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if s.get("name", "").startswith("zero/")], ids=lambda s: s["name"]
)
def test_an_empty_object_gets_the_members_go_always_writes(sample: Document) -> None:
    bare = {"kind": sample["kind"], "apiVersion": sample["apiVersion"]}
    assert conform(bare, message(sample["message"])).document == sample["json"]


def test_a_null_is_not_set() -> None:
    made = conformed("v1", "Pod", metadata={"labels": None, "name": None}, spec=None, status=None).document
    assert made == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {},
        "spec": {"containers": None},
        "status": {},
    }


def test_a_null_in_a_list_or_map_is_the_zero_value() -> None:
    assert pod(containers=[None])["containers"] == [{"name": "", "resources": {}}]
    assert container(args=["a", None])["args"] == ["a", ""]
    made = conformed("v1", "ConfigMap", data={"a": None}).document
    assert made["data"] == {"a": ""}
    assert container(resources={"limits": {"cpu": None}})["resources"] == {"limits": {"cpu": "0"}}


def test_empty_values_are_dropped_unless_they_are_pointers() -> None:
    assert pod(hostname="", hostNetwork=False, tolerations=[], nodeSelector={}) == {"containers": []}
    assert pod(hostUsers=False, priority=0, runtimeClassName="", affinity={}) == {
        "containers": [],
        "priority": 0,
        "runtimeClassName": "",
        "hostUsers": False,
        "affinity": {},
    }


def test_keys_are_in_the_order_of_the_schema_with_the_type_first() -> None:
    made = conform(
        {
            "status": {},
            "x": 1,
            "spec": {"nodeName": "n", "containers": []},
            "metadata": {},
            "apiVersion": "v1",
            "kind": "Pod",
        },
        message("k8s.io.api.core.v1.Pod"),
    ).document
    assert list(made) == ["kind", "apiVersion", "metadata", "spec", "status", "x"]
    assert list(made["spec"]) == ["containers", "nodeName"]


def test_items_of_a_list_may_say_their_type() -> None:
    made = conformed("v1", "PodList", items=[{"kind": "Pod", "apiVersion": "v1"}])
    assert made.unknown == ()
    assert list(made.document["items"][0])[:2] == ["kind", "apiVersion"]


def test_the_result_shares_nothing_with_what_was_given() -> None:
    given_ = {"data": {"a": "b"}, "strange": {"list": [1]}, "metadata": {"finalizers": ["f"]}}
    made = conform(given_, message("k8s.io.api.core.v1.ConfigMap")).document
    made["data"]["a"] = made["strange"]["list"][0] = made["metadata"]["finalizers"][0] = "changed"
    assert given_ == {"data": {"a": "b"}, "strange": {"list": [1]}, "metadata": {"finalizers": ["f"]}}


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.987+02:00", "2026-01-02T01:04:05Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_in_whole_seconds_of_utc(sent: str, written: str) -> None:
    made = conformed("v1", "Pod", metadata={"creationTimestamp": sent}).document
    assert made["metadata"] == {"creationTimestamp": written}


def test_micro_times_are_written_with_six_digits() -> None:
    spec = {"renewTime": "2026-01-02T03:04:05.1Z", "acquireTime": "2026-01-02T03:04:05Z"}
    made = conformed("coordination.k8s.io/v1", "Lease", spec=spec).document
    assert made["spec"] == {"acquireTime": "2026-01-02T03:04:05.000000Z", "renewTime": "2026-01-02T03:04:05.100000Z"}


def test_the_zero_time_of_go_counts_as_unset() -> None:
    zero = "0001-01-01T00:00:00Z"
    made = conformed("v1", "Event", metadata={"creationTimestamp": zero}, firstTimestamp=zero).document
    assert made["metadata"] == {}
    assert made["firstTimestamp"] is None


@pytest.mark.parametrize(
    ("sent", "written"), [(2, "2"), ("1000m", "1"), (0.5, "500m"), (" 1.5Gi ", "1536Mi"), ("1e3", "1e3")]
)
def test_quantities_are_written_in_canonical_form(sent: object, written: str) -> None:
    assert container(resources={"limits": {"cpu": sent}})["resources"] == {"limits": {"cpu": written}}


def test_bytes_are_written_in_canonical_base64() -> None:
    made = conformed("v1", "Secret", data={"a": "aGVs\nbG8=\n", "b": ""}).document
    assert made["data"] == {"a": "aGVsbG8=", "b": ""}


def test_ports_are_numbers_or_names() -> None:
    for port in (80, "http", 0):
        assert container(livenessProbe={"httpGet": {"port": port}})["livenessProbe"]["httpGet"]["port"] == port


def test_opaque_parameters_may_be_anything() -> None:
    parameters: Any
    for parameters in ({"a": [1, None, {}]}, [], 0, "text", {}):
        config = [{"opaque": {"driver": "d", "parameters": parameters}}]
        made = conformed("resource.k8s.io/v1", "DeviceClass", spec={"config": config}).document
        assert made["spec"]["config"] == config


def test_integers_keep_all_64_bits() -> None:
    pool = {"name": "p", "generation": 9223372036854775807, "resourceSliceCount": 1}
    made = conformed("resource.k8s.io/v1", "ResourceSlice", spec={"driver": "d", "pool": pool}).document
    assert made["spec"]["pool"] == pool


@pytest.mark.spec("KA-3.4")
def test_a_wrong_type_is_refused_with_kind_path_and_type() -> None:
    assert refusal(containers=[{"name": "c"}, {"name": "d", "image": 5}]) == (
        'Pod in version "v1" cannot be handled as a Pod: '
        "json: cannot unmarshal number into field spec.containers[1].image of type string"
    )


@pytest.mark.spec("KA-3.4")
@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        ({"containers": {}}, "spec.containers", "array"),
        ({"containers": ["c"]}, "spec.containers[0]", "Container"),
        ({"nodeSelector": []}, "spec.nodeSelector", "object"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a", "string"),
        ({"nodeSelector": {1: "a"}}, "spec.nodeSelector", "object with strings as keys"),
        ({"hostNetwork": "true"}, "spec.hostNetwork", "bool"),
        ({"hostNetwork": 1}, "spec.hostNetwork", "bool"),
        ({"priority": True}, "spec.priority", "int32"),
        ({"priority": 1.0}, "spec.priority", "int32"),
        ({"priority": 1 << 31}, "spec.priority", "int32"),
        ({"activeDeadlineSeconds": 1 << 63}, "spec.activeDeadlineSeconds", "int64"),
        ({"activeDeadlineSeconds": 10**5000}, "spec.activeDeadlineSeconds", "int64"),
        ({"affinity": []}, "spec.affinity", "Affinity"),
        ({"overhead": {"cpu": "much"}}, "spec.overhead.cpu", "quantity"),
        ({"overhead": {"cpu": True}}, "spec.overhead.cpu", "quantity"),
        ({"overhead": {"cpu": float("inf")}}, "spec.overhead.cpu", "quantity"),
        ({"overhead": {"cpu": 10**5000}}, "spec.overhead.cpu", "quantity"),
        ({"overhead": {"cpu": ""}}, "spec.overhead.cpu", "quantity"),
        ({"hostname": {"a": "b"}}, "spec.hostname", "string"),
        ({7: "b"}, "spec.7", "string"),
    ],
)
def test_every_wrong_value_is_named(spec: Document, path: str, expected: str) -> None:
    with pytest.raises(BadRequest) as caught:
        conform({"spec": spec}, message("k8s.io.api.core.v1.Pod"))
    assert str(caught.value).endswith(f" field {path} of type {expected}")


@pytest.mark.parametrize(
    ("api_version", "kind", "members", "path"),
    [
        ("v1", "Secret", {"data": {"a": "no base64!"}}, "data.a"),
        ("v1", "Secret", {"data": {"a": "YQ"}}, "data.a"),
        ("v1", "Secret", {"data": {"a": "ü==="}}, "data.a"),
        ("v1", "Secret", {"data": {"a": 1}}, "data.a"),
        ("v1", "Pod", {"metadata": {"creationTimestamp": "yesterday"}}, "metadata.creationTimestamp"),
        ("v1", "Pod", {"metadata": {"creationTimestamp": 0}}, "metadata.creationTimestamp"),
        ("v1", "Pod", {"metadata": [], "kind": "Pod"}, "metadata"),
        ("v1", "Service", {"spec": {"ports": [{"targetPort": 1 << 31}]}}, "spec.ports[0].targetPort"),
        ("v1", "Service", {"spec": {"ports": [{"targetPort": 1.5}]}}, "spec.ports[0].targetPort"),
    ],
)
def test_values_with_a_form_of_their_own_are_checked(api_version: str, kind: str, members: Document, path: str) -> None:
    message = message_of(api_version, kind)
    assert message
    with pytest.raises(BadRequest, match=r" field " + path.replace("[", r"\[").replace("]", r"\]") + " of type "):
        conform({"kind": kind, **members}, message)


def test_what_is_not_an_object_is_refused() -> None:
    body: Any = ["Pod"]
    with pytest.raises(BadRequest, match="cannot unmarshal array into the object of type Pod"):
        conform(body, message("k8s.io.api.core.v1.Pod"))


def test_nesting_beyond_the_limit_is_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadRequest, match="nested deeper than 100 levels in field strange"):
        conformed("v1", "ConfigMap", strange=deep)


@pytest.mark.spec("KA-3.4")
def test_unknown_fields_are_named_as_the_reference_does_and_kept() -> None:
    made = conformed(
        "v1",
        "Pod",
        metadata={"lables": None},
        spec={"containers": [{"name": "c"}, {"name": "d", "foo": {"x": 1}}]},
        dataa=1,
    )
    assert made.unknown == ("metadata.lables", "spec.containers[1].foo", "dataa")
    assert made.document["metadata"] == {"lables": None}
    assert made.document["spec"]["containers"][1] == {"name": "d", "resources": {}, "foo": {"x": 1}}
    assert made.document["dataa"] == 1


@pytest.mark.spec("KA-3.4")
def test_unknown_fields_below_a_map_are_named_by_its_keys() -> None:
    device = {"name": "d", "attributes": {"model": {"string": "a", "strnig": "b"}}}
    made = conformed("resource.k8s.io/v1", "ResourceSlice", spec={"devices": [device]})
    assert made.unknown == ("spec.devices[0].attributes.model.strnig",)


def test_the_list_of_unknown_fields_is_bounded_but_all_are_kept() -> None:
    made = conformed("v1", "ConfigMap", **{f"x{n}": n for n in range(500)})
    assert len(made.unknown) == 100
    assert made.document["x499"] == 499


def objects_in(value: Any, message: Message, path: str) -> list[tuple[str, Document]]:
    """Every JSON object of the document that has a schema, with its path."""
    found = [(path, value)]
    for key, field in message.properties.items():
        if field.is_message and value.get(key) is not None:
            for step, part in parts_of(value[key], field):
                found += objects_in(part, field.message(), f"{path}.{key}{step}")
    return found


def parts_of(value: Any, field: Field) -> list[tuple[str, Document]]:
    match field.label:
        case "repeated":
            return [(f"[{i}]", part) for i, part in enumerate(value)]
        case "map":
            return [(f".{key}", part) for key, part in value.items()]
    return [("", value)]


@pytest.mark.spec("KA-3.4")
@pytest.mark.parametrize("seed", range(40))
def test_every_unknown_key_is_found_and_kept_wherever_it_is(seed: int) -> None:
    choose = random.Random(seed)
    for sample in choose.sample(SAMPLES, 20):
        document, layout = documents.copy(sample["json"]), message(sample["message"])
        places = objects_in(document, layout, "")
        chosen = choose.sample(places, min(len(places), choose.randint(1, 30)))
        for n, (_, part) in enumerate(chosen):
            part[f"x-{n}"] = choose.choice([None, 0, "", {"a": []}, [None]])
        made = conform(document, layout)
        assert sorted(made.unknown) == sorted(f"{path}.x-{n}".removeprefix(".") for n, (path, _) in enumerate(chosen))
        assert made.document == document


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.data())
def test_any_json_in_any_field_is_taken_or_refused_and_taken_shape_is_stable(data: st.DataObject) -> None:
    layout = message(data.draw(st.sampled_from(sorted(set(kinds().values())))))
    keys = st.sampled_from([*layout.properties, "kind", "strange"])
    document = data.draw(st.dictionaries(keys, json_values | st.fixed_dictionaries({"name": json_values}), max_size=4))
    try:
        made = conform(document, layout)
    except BadRequest as refused:
        assert "json: " in str(refused)
    else:
        assert repr(conform(made.document, layout).document) == repr(made.document)
        assert all(document[key] is None or key in made.document for key in made.unknown if key in document)


@given(st.data())
def test_unchanged_parts_of_a_base_are_not_checked_again(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(SAMPLES))
    layout = message(sample["message"])
    base = conform(sample["json"], layout).document
    keys = st.sampled_from([*layout.properties, "strange"])
    below = st.dictionaries(st.sampled_from([*base.get("metadata", {}), "labels", "uid"]), json_values, max_size=2)
    patch = data.draw(st.dictionaries(keys, json_values | below, max_size=3))
    patched = merge_patch.apply(base, patch)
    try:
        whole = conform(patched, layout)
    except BadRequest as refused:
        with pytest.raises(BadRequest) as again:
            conform(patched, layout, base)
        assert str(again.value) == str(refused)
    else:
        assert repr(conform(patched, layout, base)) == repr(whole)
    assert base == sample["json"]


def test_parts_of_a_base_are_taken_as_they_are_with_what_is_unknown_in_them() -> None:
    layout = message_of("v1", "Pod")
    assert layout
    given: Document = {"metadata": {"name": "p", "novelty": 1}, "spec": {"containers": [{"name": "c", "novelty": {}}]}}
    base = conform(given, layout).document
    made = conform({**base, "status": {"phase": "Running", "surprise": 1}}, layout, base)
    assert made.document["spec"] is base["spec"] and made.document["metadata"] is base["metadata"]
    assert made.unknown == ("status.surprise",), "what was there before is not reported again"
    changed = conform({**base, "metadata": {**base["metadata"], "other": 1}}, layout, base)
    assert changed.unknown == ("metadata.other",)
    assert changed.document["metadata"] == {"name": "p", "novelty": 1, "other": 1}


def test_a_body_is_brought_into_the_shape_of_its_kind() -> None:
    assert conform_kind({"dryRun": ["All"], "preconditions": None}, "v1", "DeleteOptions") == {"dryRun": ["All"]}
    for wrong, kind in (({"dryRun": True}, "DeleteOptions"), ({}, "Nonsense")):
        with pytest.raises(BadRequest):
            conform_kind(wrong, "v1", kind)


def test_a_document_without_a_message_is_copied_within_limits() -> None:
    sent: Document = {"kind": "Thing", "apiVersion": "example.com/v1", "spec": {"a": [1]}}
    made = conform_any(sent)
    assert made == sent and made["spec"] is not sent["spec"]
    with pytest.raises(BadRequest, match="field spec of type JSON"):
        conform_any({**sent, "spec": {1, 2}})


def test_a_null_in_a_map_of_bytes_is_empty() -> None:
    message = message_of("v1", "Secret")
    assert message is not None
    assert conform({"data": {"k": None}}, message).document["data"] == {"k": ""}
