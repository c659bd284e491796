"""The verbs, over HTTP."""

from collections.abc import AsyncIterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import pytest
import yaml

from devlet.objects.protobuf import envelope as kube_protobuf
from devlet.serve.kube_api import bodies, calls
from devlet.testing.waiting import deadline

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


async def test_an_object_lives_through_all_verbs(served: "Served") -> None:
    code, created = await served.request("POST", MAPS, json=config_map("a", x="1"))
    assert (code, created["data"], created["metadata"]["namespace"]) == (201, {"x": "1"}, "default")
    assert (await served.request("GET", f"{MAPS}/a"))[1] == created
    code, updated = await served.request("PUT", f"{MAPS}/a", json=config_map("a", x="2"))
    assert (code, updated["data"]) == (200, {"x": "2"})
    headers = {"Content-Type": bodies.MERGE_PATCH}
    code, patched = await served.request("PATCH", f"{MAPS}/a", data=b'{"data":{"y":"3"}}', headers=headers)
    assert (code, patched["data"]) == (200, {"x": "2", "y": "3"})
    code, status = await served.request("DELETE", f"{MAPS}/a")
    assert (code, status["status"], status["details"]["kind"]) == (200, "Success", "configmaps")
    code, status = await served.request("GET", f"{MAPS}/a")
    assert (code, status["message"]) == (404, 'configmaps "a" not found')


async def test_protobuf_bodies_are_read_and_answered_in_json(served: "Served") -> None:
    body = kube_protobuf.encode(config_map("pb", x="1"))
    code, created = await served.request("POST", MAPS, data=body, headers={"Content-Type": bodies.PROTOBUF})
    assert (code, created["data"]) == (201, {"x": "1"})
    options = kube_protobuf.encode(
        {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "somebody else"}}
    )
    code, status = await served.request("DELETE", f"{MAPS}/pb", data=options, headers={"Content-Type": bodies.PROTOBUF})
    assert (code, status["reason"]) == (409, "Conflict")


