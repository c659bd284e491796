"""What the embedded API does otherwise, on purpose: each entry of differences.toml, seen on both servers.

Entries that a test of the checklist meets on its way are asserted there."""

import http.client
import json
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

Document = dict[str, Any]
Make = Callable[["Site"], Document]

DRY_RUN = "?dryRun=All"
TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}


def with_device(**members: Any) -> Make:
    def make(site: "Site") -> Document:
        document = site.slice_document()
        document["spec"]["devices"] = [{"name": "gpu-0", **members}]
        return document

    return make


def with_selected_device(site: "Site") -> Document:
    document = with_device(nodeSelector={"nodeSelectorTerms": [TERM, TERM]})(site)
    document["spec"] |= {"nodeName": None, "perDeviceNodeSelection": True}
    return document


def with_request(**members: Any) -> Make:
    def make(site: "Site") -> Document:
        document = site.claim_document()
        document["spec"]["devices"]["requests"][0]["exactly"] |= members
        return document

    return make


def with_expression(site: "Site") -> Document:
    document = site.class_document()
    document["spec"]["selectors"][0]["cel"]["expression"] = 'device.driver.includes("x")'
    return document


def stepping_by(step: str) -> Make:
    policy = {"default": "1", "validRange": {"min": "1", "step": step}}
    return with_device(allowMultipleAllocations=True, capacity={"m": {"value": "4", "requestPolicy": policy}})


def with_uid(site: "Site") -> Document:
    document = site.template_document()
    document["spec"]["metadata"] = {"uid": "u"}
    return document


def with_bad_taint(site: "Site") -> Document:
    return site.node_document() | {"spec": {"taints": [{"key": "a", "effect": "Nope"}]}}


CODES: list[tuple[str, str, Make]] = [
    (
        "an object is created with a resourceVersion",
        "configmaps",
        lambda site: {"metadata": {"name": "cm1", "resourceVersion": "5"}},
    ),
    ("a capacity's range has a step of zero", "resourceslices", stepping_by("0")),
    ("a capacity request is negative", "resourceclaims", with_request(capacity={"requests": {"m": "-1"}})),
    (
        "a request has more than 16 tolerations",
        "resourceclaims",
        with_request(tolerations=[{"operator": "Exists"}] * 17),
    ),
    ("a device's node selector has several terms", "resourceslices", with_selected_device),
    ("a qualified name has two slashes", "resourceslices", with_device(attributes={"a.io/b/c": {"int": 1}})),
    ("an attribute of a device is a list", "resourceslices", with_device(attributes={"a": {"ints": [1, 2]}})),
    ("a selector calls includes()", "deviceclasses", with_expression),
    (
        "an object is invalid, and devlet stores its kind only for other programs",
        "persistentvolumeclaims",
        lambda site: {"metadata": {"name": "pvc"}, "spec": {}},
    ),
    (
        "a pod names a service account that does not exist",
        "pods",
        lambda site: {
            "metadata": {"name": "p1"},
            "spec": {"serviceAccountName": "nosuch", "containers": [{"name": "c", "image": "busybox"}]},
        },
    ),
]

FIELDS: list[tuple[str, str, Make]] = [
    ("admin access is not allowed in the namespace", "resourceclaims", with_request(adminAccess=True)),
    ("a template gives its claims a uid", "resourceclaimtemplates", with_uid),
    ("a node's taint is invalid", "nodes", with_bad_taint),
]


@pytest.mark.parametrize(("when", "plural", "make"), CODES, ids=[when for when, _, _ in CODES])
async def test_the_answer_to_a_create_is_listed(site: "Site", when: str, plural: str, make: Make) -> None:
    try:
        observed = site.create(plural, make(site)).summary
    except http.client.RemoteDisconnected:
        observed = "no answer"
    site.server.differs(when, observed)


@pytest.mark.parametrize(("when", "plural", "make"), FIELDS, ids=[when for when, _, _ in FIELDS])
async def test_the_field_of_a_cause_is_listed(site: "Site", when: str, plural: str, make: Make) -> None:
    answer = site.create(plural, make(site), query=DRY_RUN)
    assert answer.summary == "422 Invalid"
    site.server.differs(when, answer.causes[0]["field"])


async def test_causes_name_the_field_in_the_version_of_the_request(site: "Site") -> None:
    old = with_device(basic={"attributes": {"not a name": {"int": 1}}})(site)
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    answer = site.server.request("POST", "/apis/resource.k8s.io/v1beta1/resourceslices" + DRY_RUN, old)
    assert answer.summary == "422 Invalid"
    site.server.differs(
        "an object of an old version is invalid in a field that has a different path in the newest version",
        answer.causes[0]["field"],
    )


async def test_fields_behind_a_gate_are_kept(site: "Site") -> None:
    mapping = {"cpu": {"capacityKey": "cpus"}}
    document = with_device(capacity={"cpus": {"value": "4"}}, nodeAllocatableResourceMappings=mapping)(site)
    stored = site.create("resourceslices", document, query=DRY_RUN).document
    kept = "kept" if "nodeAllocatableResourceMappings" in stored["spec"]["devices"][0] else "dropped"
    site.server.differs("a field belongs to a feature gate that is off in Kubernetes", kept)


