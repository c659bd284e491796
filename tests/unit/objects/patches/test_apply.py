from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlet.errors import BadRequest, Cause, Conflict
from devlet.objects import documents
from devlet.objects.documents import Document
from devlet.objects.patches.apply import Applied, apply
from devlet.objects.patches.field_sets import FieldSet, field_set, parse
from devlet.objects.patches.managed_fields import updated
from devlet.objects.schema.messages import message_of

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z"


def config_map(data: Document | None = None, **metadata: Any) -> Document:
    document: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return document if data is None else {**document, "data": data}


def pod(*containers: Document, **rest: Any) -> Document:
    spec = {"containers": list(containers), **rest}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def sent(
    live: Document | None,
    config: Any,
    manager: str = "m1",
    *,
    force: bool = False,
    subresource: str = "",
    now: str = NOON,
    **options: Any,
) -> Applied:
    before = documents.copy((live, config))
    version = config.get("apiVersion", "v1") if isinstance(config, dict) else "v1"
    options = {"api_version": version, **options}
    result = apply(live, config, manager=manager, force=force, subresource=subresource, now=now, **options)
    assert (live, config) == before
    return result


def applied(live: Document | None, config: Any, manager: str = "m1", **options: Any) -> Document:
    return sent(live, config, manager, **options).document


def update(old: Document | None, new: Document, manager: str) -> Document:
    entries = updated(old, new, manager, new["apiVersion"], "", NOON)
    return {**new, "metadata": {**new["metadata"], "managedFields": entries}}


def content(document: Document) -> Document:
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    return {**document, "metadata": metadata}


def owners(document: Document) -> dict[str, list[str]]:
    return {e["manager"]: list(parse(e["fieldsV1"]).paths()) for e in document["metadata"]["managedFields"]}


@pytest.mark.spec("KA-3.8-level1")
def test_maps_merge() -> None:
    live = applied(None, config_map({"a": "1"}, labels={"x": "1"}), "m1")
    assert content(applied(live, config_map({"b": "2"}, labels={"y": "2"}), "m2")) == config_map(
        {"a": "1", "b": "2"}, labels={"x": "1", "y": "2"}
    )


@pytest.mark.spec("KA-3.8-level1")
def test_list_maps_merge_by_their_keys() -> None:
    live = applied(None, pod({"name": "a", "image": "i"}, {"name": "b"}), "m1")
    merged = applied(live, pod({"name": "a", "tty": True}, {"name": "c"}), "m2")
    assert content(merged) == pod({"name": "a", "image": "i", "tty": True}, {"name": "b"}, {"name": "c"})


@pytest.mark.spec("KA-3.8-level1")
def test_claim_statuses_of_a_pod_merge_by_name() -> None:
    """What the resource claim controller does: apply to the status with force."""
    live = update(None, pod({"name": "a"}), "kubectl")

    def record(*claims: str) -> Document:
        statuses = [{"name": claim, "resourceClaimName": f"p-{claim}"} for claim in claims]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "status": {"resourceClaimStatuses": statuses},
        }

    first = applied(live, record("gpu"), "ResourceClaimController", force=True, subresource="status")
    second = applied(first, record("nic"), "other", force=True, subresource="status")
    assert second["status"] == record("gpu", "nic")["status"]
    assert second["spec"] == live["spec"]
    assert owners(second)["ResourceClaimController"][0] == '.status.resourceClaimStatuses[name="gpu"]'


@pytest.mark.spec("KA-3.8-level1")
def test_sets_unite() -> None:
    live = applied(None, config_map(finalizers=["f/1", "f/2"]), "m1")
    merged = applied(live, config_map(finalizers=["f/3", "f/2"]), "m2")
    assert merged["metadata"]["finalizers"] == ["f/1", "f/3", "f/2"]


