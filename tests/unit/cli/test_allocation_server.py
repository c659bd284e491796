from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_server import Server
from devlet.cli.session import Session
from devlet.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API

GROUP = "/apis/resource.k8s.io/v1"


def filled(server: Server, *, pods: bool = False) -> Objects:
    objects = Objects()
    server.fill(objects, pods=pods)
    return objects


def refusal(text: str) -> tuple[int, dict[str, Any]]:
    return 403, {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": text}


@pytest.fixture
def server(api: "API", session: Session) -> Server:
    api.put("/api/v1/nodes/n1", {})
    api.put(f"{GROUP}/deviceclasses/gpu", {"spec": {}})
    api.put(f"{GROUP}/resourceslices/s", {"spec": {"driver": "d", "nodeName": "n1", "devices": [{"name": "a"}]}})
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {"spec": {"devices": {"requests": [request]}}}
    for namespace in ("a", "b"):
        api.put(f"{GROUP}/namespaces/{namespace}/resourceclaims/c", claim)
    return Server(session)


def test_everything_is_listed_in_all_namespaces_and_only_read(api: "API", server: Server) -> None:
    found = filled(server)
    assert list(found.claims) == [("a", "c"), ("b", "c")]
    assert (list(found.nodes), list(found.classes), list(found.slices)) == ([("", "n1")], [("", "gpu")], [("", "s")])
    (request,) = found.claims["a", "c"].spec.devices.requests
    assert request.exactly and request.exactly.count == 1
    assert {method for method, _, _ in api.requests} == {"GET"}


def test_one_object_is_added_if_there_is_one(api: "API", server: Server) -> None:
    api.put("/api/v1/namespaces/a/pods/p", {"spec": {}})
    objects = Objects()
    assert server.add(objects, "pods", ("a", "p")) and list(objects.pods) == [("a", "p")]
    assert not server.add(objects, "pods", ("a", "q"))


def test_pods_and_templates_come_if_they_are_asked_for(api: "API", server: Server) -> None:
    api.put("/api/v1/namespaces/a/pods/p", {"spec": {}})
    api.put(f"{GROUP}/namespaces/a/resourceclaimtemplates/t", {"spec": {"spec": {}}})
    found = filled(server, pods=True)
    assert (list(found.pods), list(found.templates)) == ([("a", "p")], [("a", "t")])
    assert not filled(server).pods


def test_what_is_there_already_is_kept(server: Server) -> None:
    objects = Objects()
    mine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"mine": "yes"}}}
    objects.add(mine, "file")
    server.fill(objects, pods=False)
    assert objects.nodes["", "n1"].metadata.labels == {"mine": "yes"}


def test_taint_rules_are_read_where_they_may_be(api: "API", server: Server) -> None:
    rules = "/apis/resource.k8s.io/v1alpha3/devicetaintrules"
    api.put(f"{rules}/r", {"spec": {"deviceSelector": {}, "taint": {"key": "k", "effect": "NoSchedule"}}})
    assert list(filled(server).rules) == [("", "r")]
    api.answers["GET", rules] = refusal("no")
    assert not filled(server).rules


def test_a_user_who_may_not_read_claims_learns_what_is_needed(api: "API", server: Server) -> None:
    api.answers["GET", f"{GROUP}/resourceclaims"] = refusal("resourceclaims is forbidden")
    with pytest.raises(
        Forbidden, match="resourceclaims is forbidden: this command must be allowed to list nodes, deviceclasses"
    ):
        filled(server)


def test_a_server_without_the_group_is_an_error(api: "API", server: Server) -> None:
    api.answers["GET", "/apis"] = (200, {"kind": "APIGroupDiscoveryList", "items": []})
    with pytest.raises(NotFound, match="allocation needs the API group"):
        filled(server)
