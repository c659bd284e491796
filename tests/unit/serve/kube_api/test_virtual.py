from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio


async def review(served: "Served", group: str, plural: str, **body: Any) -> Any:
    code, answer = await served.request("POST", f"/apis/{group}.k8s.io/v1/{plural}", json=body)
    assert code == 201
    return answer["status"]


async def test_reviews_are_answered_and_not_stored(served: "Served") -> None:
    version = served.store.version
    attributes = {"resourceAttributes": {"verb": "create", "resource": "pods"}}
    assert (await review(served, "authorization", "selfsubjectaccessreviews", spec=attributes))["allowed"]
    spec = {**attributes, "user": "nobody"}
    assert not (await review(served, "authorization", "subjectaccessreviews", spec=spec))["allowed"]
    rules = await review(served, "authorization", "selfsubjectrulesreviews", spec={"namespace": "default"})
    assert rules["resourceRules"][0]["verbs"] == ["*"]
    token = await review(served, "authentication", "tokenreviews", spec={"token": served.token})
    assert token["authenticated"]
    assert served.store.version == version


async def test_a_service_account_gets_a_token_that_works(served: "Served") -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await served.request("POST", accounts, json={"metadata": {"name": "robot"}})
    code, answer = await served.request("POST", f"{accounts}/robot/token", json={"spec": {"expirationSeconds": 600}})
    assert (code, answer["kind"]) == (201, "TokenRequest")
    token = answer["status"]["token"]
    assert (await served.request("GET", "/api/v1/pods", token=token))[0] == 200
    assert (await served.request("GET", "/api/v1/secrets", token=token))[0] == 403
    await served.request("DELETE", f"{accounts}/robot")
    assert (await served.request("GET", "/api/v1/pods", token=token))[0] == 401


async def test_the_legacy_way_to_bind_a_pod_works(served: "Served") -> None:
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await served.request("POST", pods, json=pod)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await served.request("POST", "/api/v1/namespaces/default/bindings", json=binding))[0] == 201
    assert (await served.request("GET", f"{pods}/p"))[1]["spec"]["nodeName"] == "n1"


async def test_another_kind_in_the_body_is_refused(served: "Served") -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    code, status = await served.request("POST", path, json={"kind": "Pod", "apiVersion": "v1"})
    assert (code, status["message"]) == (400, "Pod cannot be handled as a TokenReview")


async def test_a_node_gets_tokens_for_its_own_pods_only(served: "Served") -> None:
    accounts, pods = "/api/v1/namespaces/default/serviceaccounts", "/api/v1/namespaces/default/pods"
    await served.request("POST", accounts, json={"metadata": {"name": "drv"}})
    spec = {"serviceAccountName": "drv", "nodeName": "node1", "containers": [{"name": "c", "image": "i"}]}
    _, pod = await served.request("POST", pods, json={"metadata": {"name": "p"}, "spec": spec})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]}
    for node, code in (("node1", 201), ("node2", 403)):
        headers = {"Impersonate-User": f"system:node:{node}", "Impersonate-Group": "system:nodes"}
        body = {"spec": {"boundObjectRef": bound}}
        assert (await served.request("POST", f"{accounts}/drv/token", json=body, headers=headers))[0] == code