async def test_applying_an_unknown_field_is_the_clients_mistake(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm1"}, "unknown": 1}
    answer = site.patch("configmaps", "cm1", config, kind="apply", query="?fieldManager=me")
    assert "field not declared in schema" in answer.document["message"]
    site.server.differs("an apply patch has an unknown field", answer.summary)


async def test_binding_to_something_else_than_a_node_is_invalid(site: "Site") -> None:
    site.created("pods", site.pod_document(claim=False))
    binding = {"metadata": {"name": "p1"}, "target": {"kind": "Pod", "name": "x"}}
    answer = site.create("pods", binding, "p1", "binding")
    assert 'target.kind: Unsupported value: "Pod"' in answer.document["message"]
    site.server.differs("a pod is bound to something that is not a node", answer.summary)


async def test_a_watch_from_nonsense_is_the_clients_mistake(site: "Site") -> None:
    answer = site.get("configmaps", query="?watch=true&resourceVersion=abc")
    site.server.differs("a watch begins at a resourceVersion that is not a number", answer.summary)


async def test_a_cause_is_told_once(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    answer = site.patch("configmaps", "cm1", {"metadata": {"uid": "other"}})
    assert answer.summary == "422 Invalid"
    site.server.differs("a patch changes metadata that never changes", f"{len(answer.causes)} x metadata.uid")


async def test_keys_of_the_storage_are_not_told(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    document = site.config_map()
    document["metadata"]["uid"] = "other"
    answer = site.put("configmaps", document)
    assert answer.summary == "409 Conflict"
    leaks = "with the storage's key" if "StorageError" in answer.document["message"] else "plain text"
    site.server.differs("an update names another uid", leaks)


async def test_a_new_node_is_not_tainted(site: "Site") -> None:
    stored = site.created("nodes", site.node_document())
    taints = [f"{taint['key']}:{taint['effect']}" for taint in stored["spec"].get("taints", [])]
    site.server.differs("a node is created", " ".join(taints) or "no taint")


async def test_a_pod_gets_no_volume_for_a_token(site: "Site") -> None:
    spec = site.created("pods", site.pod_document())["spec"]
    volumes = ["projected" for volume in spec.get("volumes", []) if "projected" in volume]
    site.server.differs("a pod is created", " ".join(volumes) or "no volume")


async def test_a_namespace_has_no_authority(site: "Site") -> None:
    if site.server.name == "reference":
        site.eventually(lambda: site.get("configmaps", "kube-root-ca.crt").code == 200)
    answer = site.get("configmaps", "kube-root-ca.crt")
    site.server.differs("a namespace is created", "kube-root-ca.crt" if answer.code == 200 else "no config map")


async def test_a_pod_that_goes_at_once_is_one_event(site: "Site") -> None:
    version = site.created("pods", site.pod_document(claim=False))["metadata"]["resourceVersion"]
    with site.server.watch(site.path("pods") + f"?resourceVersion={version}&timeoutSeconds=1") as stream:
        assert site.delete("pods", "p1").code == 200
        events = [event["type"] for event in stream.rest()]
    site.server.differs("a pod is deleted that need not wait for its node", ", ".join(events))


async def test_the_server_has_no_service(site: "Site") -> None:
    answer = site.server.request("GET", "/api/v1/namespaces/default/services/kubernetes")
    site.server.differs("a client looks for the server's own service", str(answer.code))


async def test_old_paths_of_watches_are_not_served(site: "Site") -> None:
    path = f"/api/v1/watch/namespaces/{site.namespace}/configmaps?timeoutSeconds=1"
    site.server.differs("a watch uses a path of the form /api/v1/watch", str(site.server.request("GET", path).code))


async def test_only_groups_about_devices_are_served(site: "Site") -> None:
    found = (await site.prints("api-versions")).split()
    site.server.differs("a client lists the API versions", " ".join(sorted(found)))


async def test_only_core_resources_about_devices_are_served(site: "Site") -> None:
    resources = site.server.request("GET", "/api/v1").document["resources"]
    site.server.differs("a client lists the resources of v1", " ".join(sorted(one["name"] for one in resources)))


@pytest.mark.parametrize(
    ("when", "accept"),
    [
        ("a client prefers protobuf and accepts JSON", "application/vnd.kubernetes.protobuf,application/json"),
        ("a client accepts only protobuf", "application/vnd.kubernetes.protobuf"),
    ],
)
async def test_answers_are_json(site: "Site", when: str, accept: str) -> None:
    answer = site.server.request("GET", site.path("configmaps"), accept=accept)
    site.server.differs(when, f"{answer.code} {answer.headers['Content-Type']}")


async def test_the_protocol_is_http_1_1(site: "Site") -> None:
    address = urlsplit(site.server.api.endpoint)
    assert address.hostname and address.port
    trust = ssl.create_default_context(cafile=str(site.server.api.ca_file))
    trust.set_alpn_protocols(["h2", "http/1.1"])
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=trust, timeout=60)
    connection.connect()
    try:
        assert isinstance(connection.sock, ssl.SSLSocket)
        chosen = connection.sock.selected_alpn_protocol()
    finally:
        connection.close()
    site.server.differs("a client offers HTTP/2", {"h2": "HTTP/2"}.get(chosen or "", "HTTP/1.1"))


async def test_long_answers_are_not_compressed(site: "Site") -> None:
    site.created("configmaps", site.config_map("long", k="x" * 200_000))
    address = urlsplit(site.server.api.endpoint)
    assert address.hostname and address.port
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=site.server.trust, timeout=60)
    headers = {"Authorization": f"Bearer {site.server.api.token}", "Accept-Encoding": "gzip"}
    connection.request("GET", site.path("configmaps", "long"), headers=headers)
    with connection.getresponse() as answer:
        encoding = answer.headers.get("Content-Encoding", "as it is")
    connection.close()
    site.server.differs("an answer is longer than 128 KiB and may be compressed", encoding)
    assert json.loads(site.get("configmaps", "long").body)["data"]["k"] == "x" * 200_000