async def test_lists_come_from_stored_bytes_and_in_pages(served: "Served") -> None:
    for name in ("a", "b", "c"):
        await served.request("POST", MAPS, json=config_map(name))
    code, page = await served.request("GET", f"{MAPS}?limit=2")
    assert (code, page["kind"], page["apiVersion"]) == (200, "ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in page["items"]] == ["a", "b"]
    assert all("kind" not in item and "apiVersion" not in item for item in page["items"])
    assert page["metadata"]["remainingItemCount"] == 1
    _, rest = await served.request("GET", f"{MAPS}?limit=2&continue={page['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert rest["metadata"] == {"resourceVersion": page["metadata"]["resourceVersion"]}


async def test_lists_in_another_version_are_converted(served: "Served") -> None:
    spec = {"driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}, "allNodes": True}
    slice_ = {"metadata": {"name": "s"}, "spec": {**spec, "devices": [{"name": "d0", "attributes": {"a": {"int": 1}}}]}}
    assert (await served.request("POST", "/apis/resource.k8s.io/v1/resourceslices", json=slice_))[0] == 201
    _, old = await served.request("GET", "/apis/resource.k8s.io/v1beta1/resourceslices")
    assert old["items"][0]["spec"]["devices"] == [{"name": "d0", "basic": {"attributes": {"a": {"int": 1}}}}]
    assert "v1beta1 ResourceSlice is deprecated" in served.headers["Warning"]


async def test_a_collection_is_deleted_by_selector(served: "Served") -> None:
    for name in ("a", "b"):
        await served.request("POST", MAPS, json=config_map(name))
    code, gone = await served.request("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Da")
    assert (code, [item["metadata"]["name"] for item in gone["items"]]) == (200, ["a"])
    assert (await served.request("GET", f"{MAPS}/b"))[0] == 200


async def test_apply_creates_and_needs_a_manager(served: "Served") -> None:
    headers = {"Content-Type": bodies.APPLY_PATCH}
    body = msgspec.json.encode(config_map("applied", x="1"))
    code, status = await served.request("PATCH", f"{MAPS}/applied", data=body, headers=headers)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "fieldManager")
    code, _ = await served.request("PATCH", f"{MAPS}/applied?fieldManager=me", data=body, headers=headers)
    assert code == 201
    other = msgspec.json.encode(config_map("applied", x="2"))
    code, status = await served.request("PATCH", f"{MAPS}/applied?fieldManager=you", data=other, headers=headers)
    assert (code, status["details"]["causes"][0]["field"]) == (409, ".data.x")


async def test_unknown_and_duplicate_fields_cause_a_warning_or_a_refusal(served: "Served") -> None:
    body = b'{"metadata":{"name":"w"},"data":{"k":"1","k":"2"},"foo":1}'
    code, status = await served.request("POST", f"{MAPS}?fieldValidation=Strict", data=body)
    assert (code, status["reason"]) == (400, "BadRequest")
    assert 'strict decoding error: duplicate field "data.k"' in status["message"]
    code, _ = await served.request("POST", MAPS, data=body)
    assert code == 201
    assert served.headers.getall("Warning") == [
        '299 - "duplicate field \\"data.k\\""',
        '299 - "unknown field \\"foo\\""',
    ]


async def test_a_put_must_name_the_object_of_its_url(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a"))
    code, status = await served.request("PUT", f"{MAPS}/a", json=config_map("b"))
    assert (code, status["reason"]) == (400, "BadRequest")
    assert "does not match the name on the URL (a)" in status["message"]
    namespaced = config_map("a") | {"metadata": {"name": "a", "namespace": "other"}}
    assert (await served.request("PUT", f"{MAPS}/a", json=namespaced))[0] == 400


async def test_a_put_of_an_absent_lease_creates_it(served: "Served") -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
    assert (await served.request("PUT", path, json={"metadata": {"name": "n1"}, "spec": {}}))[0] == 201


async def test_bodies_that_are_too_large_are_refused(served: "Served") -> None:
    code, status = await served.request("POST", MAPS, data=BytesIO(b" " * ((3 << 20) + 1)))
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_a_body_that_does_not_arrive_in_time_is_refused(
    served: "Served", monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    monkeypatch.setattr(calls, "BODY_TIMEOUT", 0.05)
    with deadline():
        code, status = await served.request("POST", MAPS, data=nothing())
    assert (code, status["reason"]) == (504, "Timeout")


async def test_other_body_types_are_unsupported(served: "Served") -> None:
    code, status = await served.request("POST", MAPS, data=b"x", headers={"Content-Type": "text/plain"})
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")
    code, _ = await served.request("PATCH", f"{MAPS}/a", data=b"{}", headers={"Content-Type": "application/json"})
    assert code == 415


async def test_a_pod_is_bound_and_evicted(served: "Served") -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await served.request("POST", pods, json=pod)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    code, status = await served.request("POST", f"{pods}/p/binding", json=binding)
    assert (code, status["status"]) == (201, "Success")
    assert (await served.request("POST", f"{pods}/p/binding", json=binding))[0] == 409
    code, status = await served.request("POST", f"{pods}/p/eviction", json={"metadata": {"name": "p"}})
    assert (code, status["status"]) == (201, "Success")
    _, evicted = await served.request("GET", f"{pods}/p")
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_tables_and_partial_metadata_are_made_on_request(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a", x="1"))
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    _, shown = await served.request("GET", MAPS, headers=table)
    assert [column["name"] for column in shown["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert shown["rows"][0]["cells"][:2] == ["a", 1]
    _, shown = await served.request("GET", f"{MAPS}/a", headers=table)
    assert shown["kind"] == "Table"
    partial = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    _, shown = await served.request("GET", MAPS, headers=partial)
    assert (shown["kind"], shown["items"][0]["kind"]) == ("PartialObjectMetadataList", "PartialObjectMetadata")


async def test_a_pod_with_scheduling_gates_is_shown_as_gated(served: "Served") -> None:
    pods = "/api/v1/namespaces/default/pods"
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGates": [{"name": "later"}]}
    await served.request("POST", pods, json={"metadata": {"name": "p"}, "spec": spec})
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    _, table = await served.request("GET", pods, headers=headers)
    assert table["rows"][0]["cells"][:3] == ["p", "0/1", "SchedulingGated"]


async def test_a_put_names_its_object(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a", x="1"))
    code, status = await served.request("PUT", f"{MAPS}/a", json={"metadata": {}})
    assert (code, status["message"]) == (
        400,
        "the name of the object (a based on URL) was undeterminable: name must be provided",
    )
    assert (await served.request("GET", f"{MAPS}/a"))[1]["data"] == {"x": "1"}


async def test_namespaces_are_not_deleted_all_at_once(served: "Served") -> None:
    code, status = await served.request("DELETE", "/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-node-lease")
    assert (code, status["reason"]) == (405, "MethodNotAllowed")
    assert (await served.request("GET", "/api/v1/namespaces/kube-node-lease"))[0] == 200


async def test_force_is_for_apply_alone(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a"))
    headers = {"Content-Type": bodies.MERGE_PATCH}
    code, status = await served.request("PATCH", f"{MAPS}/a?force=true", data=b"{}", headers=headers)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "force")


@pytest.mark.long
async def test_an_object_is_at_least_as_new_as_requested(served: "Served") -> None:
    created = (await served.request("POST", MAPS, json=config_map("a")))[1]
    version = created["metadata"]["resourceVersion"]
    assert (await served.request("GET", f"{MAPS}/a?resourceVersion={version}"))[1] == created
    assert (await served.request("GET", f"{MAPS}/a?resourceVersion=abc"))[1]["reason"] == "BadRequest"
    code, status = await served.request("GET", f"{MAPS}/a?resourceVersion={int(version) + 10**9}")
    assert (code, status["reason"]) == (504, "Timeout")


async def test_a_refusal_carries_its_warnings(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a"))
    code, _ = await served.request("POST", MAPS, json={**config_map("a"), "unknown": 1})
    assert (code, served.headers["Warning"]) == (409, '299 - "unknown field \\"unknown\\""')


async def test_a_dry_run_shows_the_result_without_storing_it(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a", x="1"))
    code, shown = await served.request("PUT", f"{MAPS}/a?dryRun=All", json=config_map("a", x="2"))
    assert (code, shown["data"]) == (200, {"x": "2"})
    assert (await served.request("GET", f"{MAPS}/a"))[1]["data"] == {"x": "1"}


async def test_a_write_is_answered_in_the_requested_version_and_form(served: "Served") -> None:
    body = {"metadata": {"name": "c"}, "spec": {}}
    code, beta = await served.request("POST", "/apis/resource.k8s.io/v1beta1/deviceclasses", json=body)
    assert (code, beta["apiVersion"]) == (201, "resource.k8s.io/v1beta1")
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    code, shown = await served.request("POST", MAPS, json=config_map("a"), headers=table)
    assert (code, shown["kind"], len(shown["rows"])) == (201, "Table", 1)


async def test_answers_are_yaml_on_request(served: "Served") -> None:
    await served.request("POST", MAPS, json=config_map("a", x="1"))
    for path in (f"{MAPS}/a", MAPS):
        code, text = await served.request("GET", path, headers={"Accept": "application/yaml"})
        assert (code, served.headers["Content-Type"]) == (200, "application/yaml")
        assert yaml.safe_load(text)["apiVersion"] == "v1"