@pytest.mark.spec("KA-3.8-level1")
def test_atomic_lists_and_maps_are_replaced() -> None:
    live = applied(None, pod({"name": "a"}, nodeSelector={"a": "1"}, tolerations=[{"key": "a"}]), "m1")
    new = pod({"name": "a"}, nodeSelector={"b": "2"}, tolerations=[{"key": "b"}])
    assert content(applied(live, new, "m1")) == new


@pytest.mark.spec("KA-3.8-level1")
def test_elements_come_in_the_order_of_the_configuration() -> None:
    live = applied(None, pod({"name": "a"}, {"name": "b"}, {"name": "c"}), "m1")
    merged = applied(live, pod({"name": "c"}, {"name": "new"}, {"name": "a"}), "m2")
    assert [c["name"] for c in merged["spec"]["containers"]] == ["c", "new", "a", "b"]


@pytest.mark.spec("KA-3.8-a")
def test_a_field_that_only_this_manager_applied_is_removed_when_it_is_left_out() -> None:
    live = applied(None, config_map({"a": "1", "b": "1"}, labels={"l": "1"}))
    assert content(applied(live, config_map({"a": "1"}))) == config_map({"a": "1"})
    assert content(applied(live, config_map())) == config_map()


@pytest.mark.spec("KA-3.8-a")
def test_a_field_that_another_manager_also_owns_stays_when_it_is_left_out() -> None:
    live = applied(applied(None, config_map({"a": "1", "b": "1"}), "m1"), config_map({"b": "1"}), "m2")
    left = applied(live, config_map({"a": "1"}), "m1")
    assert left["data"] == {"a": "1", "b": "1"}
    assert owners(left) == {"m1": [".data.a"], "m2": [".data.b"]}


@pytest.mark.spec("KA-3.8-a")
def test_a_field_of_an_updater_stays_when_its_object_is_left_out() -> None:
    live = applied(None, config_map({"a": "1"}), "m1")
    changed = update(live, {**live, "data": {"a": "1", "b": "2"}}, "editor")
    assert content(applied(changed, config_map(), "m1")) == config_map({"b": "2"})


@pytest.mark.spec("KA-3.8-a")
def test_an_element_that_only_this_manager_applied_is_removed_when_it_is_left_out() -> None:
    live = applied(None, pod({"name": "a", "env": [{"name": "x"}, {"name": "y"}]}, {"name": "b", "image": "i"}))
    assert content(applied(live, pod({"name": "a", "env": [{"name": "y"}]}))) == pod(
        {"name": "a", "env": [{"name": "y"}]}
    )


@pytest.mark.spec("KA-3.8-a")
def test_a_value_of_a_set_is_removed_when_it_is_left_out() -> None:
    live = applied(applied(None, config_map(finalizers=["f/1", "f/2"]), "m1"), config_map(finalizers=["f/2"]), "m2")
    assert applied(live, config_map(), "m1")["metadata"]["finalizers"] == ["f/2"]


@pytest.mark.spec("KA-3.8-a")
def test_what_another_version_applied_counts_as_before() -> None:
    claim = {"kind": "ResourceClaim", "metadata": {"name": "c", "labels": {"a": "1"}}}
    live = applied(None, {"apiVersion": "resource.k8s.io/v1beta2", **claim})
    live["apiVersion"] = "resource.k8s.io/v1"
    without = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {}}
    result = applied(live, without)
    assert "labels" not in result["metadata"]
    assert [e["apiVersion"] for e in result["metadata"]["managedFields"]] == ["resource.k8s.io/v1"]


@pytest.mark.spec("KA-3.8-b")
def test_another_value_for_a_field_of_another_manager_is_a_conflict() -> None:
    live = applied(None, config_map({"a": "1"}), "m1")
    with pytest.raises(Conflict) as conflict:
        applied(live, config_map({"a": "2"}), "m2")
    assert str(conflict.value) == 'Apply failed with 1 conflict: conflict with "m1": .data.a'
    assert conflict.value.causes == (Cause("FieldManagerConflict", 'conflict with "m1"', ".data.a"),)


