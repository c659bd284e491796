from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from devlet.errors import NotPrepared
from devlet.objects.documents import Document

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Serve, Served

pytestmark = pytest.mark.anyio

BASE = "/apis/devlet.dev/v1alpha1"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def view(kind: str, name: str, namespace: str = "", **parts: Any) -> Document:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"kind": kind, "apiVersion": "devlet.dev/v1alpha1", "metadata": metadata, **parts}


def device(resource: str, id: str, state: str) -> Document:
    spec = {"resource": resource, "id": id, "numaNodes": []}
    name = f"{resource.replace('/', ':')}:{id}"
    return view("Device", name, spec=spec, status={"state": state, "health": "Healthy"})


class Views:
    def __init__(self) -> None:
        self.released: list[tuple[str, str, bool]] = []
        self.refusal = ""

    def devices(self) -> list[Document]:
        return [device("a.com/gpu", "0", "Held"), device("a.com/gpu", "g1", "Free"), device("a.com/nic", "0", "Free")]

    def plugins(self) -> list[Document]:
        return [view("Plugin", "a.com:gpu", spec={"resource": "a.com/gpu"}, status={"state": "Connected"})]

    async def holders(self) -> list[Document]:
        labelled = view("Holder", "train", "ns", spec={"podUID": "u"}, status={"containers": []})
        labelled["metadata"]["labels"] = {"app": "x"}
        return [view("Holder", "train", "default", spec={"podUID": "v"}, status={"containers": []}), labelled]

    async def drivers(self) -> list[Document]:
        return [view("Driver", "a.com", spec={"driver": "a.com"}, status={"state": "Connected"})]

    def prepared_claims(self) -> list[Document]:
        return [view("PreparedClaim", "c", "ns", spec={"uid": "u"}, status={"state": "Prepared"})]

    async def release_claim(self, namespace: str, name: str, *, force: bool) -> None:
        if self.refusal:
            raise NotPrepared(self.refusal)
        self.released.append((namespace, name, force))


@pytest.fixture
async def viewed(serve: "Serve") -> AsyncIterator["Served"]:
    async with serve(views=Views()) as api:
        yield api


async def names(viewed: "Served", path: str) -> list[str]:
    code, answer = await viewed.request("GET", BASE + path)
    assert code == 200, answer
    return [item["metadata"]["name"] for item in answer["items"]]


async def test_without_views_there_is_no_such_group(served: "Served") -> None:
    assert (await served.request("GET", BASE))[0] == 404
    assert (await served.request("GET", f"{BASE}/devices"))[0] == 404


async def test_discovery_lists_the_verbs_of_views(viewed: "Served") -> None:
    _, listed = await viewed.request("GET", BASE)
    shown = {each["name"]: (each["kind"], each["namespaced"], each["verbs"]) for each in listed["resources"]}
    verbs = ["get", "list"]
    assert shown == {
        "devices": ("Device", False, verbs),
        "drivers": ("Driver", False, verbs),
        "holders": ("Holder", True, verbs),
        "plugins": ("Plugin", False, verbs),
        "preparedclaims": ("PreparedClaim", True, ["delete", *verbs]),
    }
    assert [each["shortNames"] for each in listed["resources"] if "shortNames" in each] == [["pclaims"]]
    _, groups = await viewed.request("GET", "/apis")
    assert "devlet.dev" in [group["name"] for group in groups["groups"]]
    _, everything = await viewed.request("GET", "/apis", headers={"Accept": AGGREGATED})
    [group] = [item for item in everything["items"] if item["metadata"]["name"] == "devlet.dev"]
    assert [each["resource"] for each in group["versions"][0]["resources"]] == list(shown)
    _, index = await viewed.request("GET", "/openapi/v3")
    assert "apis/devlet.dev/v1alpha1" in index["paths"]


async def test_views_are_listed_like_other_objects(viewed: "Served") -> None:
    code, answer = await viewed.request("GET", f"{BASE}/devices")
    assert (code, answer["kind"], answer["apiVersion"]) == (200, "DeviceList", "devlet.dev/v1alpha1")
    assert answer["items"][0].keys() == {"metadata", "spec", "status"}
    assert await names(viewed, "/plugins") == ["a.com:gpu"]
    assert await names(viewed, "/drivers?fieldSelector=status.state%3DConnected") == ["a.com"]
    assert await names(viewed, "/drivers?fieldSelector=spec.driver%3Db.com") == []
    assert await names(viewed, "/namespaces/ns/preparedclaims?fieldSelector=spec.uid%3Du") == ["c"]
    assert await names(viewed, "/namespaces/default/preparedclaims") == []
    assert await names(viewed, "/holders") == ["train", "train"]
    assert await names(viewed, "/namespaces/ns/holders") == ["train"]
    assert await names(viewed, "/namespaces/nosuch/holders") == []


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("fieldSelector=metadata.name%3Da.com:gpu:0", ["a.com:gpu:0"]),
        ("fieldSelector=spec.resource%3Da.com/gpu", ["a.com:gpu:0", "a.com:gpu:g1"]),
        ("fieldSelector=status.state%3DFree,spec.resource!%3Da.com/gpu", ["a.com:nic:0"]),
        ("labelSelector=app%3Dx", []),
    ],
)
async def test_devices_can_be_selected(viewed: "Served", selector: str, expected: list[str]) -> None:
    assert await names(viewed, f"/devices?{selector}") == expected


async def test_holders_carry_the_labels_of_their_pods(viewed: "Served") -> None:
    _, answer = await viewed.request("GET", f"{BASE}/holders?labelSelector=app%3Dx")
    assert [item["metadata"]["namespace"] for item in answer["items"]] == ["ns"]


