from collections.abc import Iterable
from typing import Any

import pytest

from devlet.auth.authorization import Authorizer, forbidden
from devlet.auth.rbac import Policy
from devlet.auth.rules import Attributes
from devlet.auth.service_accounts import NODE_NAME, driver_account, groups, username
from devlet.auth.users import ANONYMOUS, User
from devlet.errors import Forbidden
from devlet.objects.documents import Document


class World:
    def pods_on(self, node: str) -> Iterable[Document]:
        return []

    def slice_node(self, name: str) -> str | None:
        return {"s1": "n1", "s2": "n2"}.get(name)


def account(namespace: str, name: str, node: str = "") -> User:
    extra = {NODE_NAME: (node,)} if node else {}
    return User(username(namespace, name), "u", groups(namespace), extra)


ADMIN = User("admin", groups=("system:masters",))
JANE = User("jane", groups=("system:authenticated",))
NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
READER = account("ns", "sa")
DRIVER = account("kube-system", driver_account("gpu.example.com"), "n1")
NOWHERE = account("kube-system", driver_account("gpu.example.com"))
USERS = {"admin": ADMIN, "jane": JANE, "node": NODE, "reader": READER, "driver": DRIVER, "anonymous": ANONYMOUS}

AUTHORIZER = Authorizer(World())


def path(name: str, verb: str = "get") -> Attributes:
    return Attributes(verb, path=name)


def on(verb: str, resource: str, name: str = "", group: str = "", sub: str = "", **more: Any) -> Attributes:
    return Attributes(verb, group=group, version="v1", resource=resource, name=name, subresource=sub, **more)


def dra(verb: str, resource: str, name: str = "", sub: str = "", **more: Any) -> Attributes:
    return on(verb, resource, name, "resource.k8s.io", sub, **more)


REVIEW = on("create", "selfsubjectaccessreviews", group="authorization.k8s.io")


@pytest.mark.parametrize(
    ("wanted", "allowed"),
    [
        (path("/version"), "admin jane node reader driver anonymous"),
        (path("/healthz"), "admin jane node reader driver anonymous"),
        (path("/readyz"), "admin jane node reader driver anonymous"),
        (path("/livez"), "admin jane node reader driver anonymous"),
        (path("/readyz/ping"), "admin"),
        (path("/version", "post"), "admin"),
        (path("/"), "admin"),
        (path("/metrics"), "admin"),
        (path("/api"), "admin jane node reader driver"),
        (path("/apis/apps/v1"), "admin jane node reader driver"),
        (path("/openapi/v3/api/v1"), "admin jane node reader driver"),
        (path("/apiserver"), "admin"),
        (REVIEW, "admin jane node reader driver"),
        (on("create", "selfsubjectreviews", group="authentication.k8s.io"), "admin jane node reader driver"),
        (on("create", "tokenreviews", group="authentication.k8s.io"), "admin node"),
        (on("list", "pods"), "admin reader driver"),
        (on("get", "configmaps", "c", namespace="ns"), "admin reader driver"),
        (on("get", "secrets", "s", namespace="ns"), "admin"),
        (on("create", "pods", namespace="ns"), "admin node"),
        (on("impersonate", "users", "joe"), "admin"),
        (on("create", "events", namespace="ns"), "admin node driver"),
        (on("create", "serviceaccounts", "sa", sub="token", namespace="ns"), "admin"),
        (dra("list", "resourceslices"), "admin reader driver"),
        (dra("create", "resourceslices"), "admin node driver"),
        (dra("update", "resourceslices", "s1"), "admin node driver"),
        (dra("update", "resourceclaims", "c", namespace="ns"), "admin"),
        (dra("patch", "resourceclaims", "c", "status", namespace="ns"), "admin driver"),
        (dra("associated-node:patch", "resourceclaims", "gpu.example.com", "driver", namespace="ns"), "admin driver"),
        (dra("associated-node:patch", "resourceclaims", "GPU.example.com", "driver", namespace="ns"), "admin driver"),
        (dra("associated-node:patch", "resourceclaims", "nic.example.com", "driver", namespace="ns"), "admin"),
        (dra("arbitrary-node:patch", "resourceclaims", "gpu.example.com", "driver", namespace="ns"), "admin"),
        (dra("patch", "resourceclaims", "", "binding"), "admin"),
        (dra("create", "deviceclasses"), "admin"),
    ],
    ids=lambda value: value if isinstance(value, str) else str((value.verb, value.path or value.resource, value.name)),
)
def test_a_user_may_do_exactly_this(wanted: Attributes, allowed: str) -> None:
    assert [name for name, user in USERS.items() if AUTHORIZER.authorize(user, wanted).allowed] == allowed.split()


