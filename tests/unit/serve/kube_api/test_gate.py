import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from devlet.objects.documents import Document
from devlet.objects.kinds import RBAC
from devlet.serve.kube_api.gate import bearer_token, peer_uid

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio
ROLE_VERSION = RBAC[0].api_version


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer  ", "Basic YTpi", "Digest x", "admin-token"])
def test_other_authorization_headers_have_no_bearer_token(value: str) -> None:
    assert bearer_token([("accept", "*/*"), ("AUTHORIZATION", value)]) == ""
    assert bearer_token([]) == ""


@pytest.mark.parametrize("value", ["Bearer admin-token", "bearer admin-token", "BEARER   admin-token "])
def test_the_scheme_of_a_bearer_token_has_any_case(value: str) -> None:
    assert bearer_token([("accept", "*/*"), ("AUTHORIZATION", value)]) == "admin-token"


async def test_wrong_credentials_are_refused_and_none_are_anonymous(served: "Served") -> None:
    assert (await served.request("GET", "/api/v1/pods", token="wrong"))[0] == 401
    code, status = await served.request("GET", "/api/v1/pods", token="")
    assert (code, 'User "system:anonymous"' in status["message"]) == (403, True)


async def test_impersonation_requires_a_permission_for_each_part(served: "Served") -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    token = (await served.request("POST", path, json={"spec": {}}))[1]["status"]["token"]
    headers = {"Impersonate-User": "alice", "Impersonate-Group": "system:masters"}

    async def refusal() -> str:
        code, status = await served.request("GET", "/api/v1/pods", token=token, headers=headers)
        assert code == 403
        return str(status["message"])

    assert 'cannot impersonate resource "users"' in await refusal()
    rule: Document = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]}
    account: Document = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    await grant(served, rule, to=account)
    assert 'cannot impersonate resource "groups"' in await refusal()


async def test_the_owner_of_the_socket_is_administrator(socket_session: aiohttp.ClientSession) -> None:
    async with socket_session.post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json={"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"},
    ) as answer:
        assert answer.status == 201
        assert "system:masters" in (await answer.json())["status"]["userInfo"]["groups"]


async def test_an_administrator_may_act_as_another_user(served: "Served") -> None:
    headers = {"Impersonate-User": "alice"}
    code, status = await served.request("GET", "/api/v1/pods", headers=headers)
    assert (code, 'User "alice"' in status["message"]) == (403, True)


ALICE: Document = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}


async def grant(served: "Served", *rules: Document, to: Document = ALICE) -> None:
    """Give the subject a role with these rules."""
    role = {"metadata": {"name": "hers"}, "rules": list(rules)}
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "hers"},
        "subjects": [to],
    }
    for plural, document in (("clusterroles", role), ("clusterrolebindings", binding)):
        assert (await served.request("POST", f"/apis/{ROLE_VERSION}/{plural}", json=document))[0] == 201


async def test_roles_take_effect_when_they_are_written(served: "Served") -> None:
    headers = {"Impersonate-User": "alice"}
    await grant(served, {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]})
    assert (await served.request("GET", "/api/v1/pods", headers=headers))[0] == 200
    await served.request("DELETE", f"/apis/{ROLE_VERSION}/clusterrolebindings/alice")
    assert (await served.request("GET", "/api/v1/pods", headers=headers))[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "content_type"),
    [
        ("PATCH", "/api/v1/namespaces/default/configmaps/a?fieldManager=me", "application/apply-patch+yaml"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", "application/json"),
    ],
)
async def test_updating_an_absent_object_requires_the_right_to_create_it(
    served: "Served", method: str, path: str, content_type: str
) -> None:
    headers = {"Impersonate-User": "alice", "Content-Type": content_type}
    groups, resources = ["", "coordination.k8s.io"], ["configmaps", "leases"]
    await grant(served, {"verbs": ["update", "patch"], "apiGroups": groups, "resources": resources})
    body = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        if method == "PATCH"
        else {"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}}
    ).encode()
    code, status = await served.request(method, path, data=body, headers=headers)
    assert (code, 'User "alice" cannot create resource' in status["message"]) == (403, True)
    as_admin = {"Content-Type": content_type}
    assert (await served.request(method, path, data=body, headers=as_admin))[0] == 201
    assert (await served.request(method, path, data=body, headers=headers))[0] != 403