async def test_an_unsupported_field_selector_is_refused(viewed: "Served") -> None:
    code, answer = await viewed.request("GET", f"{BASE}/devices?fieldSelector=spec.colour%3Dred")
    assert (code, answer["message"]) == (400, "field label not supported: spec.colour")


async def test_a_view_is_found_by_its_name(viewed: "Served") -> None:
    code, answer = await viewed.request("GET", f"{BASE}/devices/a.com:nic:0")
    assert (code, answer["kind"], answer["spec"]["resource"]) == (200, "Device", "a.com/nic")
    code, answer = await viewed.request("GET", f"{BASE}/namespaces/ns/holders/train")
    assert (code, answer["spec"]["podUID"]) == (200, "u")
    code, answer = await viewed.request("GET", f"{BASE}/plugins/nosuch")
    assert (code, answer["message"]) == (404, 'plugins.devlet.dev "nosuch" not found')
    assert (await viewed.request("GET", f"{BASE}/devices/a.com:nic:0/status"))[0] == 404


async def test_a_device_is_found_by_its_id_alone_if_there_is_only_one(viewed: "Served") -> None:
    code, answer = await viewed.request("GET", f"{BASE}/devices/g1")
    assert (code, answer["metadata"]["name"]) == (200, "a.com:gpu:g1")
    code, answer = await viewed.request("GET", f"{BASE}/devices/0")
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert answer["message"] == '2 devices have the id "0": say which by its name: a.com:gpu:0, a.com:nic:0'
    assert (await viewed.request("GET", f"{BASE}/devices/g7"))[0] == 404


async def test_views_are_available_as_tables_and_partial_metadata(viewed: "Served") -> None:
    _, shown = await viewed.request("GET", f"{BASE}/devices", headers={"Accept": TABLE})
    assert [column["name"] for column in shown["columnDefinitions"]][:2] == ["Resource", "ID"]
    assert [row["cells"][:2] for row in shown["rows"]][1] == ["a.com/gpu", "g1"]
    _, shown = await viewed.request("GET", f"{BASE}/devices/g1", headers={"Accept": TABLE})
    assert [row["object"]["metadata"]["name"] for row in shown["rows"]] == ["a.com:gpu:g1"]
    _, shown = await viewed.request("GET", f"{BASE}/plugins", headers={"Accept": PARTIAL})
    assert [item["metadata"] for item in shown["items"]] == [{"name": "a.com:gpu"}]
    assert (await viewed.request("GET", f"{BASE}/plugins/a.com:gpu", headers={"Accept": PARTIAL}))[0] == 406


async def test_a_prepared_claim_is_released_by_deleting_it(serve: "Serve") -> None:
    views, path = Views(), f"{BASE}/namespaces/ns/preparedclaims"
    async with serve(views=views) as api:
        assert (await api.request("DELETE", f"{path}/c?dryRun=All"))[0] == 200 and not views.released
        code, answer = await api.request("DELETE", f"{path}/c")
        assert (code, answer["kind"], answer["metadata"]["name"]) == (200, "PreparedClaim", "c")
        force = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        assert (await api.request("DELETE", f"{path}/c", json=force))[0] == 200
        assert views.released == [("ns", "c", False), ("ns", "c", True)]
        assert (await api.request("DELETE", f"{path}/other"))[0] == 404
        assert (await api.request("DELETE", path))[0] == 405
        views.refusal = "its pod runs"
        code, answer = await api.request("DELETE", f"{path}/c")
        assert (code, answer["reason"]) == (409, "Conflict") and "its pod runs" in answer["message"]


async def test_views_can_be_neither_changed_nor_watched(viewed: "Served") -> None:
    version = viewed.store.version
    for method, path in (
        ("POST", "/devices"),
        ("DELETE", "/devices"),
        ("PUT", "/devices/g1"),
        ("PATCH", "/devices/g1"),
        ("DELETE", "/namespaces/ns/holders/train"),
        ("GET", "/devices?watch=1"),
    ):
        code, answer = await viewed.request(method, BASE + path, json={} if method != "GET" else None)
        assert (code, answer["reason"]) == (405, "MethodNotAllowed"), (method, path)
    assert viewed.store.version == version


async def test_views_require_a_permission(viewed: "Served") -> None:
    role = {
        "metadata": {"name": "watchman"},
        "rules": [{"apiGroups": ["devlet.dev"], "resources": ["devices"], "verbs": ["list"]}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    binding = {
        "metadata": {"name": "watchman"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "watchman"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    }
    as_bob = {"Impersonate-User": "bob"}
    assert (await viewed.request("GET", f"{BASE}/devices", headers=as_bob))[0] == 403
    await viewed.request("POST", f"{rbac}/clusterroles", json=role)
    await viewed.request("POST", f"{rbac}/clusterrolebindings", json=binding)
    assert (await viewed.request("GET", f"{BASE}/devices", headers=as_bob))[0] == 200
    assert (await viewed.request("GET", f"{BASE}/devices/g1", headers=as_bob))[0] == 403
    assert (await viewed.request("GET", f"{BASE}/plugins", headers=as_bob))[0] == 403


async def test_the_group_cannot_be_taken_by_a_custom_resource(viewed: "Served") -> None:
    definition = {
        "metadata": {"name": "devices.devlet.dev"},
        "spec": {
            "group": "devlet.dev",
            "scope": "Cluster",
            "names": {"plural": "devices", "kind": "Device"},
            "versions": [{"name": "v1alpha1", "served": True, "storage": True}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    code, answer = await viewed.request("POST", path, json=definition)
    assert (code, answer["reason"]) == (422, "Invalid")
    assert "is a group of the server's own" in answer["message"]