def test_a_drivers_account_without_a_node_only_reads() -> None:
    assert AUTHORIZER.authorize(NOWHERE, dra("list", "resourceslices")).allowed
    assert not AUTHORIZER.authorize(NOWHERE, dra("create", "resourceslices")).allowed


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ("spec.nodeName=n1,spec.driver=gpu.example.com", True),
        ("spec.nodeName=n1", False),
        ("spec.driver=gpu.example.com", False),
        ("spec.nodeName=n1,spec.driver=nic.example.com", False),
        ("spec.nodeName=n2,spec.driver=gpu.example.com", False),
        ("", False),
    ],
)
def test_a_driver_deletes_many_slices_only_by_node_and_driver(selector: str, allowed: bool) -> None:
    wanted = dra("deletecollection", "resourceslices", field_selector=selector)
    assert AUTHORIZER.authorize(DRIVER, wanted).allowed is allowed


def bound(subject: Document, role: str = "cluster-admin") -> Authorizer:
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "subjects": [subject],
        "roleRef": {"kind": "ClusterRole", "name": role},
    }
    return Authorizer(World(), lambda: Policy([binding]))


def test_rbac_adds_rights() -> None:
    authorizer = bound({"kind": "ServiceAccount", "namespace": "ns", "name": "sa"})
    decision = authorizer.authorize(READER, on("create", "pods", namespace="ns"))
    assert decision.allowed
    assert decision.reason.startswith("RBAC: allowed by")
    assert not authorizer.authorize(JANE, on("create", "pods", namespace="ns")).allowed


def test_rbac_does_not_let_a_token_for_a_node_reach_other_nodes() -> None:
    authorizer = bound({"kind": "ServiceAccount", "namespace": "ns", "name": "sa"})
    user = account("ns", "sa", "n1")
    everything = dra("deletecollection", "resourceslices")
    own = dra("deletecollection", "resourceslices", field_selector="spec.nodeName=n1")
    assert not authorizer.authorize(user, everything).allowed
    assert authorizer.authorize(user, own).allowed
    assert not AUTHORIZER.authorize(user, own).allowed
    assert authorizer.authorize(READER, everything).allowed


def test_rbac_adds_to_the_rights_of_a_node() -> None:
    authorizer = bound({"kind": "Group", "name": "system:nodes"}, "view")
    assert authorizer.authorize(NODE, on("get", "configmaps", "c", namespace="ns")).allowed
    refused = AUTHORIZER.authorize(NODE, on("get", "configmaps", "c", namespace="ns"))
    assert refused.reason == "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            on("list", "configmaps", namespace="default"),
            'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace'
            ' "default"',
        ),
        (
            dra("delete", "resourceslices", "s"),
            'resourceslices.resource.k8s.io "s" is forbidden: User "jane" cannot delete resource "resourceslices" in'
            ' API group "resource.k8s.io" at the cluster scope',
        ),
        (
            on("patch", "pods", "p1", sub="status", namespace="ns"),
            'pods "p1" is forbidden: User "jane" cannot patch resource "pods/status" in API group "" in the namespace'
            ' "ns"',
        ),
        (path("/metrics"), 'forbidden: User "jane" cannot get path "/metrics"'),
    ],
)
def test_a_refusal_has_the_text_that_clients_expect(wanted: Attributes, text: str) -> None:
    with pytest.raises(Forbidden) as caught:
        AUTHORIZER.require(JANE, wanted)
    assert str(caught.value) == text
    assert caught.value.name == wanted.name
    assert str(forbidden(JANE, wanted, "because")) == f"{text}: because"


def test_require_accepts_what_is_allowed() -> None:
    assert AUTHORIZER.authorize(JANE, REVIEW).allowed
    AUTHORIZER.require(JANE, REVIEW)


def test_the_rules_of_a_user_are_listed() -> None:
    assert [(rule.verbs, rule.resources, rule.urls) for rule in AUTHORIZER.rules(ADMIN)] == [
        (("*",), ("*",), ()),
        (("*",), (), ("*",)),
    ]
    names = {resource for rule in AUTHORIZER.rules(DRIVER) for resource in rule.resources}
    assert {"resourceslices", "resourceclaims/status", "resourceclaims/driver", "*"} <= names
    assert AUTHORIZER.is_complete(DRIVER)
    assert not AUTHORIZER.is_complete(NODE)