@pytest.mark.spec("KA-3.8-b")
def test_a_conflict_with_an_updater_names_its_version() -> None:
    live = update(None, config_map({"k": "1"}), "kubectl-client-side-apply")
    with pytest.raises(Conflict) as conflict:
        applied(live, config_map({"k": "2"}), "m2")
    assert str(conflict.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.k'
    )


@pytest.mark.spec("KA-3.8-b")
def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(applied(None, config_map({"a": "1", "b": "1"}), "m1"), config_map({"c": "1"}), "m0")
    with pytest.raises(Conflict) as conflict:
        applied(live, config_map({"a": "2", "b": "2", "c": "2"}), "m2")
    assert str(conflict.value).splitlines() == [
        'Apply failed with 3 conflicts: conflicts with "m0":',
        "- .data.c",
        'conflicts with "m1":',
        "- .data.a",
        "- .data.b",
    ]
    assert [cause.field for cause in conflict.value.causes] == [".data.c", ".data.a", ".data.b"]


@pytest.mark.spec("KA-3.8-b")
def test_a_conflict_in_an_element_names_its_key_and_one_in_the_status_its_subresource() -> None:
    live = applied(None, pod({"name": "a", "image": "1"}), "m1")
    with pytest.raises(Conflict, match=r'conflict with "m1": \.spec\.containers\[name="a"\]\.image'):
        applied(live, pod({"name": "a", "image": "2"}), "m2")
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
    running = applied(live, status, "m1", subresource="status")
    with pytest.raises(Conflict, match=r'"m1" with subresource "status": \.status\.phase'):
        applied(running, {**status, "status": {"phase": "Failed"}}, "m2", subresource="status")


@pytest.mark.spec("KA-3.8-b")
def test_the_same_value_is_shared() -> None:
    live = applied(applied(None, config_map({"a": "1"}), "m1"), config_map({"a": "1"}), "m2")
    assert owners(live) == {"m1": [".data.a"], "m2": [".data.a"]}
    with pytest.raises(Conflict, match='conflict with "m2"'):
        applied(live, config_map({"a": "2"}), "m1")


@pytest.mark.spec("KA-3.8-b")
def test_the_own_fields_never_conflict() -> None:
    live = applied(None, config_map({"a": "1"}), "m1")
    assert applied(live, config_map({"a": "2"}), "m1")["data"] == {"a": "2"}


@pytest.mark.spec("KA-3.8-c")
def test_force_takes_the_field_and_leaves_the_rest() -> None:
    live = applied(None, config_map({"a": "1", "b": "1"}), "m1")
    taken = applied(live, config_map({"a": "2"}), "m2", force=True)
    assert taken["data"] == {"a": "2", "b": "1"}
    assert owners(taken) == {"m1": [".data.b"], "m2": [".data.a"]}
    with pytest.raises(Conflict, match=r'conflict with "m2": \.data\.a'):
        applied(taken, config_map({"a": "1", "b": "1"}), "m1")


@pytest.mark.spec("KA-3.8-d")
def test_an_update_of_an_applied_field_takes_it_over() -> None:
    live = applied(None, config_map({"a": "1"}), "m1")
    changed = update(live, {**live, "data": {"a": "2"}}, "m1")
    entries = changed["metadata"]["managedFields"]
    assert [(e["manager"], e["operation"]) for e in entries] == [("m1", "Update")]
    with pytest.raises(Conflict, match=r'conflict with "m1" using v1: \.data\.a'):
        applied(changed, config_map({"a": "3"}), "m1")


@pytest.mark.spec("KA-3.8-d")
def test_fields_of_an_object_without_managers_count_as_an_earlier_update() -> None:
    live = config_map({"a": "1"})
    with pytest.raises(Conflict, match=r'"before-first-apply" using v1: \.data\.a'):
        applied(live, config_map({"a": "2"}))
    shared = applied(live, config_map({"a": "1"}))
    assert owners(shared) == {"m1": [".data.a"], "before-first-apply": [".data", ".data.a"]}


