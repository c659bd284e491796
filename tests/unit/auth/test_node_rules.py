from collections.abc import Iterable
from typing import Any

import pytest

from devlet.auth.node_rules import decide
from devlet.auth.rules import Attributes
from devlet.objects.documents import Document

UNRELATED = "no relationship found between node 'n1' and this object"
SLICES = "can only list/watch/deletecollection resourceslices with nodeName field selector"


class World:
    """Pod `mine` of n1 and pod `other` of n2, each with a claim, a secret and an account of its name."""

    def pods_on(self, node: str) -> Iterable[Document]:
        name = {"n1": "mine", "n2": "other"}[node]
        volumes = [{"secret": {"secretName": name}}, {"configMap": {"name": name}}]
        spec = {"serviceAccountName": name, "resourceClaims": [{"resourceClaimName": name}], "volumes": volumes}
        return [{"metadata": {"name": name, "namespace": "ns"}, "spec": spec}]

    def slice_node(self, name: str) -> str | None:
        return {"mine": "n1", "other": "n2"}.get(name)


def core(verb: str, resource: str, name: str = "", sub: str = "", namespace: str = "ns", **more: Any) -> Attributes:
    return Attributes(verb, resource=resource, name=name, subresource=sub, namespace=namespace, **more)


def dra(verb: str, resource: str, name: str = "", namespace: str = "", **more: Any) -> Attributes:
    group = "resource.k8s.io"
    return Attributes(verb, group=group, version="v1", resource=resource, name=name, namespace=namespace, **more)


def lease(verb: str, name: str = "n1", namespace: str = "kube-node-lease") -> Attributes:
    return Attributes(verb, group="coordination.k8s.io", resource="leases", name=name, namespace=namespace)


ALLOWED = [
    dra("create", "resourceslices"),
    *(dra(verb, "resourceslices", "mine") for verb in ("get", "update", "patch", "delete")),
    *(dra(v, "resourceslices", field_selector="spec.nodeName=n1") for v in ("list", "watch", "deletecollection")),
    dra("deletecollection", "resourceslices", field_selector="spec.nodeName=n1,spec.driver=d"),
    dra("get", "resourceclaims", "mine", "ns"),
    *(dra(verb, "deviceclasses") for verb in ("get", "list", "watch")),
    core("get", "pods", "mine"),
    core("list", "pods", namespace="", field_selector="spec.nodeName=n1"),
    core("watch", "pods", namespace="", field_selector="spec.nodeName=n1,status.phase!=Failed"),
    core("watch", "pods", field_selector="metadata.name=mine"),
    core("create", "pods"),
    core("delete", "pods", "mine"),
    core("patch", "pods", "mine", "status"),
    core("create", "pods", "mine", "eviction"),
    core("create", "nodes", namespace=""),
    core("get", "nodes", "n1", namespace=""),
    core("watch", "nodes", namespace="", field_selector="metadata.name=n1"),
    core("patch", "nodes", "n1", "status", namespace=""),
    core("get", "secrets", "mine"),
    core("watch", "secrets", field_selector="metadata.name=mine"),
    core("get", "configmaps", "mine"),
    core("get", "serviceaccounts", "mine"),
    core("create", "serviceaccounts", "mine", "token"),
    core("create", "events"),
    core("list", "services", namespace=""),
    *(lease(verb) for verb in ("get", "update", "patch", "delete")),
    lease("create", name=""),
    Attributes("create", group="authentication.k8s.io", resource="tokenreviews"),
]

REFUSED = [
    (dra("update", "resourceslices", "other"), UNRELATED),
    (dra("get", "resourceslices", "none"), UNRELATED),
    (dra("list", "resourceslices"), SLICES),
    (dra("list", "resourceslices", field_selector="spec.nodeName=n2"), SLICES),
    (dra("list", "resourceslices", field_selector="spec.nodeName!=n1"), SLICES),
    (dra("list", "resourceslices", field_selector="bogus=1"), SLICES),
    (dra("deletecollection", "resourceslices", field_selector="spec.driver=d"), SLICES),
    (dra("proxy", "resourceslices", "mine"), "only the following verbs are allowed for a ResourceSlice: get, watch"),
    (dra("get", "resourceslices", "mine", subresource="status"), "cannot authorize ResourceSlice subresources"),
    (dra("get", "resourceclaims", "other", "ns"), UNRELATED),
    (dra("get", "resourceclaims", "mine", "other-ns"), UNRELATED),
    (dra("list", "resourceclaims", namespace="ns"), "can only get individual resources of this type"),
    (dra("update", "resourceclaims", "mine", "ns"), "can only get individual resources of this type"),
    (dra("patch", "resourceclaims", "mine", "ns", subresource="status"), "cannot get subresource"),
    (dra("create", "deviceclasses"), ""),
    (core("get", "pods", "other"), UNRELATED),
    (core("list", "pods", namespace=""), "can only list/watch pods with spec.nodeName field selector"),
    (core("update", "pods", "mine"), ""),
    (core("create", "pods", "mine", "binding"), ""),
    (core("create", "pods", "other", "eviction"), "node n1 can only evict pods with spec.nodeName set to itself"),
    (core("get", "nodes", "n2", namespace=""), "node 'n1' cannot read 'n2', only its own Node object"),
    (core("list", "nodes", namespace=""), "node 'n1' cannot read all nodes, only its own Node object"),
    (core("delete", "nodes", "n1", namespace=""), ""),
    (core("get", "secrets", "other"), UNRELATED),
    (core("list", "secrets"), UNRELATED),
    (core("update", "secrets", "mine"), "can only get individual resources of this type"),
    (core("create", "serviceaccounts", "other", "token"), UNRELATED),
    (core("list", "serviceaccounts"), "can only create tokens for individual service accounts"),
    (core("delete", "events", "e"), ""),
    (core("list", "namespaces", namespace=""), ""),
    (lease("list"), "can only get, create, update, patch, or delete a node lease"),
    (lease("get", namespace="ns"), 'can only access leases in the "kube-node-lease" system namespace'),
    (lease("update", name="n2"), "can only access node lease with the same name as the requesting node"),
]


@pytest.mark.parametrize("wanted", ALLOWED, ids=str)
def test_a_node_may_use_its_own_objects(wanted: Attributes) -> None:
    assert decide("n1", wanted, World()).allowed


@pytest.mark.parametrize(("wanted", "reason"), REFUSED, ids=str)
def test_a_node_may_not_use_the_objects_of_other_nodes(wanted: Attributes, reason: str) -> None:
    decision = decide("n1", wanted, World())
    assert not decision.allowed
    assert decision.reason.startswith(reason)
    assert bool(decision.reason) == bool(reason)