async def test_a_node_creates_mirrors_of_its_pods_and_no_other_pods(served: "Served") -> None:
    headers = {"Impersonate-User": "system:node:node1", "Impersonate-Group": "system:nodes"}
    _, node = await served.request("POST", "/api/v1/nodes", json={"metadata": {"name": "node1"}})
    uid = node["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": uid, "controller": True}
    metadata = {"name": "web-node1", "ownerReferences": [owner]}
    pod = {"metadata": metadata, "spec": {"nodeName": "node1", "containers": [{"name": "c", "image": "i"}]}}
    path = "/api/v1/namespaces/default/pods"
    code, status = await served.request("POST", path, json=pod, headers=headers)
    assert (code, "can only create mirror pods" in status["message"]) == (403, True)
    mirror = {**pod, "metadata": {**metadata, "annotations": {"kubernetes.io/config.mirror": "x"}}}
    assert (await served.request("POST", path, json=mirror, headers=headers))[0] == 201


async def test_a_node_writes_only_its_own_slices(served: "Served") -> None:
    headers = {"Impersonate-User": "system:node:node1", "Impersonate-Group": "system:nodes"}
    spec = {"driver": "d.example.com", "pool": {"name": "p", "resourceSliceCount": 1}}
    path = "/apis/resource.k8s.io/v1/resourceslices"
    foreign = {"metadata": {"name": "s2"}, "spec": {**spec, "nodeName": "node2"}}
    code, status = await served.request("POST", path, json=foreign, headers=headers)
    assert (code, "with the same NodeName as the requesting node" in status["message"]) == (403, True)
    own = {"metadata": {"name": "s1"}, "spec": {**spec, "nodeName": "node1"}}
    assert (await served.request("POST", path, json=own, headers=headers))[0] == 201


async def test_a_node_cannot_change_its_owners_or_restricted_labels(served: "Served") -> None:
    headers = {
        "Impersonate-User": "system:node:node1",
        "Impersonate-Group": "system:nodes",
        "Content-Type": "application/merge-patch+json",
    }
    await served.request("POST", "/api/v1/nodes", json={"metadata": {"name": "node1"}})
    owner = {"apiVersion": "v1", "kind": "Node", "name": "gone", "uid": "12345"}
    for metadata, word in (
        ({"ownerReferences": [owner]}, "ownerReferences"),
        ({"labels": {"node-restriction.kubernetes.io/a": "b"}}, "labels"),
    ):
        body = json.dumps({"metadata": metadata}).encode()
        code, status = await served.request("PATCH", "/api/v1/nodes/node1", data=body, headers=headers)
        assert (code, f"not allowed to modify {word}" in status["message"]) == (403, True)


async def test_the_role_of_a_binding_cannot_be_changed(served: "Served") -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    path = f"/apis/{ROLE_VERSION}/clusterrolebindings"
    await served.request("POST", path, json={"metadata": {"name": "b"}, "roleRef": reference})
    headers = {"Content-Type": "application/merge-patch+json"}
    body = b'{"roleRef":{"name":"cluster-admin"}}'
    code, status = await served.request("PATCH", f"{path}/b", data=body, headers=headers)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "roleRef")


CONNECT = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""


def connect_as(uid: int, path: Path) -> int:
    """Return the uid that the server sees."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o777)
        server.listen()
        server.settimeout(60)
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", CONNECT, str(path), str(uid)]):
            connection, _ = server.accept()
            with connection:
                return peer_uid(connection)


def test_the_kernel_reports_the_user_at_the_other_end(root: Path) -> None:
    assert connect_as(os.geteuid(), root / "s") == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_recognized(root: Path) -> None:
    root.chmod(0o755)
    assert connect_as(65534, root / "s") == 65534