@pytest.mark.spec("KA-3.8-rules")
def test_an_apply_creates_and_records_the_manager() -> None:
    created = sent(None, config_map({"a": "1"}))
    assert created.changed
    assert created.document["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


@pytest.mark.spec("KA-3.8-rules")
def test_a_configuration_of_nothing_leaves_no_entry() -> None:
    assert "managedFields" not in applied(None, config_map())["metadata"]


@pytest.mark.spec("KA-3.8-rules")
@pytest.mark.parametrize(
    ("config", "text"),
    [
        ([], "must be an object"),
        ({"kind": "ConfigMap"}, "invalid object type"),
        ({"apiVersion": "v1"}, "invalid object type"),
        ({"apiVersion": "v1", "kind": 7}, "invalid object type"),
        (config_map(managedFields=[]), "metadata.managedFields must be nil"),
        ({**config_map(), "dataa": {}}, ".dataa: field not declared in schema"),
        (pod({"name": "a", "imagee": "x"}), ".spec.containers[0].imagee: field not declared in schema"),
        (config_map(labelz={}), ".metadata.labelz: field not declared in schema"),
        (pod({"image": "x"}), ".spec.containers[0]: an element needs at least one of its keys name"),
        (pod({"name": "a"}, {"name": "a"}), '.spec.containers[1]: duplicate entries for {"name":"a"}'),
        (config_map(finalizers=["f/1", "f/1"]), '.metadata.finalizers[1]: duplicate entries for "f/1"'),
        ({**pod(), "spec": "x"}, ".spec: expected an object, got 'x'"),
        ({**pod(), "spec": {"containers": {}}}, ".spec.containers: expected a list, got {}"),
    ],
)
def test_an_invalid_configuration_is_a_bad_request(config: Any, text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        applied(None, config, api_version="v1")
    assert text in str(refused.value)


@pytest.mark.spec("KA-3.8-rules")
def test_a_configuration_for_another_version_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match='apiVersion "v1", but was sent to "v2"'):
        applied(None, config_map(), api_version="v2")


@pytest.mark.spec("KA-3.8-rules")
def test_the_version_of_the_configuration_is_left_for_the_caller_to_compare() -> None:
    live = applied(None, config_map({"a": "1"}, resourceVersion="7"))
    assert applied(live, config_map({"a": "1"}, resourceVersion="6"))["metadata"]["resourceVersion"] == "6"
    assert applied(live, config_map({"a": "1"}))["metadata"]["resourceVersion"] == "7"
    assert owners(live) == {"m1": [".data.a"]}


def test_applying_again_changes_nothing_not_even_the_time() -> None:
    live = applied(None, pod({"name": "a", "ports": [{"containerPort": 80}]}))
    again = sent(live, pod({"name": "a", "ports": [{"containerPort": 80}]}), now=LATER)
    assert not again.changed
    assert again.document is live


def test_a_new_set_has_a_new_time() -> None:
    live = applied(None, config_map({"a": "1"}))
    later = applied(live, config_map({"a": "1", "b": "1"}), now=LATER)
    assert [e["time"] for e in later["metadata"]["managedFields"]] == [LATER]


def test_a_port_with_and_without_its_default_protocol_is_the_same() -> None:
    live = applied(None, pod({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}), "m1")
    merged = applied(live, pod({"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}), "m2")
    assert merged["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "name": "web"}]


def test_a_null_is_the_same_as_no_field() -> None:
    assert content(applied(None, config_map({"a": "1"}, creationTimestamp=None))) == config_map({"a": "1"})


def test_an_empty_list_of_managed_elements_is_the_same_as_no_field_but_an_atomic_one_is_a_value() -> None:
    live = applied(None, config_map({"a": "1"}, finalizers=["f/1"]), "m1")
    assert applied(live, config_map(finalizers=[]), "m2")["metadata"]["finalizers"] == ["f/1"]
    assert content(applied(None, pod(tolerations=[]))) == {**pod(), "spec": {"tolerations": []}}


def test_the_main_resource_ignores_the_status_and_the_status_ignores_the_spec() -> None:
    live = applied(None, {**pod({"name": "a"}), "status": {"phase": "Running"}})
    assert "status" not in live
    status = {**pod({"name": "z"}), "status": {"phase": "Running"}}
    result = applied(live, status, subresource="status")
    assert (result["spec"], result["status"]) == (live["spec"], {"phase": "Running"})


def test_an_endpoint_may_keep_more_as_stored() -> None:
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    live = applied(None, {**claim, "spec": {}})
    config = {**claim, "metadata": {"name": "c", "labels": {"a": "1"}}, "status": {"reservedFor": []}}
    keep = parse({"f:metadata": {"f:labels": {}}, "f:spec": {}})
    assert "labels" not in applied(live, config, subresource="status", reset=keep)["metadata"]


def test_a_kind_without_a_schema_is_merged_by_field_with_lists_as_one_piece() -> None:
    def custom(**spec: Any) -> Document:
        return {"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}

    live = applied(None, custom(a={"b": 1, "c": 2}, items=[{"name": "p"}]), "m1")
    merged = applied(live, custom(a={"d": 3}), "m2")
    assert merged["spec"] == {"a": {"b": 1, "c": 2, "d": 3}, "items": [{"name": "p"}]}
    assert applied(merged, custom(items=[{"name": "q"}]), "m1")["spec"] == {"a": {"d": 3}, "items": [{"name": "q"}]}


def test_a_configuration_that_is_too_deep_is_a_bad_request() -> None:
    deep: Document = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="levels deep"):
        applied(None, {"apiVersion": "x.io/v1", "kind": "X", "spec": deep})


def named(letters: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Document]]:
    element = st.fixed_dictionaries({"name": st.sampled_from(letters)}, optional=optional)
    return st.lists(element, unique_by=lambda item: str(item["name"]), max_size=3)


environment = named("xy", value=st.sampled_from("12"))
pods = named("abc", image=st.sampled_from("ij"), env=environment).map(lambda containers: pod(*containers))
managers = st.sampled_from(["m1", "m2", "m3"])


def managed(document: Document) -> FieldSet:
    union = FieldSet({})
    for entry in document["metadata"].get("managedFields", []):
        union |= parse(entry["fieldsV1"])
    return union


@settings(deadline=None)
@given(st.lists(st.tuples(pods, managers), min_size=1, max_size=4))
def test_the_last_configuration_is_in_the_object_and_everything_in_it_is_managed(
    writes: list[tuple[Document, str]],
) -> None:
    live: Document | None = None
    for config, manager in writes:
        live = applied(live, config, manager, force=True)
        wanted = field_set({"spec": config["spec"]}, message_of("v1", "Pod"))
        there = field_set({"spec": live.get("spec", {})}, message_of("v1", "Pod"))
        assert there.covers(wanted)
        assert there.with_parents().covers(managed(live))
        assert (managed(live) | FieldSet({"f:spec": {}})).covers(there)
        again = sent(live, config, manager, now=LATER)
        assert not again.changed


@settings(deadline=None)
@given(pods, pods, managers)
def test_the_object_of_a_sole_manager_is_its_last_configuration(
    first: Document, second: Document, manager: str
) -> None:
    result = applied(applied(None, first, manager), second, manager)
    wanted = second["spec"]["containers"]
    found = result.get("spec", {}).get("containers", [])
    assert {c["name"]: c for c in found} == {c["name"]: without_empty_lists(c) for c in wanted}


def without_empty_lists(container: Document) -> Document:
    return {key: value for key, value in container.items() if value != []}


@settings(deadline=None)
@given(pods, pods)
def test_without_force_an_apply_either_conflicts_or_takes_nothing_away(first: Document, second: Document) -> None:
    live = applied(None, first, "m1")
    try:
        result = applied(live, second, "m2")
    except Conflict as conflict:
        assert conflict.causes
    else:
        for entry in live["metadata"].get("managedFields", []):
            assert entry in result["metadata"]["managedFields"]
