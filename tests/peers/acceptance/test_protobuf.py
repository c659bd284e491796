"""Bodies in Kubernetes' protobuf: every recorded pair that can be created means to a server what its JSON means."""

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlet.objects.documents import copy
from devlet.objects.kinds import BUILT_IN, Resource
from devlet.objects.protobuf import envelope as kube_protobuf
from devlet.serve.kube_api.paths import VIRTUAL

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Answer, Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

Document = dict[str, Any]

PROTOBUF = "application/vnd.kubernetes.protobuf"
QUERY = "?dryRun=All&fieldValidation=Ignore"
RESOURCES = {(v, kind.kind): Resource(kind, v) for kind in (*BUILT_IN, *VIRTUAL) for v in kind.api_versions}
# Of a pod or a service account: (resource, subresource)
SUBRESOURCES = {
    "Binding": ("pods", "binding"),
    "Eviction": ("pods", "eviction"),
    "TokenRequest": ("serviceaccounts", "token"),
}
OF_THE_SERVER = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "generation", "selfLink")
# Written by hand, so they are valid, but for these.
REFUSED = {
    "fixture/a_core/7": 422,  # an empty key
    "fixture/a_core/9": 409,  # the default service account
    "fixture/r_v1/2": 422,  # counters beside devices
    "fixture/r_v1beta2/2": 422,
    "fixture/r_v1beta1/0": 422,  # admin access
}
VECTORS = json.loads((Path(__file__).resolve().parents[2] / "vectors" / "kube_protobuf.json").read_text())["vectors"]
STORED = [v for v in VECTORS if (v["apiVersion"], v["kind"]) in RESOURCES and v["kind"] not in SUBRESOURCES]
ON_OTHERS = [v for v in VECTORS if v["kind"] in SUBRESOURCES]
DELETE_OPTIONS = [v for v in VECTORS if v["kind"] == "DeleteOptions"]


def name_of(vector: Document) -> str:
    return str(vector["name"])


def in_namespace(vector: Document, namespace: str) -> tuple[Document, bytes]:
    """Both forms of the pair, after the changes without which any server refuses it for where it is from."""
    document = copy(vector["json"])
    metadata = document.setdefault("metadata", {})
    metadata.pop("resourceVersion", None)
    if namespace:
        metadata["namespace"] = namespace
        for subject in (document.get("involvedObject"), document.get("regarding")):
            if subject:  # an event lives where its object lives
                subject["namespace"] = namespace
    blob = b64decode(vector["protobuf_base64"])
    return document, blob if document == vector["json"] else kube_protobuf.encode(document)


def meaning(answer: "Answer") -> Document:
    """The answer without what differs from one request to the next."""
    document = answer.document
    if document["kind"] == "Status":
        causes = sorted((cause.get("field", ""), cause.get("reason", "")) for cause in answer.causes)
        return {"code": answer.code, "reason": answer.reason, "causes": causes}
    for key in OF_THE_SERVER:
        document["metadata"].pop(key, None)
    if document["kind"] == "Pod":
        document["spec"] = without_token(document["spec"])
    status = document.get("status") or {}
    for key in ("token", "expirationTimestamp"):
        status.pop(key, None)
    for key in ("resourceRules", "nonResourceRules"):  # which the reference tells in any order
        if key in status:
            status[key] = sorted(status[key], key=json.dumps)
    found: Document = without_times(document)
    return found


def without_times(value: Any) -> Any:
    """A document without the times of taints, which the server fills in: the clock goes on between two requests."""
    if isinstance(value, list):
        return [without_times(each) for each in value]
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key != "timeAdded"}
    return value


def without_token(spec: Any) -> Any:
    """A pod's spec without the volume, named at random, that some servers add for the service account's token."""
    if isinstance(spec, list):
        return [without_token(member) for member in spec if not is_token(member)]
    if isinstance(spec, dict):
        parts = {key: without_token(value) for key, value in spec.items()}
        return {key: value for key, value in parts.items() if value != [] or spec[key] == []}
    return spec


def is_token(member: Any) -> bool:
    return isinstance(member, dict) and str(member.get("name", "")).startswith("kube-api-access-")


def lost(sent: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Where `stored` does not have what was sent. Defaults may come on top."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            if key in stored:
                yield from lost(value, stored[key], f"{path}.{key}")
            elif value not in ({}, [], None, "", 0, False):
                yield f"{path}.{key}"
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) <= len(stored):
        for i, (ours, theirs) in enumerate(zip(sent, stored, strict=False)):
            yield from lost(ours, theirs, f"{path}[{i}]")
    elif sent != stored:
        yield path


@pytest.mark.spec("KA-10.81")
@pytest.mark.parametrize("vector", STORED, ids=name_of)
async def test_a_protobuf_body_means_what_its_json_means(site: "Site", vector: Document) -> None:
    resource = RESOURCES[vector["apiVersion"], vector["kind"]]
    document, blob = in_namespace(vector, site.namespace if resource.namespaced else "")
    group = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
    scope = f"/namespaces/{site.namespace}" if resource.namespaced else ""
    path = f"{group}{scope}/{resource.plural}{QUERY}"
    sent = site.server.request("POST", path, blob, content_type=PROTOBUF)
    assert meaning(sent) == meaning(site.server.request("POST", path, document))
    if resource.kind in tuple(VIRTUAL):
        return
    if not vector["name"].startswith("fixture/"):
        assert sent.code == (403 if vector["name"] == "filled/v1/Pod" else 422)  # nonsense in every field, or nothing
        return
    assert sent.code == REFUSED.get(vector["name"], 201)
    if sent.code == 201:
        kept = {key: value for key, value in document.items() if key != "status"}
        kept["metadata"] = {key: value for key, value in kept["metadata"].items() if key not in OF_THE_SERVER}
        assert list(lost(kept, sent.document)) == []


@pytest.mark.spec("KA-10.81")
@pytest.mark.parametrize("vector", ON_OTHERS, ids=name_of)
async def test_a_protobuf_body_of_a_subresource_means_what_its_json_means(site: "Site", vector: Document) -> None:
    document, blob = in_namespace(vector, site.namespace)
    plural, subresource = SUBRESOURCES[vector["kind"]]
    name = document["metadata"].get("name", "default")
    if plural == "pods":
        site.created("pods", site.pod_document(name, claim=False))
    path = site.path(plural, name, subresource) + QUERY
    sent = site.server.request("POST", path, blob, content_type=PROTOBUF)
    assert meaning(sent) == meaning(site.server.request("POST", path, document))


@pytest.mark.spec("KA-10.81")
@pytest.mark.parametrize("vector", DELETE_OPTIONS, ids=name_of)
async def test_options_of_a_deletion_are_read_whatever_their_group(site: "Site", vector: Document) -> None:
    blob, path = b64decode(vector["protobuf_base64"]), site.path("resourceclaims", "nosuch")
    sent = site.server.request("DELETE", path, blob, content_type=PROTOBUF)
    assert meaning(sent) == meaning(site.server.request("DELETE", path, vector["json"]))
    assert sent.summary == ("404 NotFound" if not vector["name"].startswith("filled/") else "422 Invalid")
