from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.auth.rbac import Policy
from devlet.auth.rules import Attributes
from devlet.auth.users import User
from devlet.objects.documents import Document

JANE = User("jane", groups=("dev", "system:authenticated"))


def pods(verb: str = "get", namespace: str = "ns", subresource: str = "", name: str = "p") -> Attributes:
    return Attributes(verb, version="v1", resource="pods", subresource=subresource, namespace=namespace, name=name)


def role(name: str, *rules: Document, namespace: str = "") -> Document:
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": list(rules)}


def binding(name: str, to: Document, role: str, namespace: str = "", role_kind: str = "ClusterRole") -> Document:
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "subjects": [to],
        "roleRef": {"kind": role_kind, "name": role, "apiGroup": "rbac.authorization.k8s.io"},
    }


def user(name: str) -> Document:
    return {"kind": "User", "name": name}


READ_PODS: Document = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


def test_a_cluster_role_binding_holds_everywhere_and_gives_the_reason() -> None:
    policy = Policy([role("r", READ_PODS), binding("b", user("jane"), "r")])
    for namespace in ("ns", "other", ""):
        reason = policy.allows(JANE, pods(namespace=namespace))
        assert reason == 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "jane"'
    assert policy.allows(JANE, pods("delete")) is None
    assert policy.allows(User("joe"), pods()) is None


@pytest.mark.parametrize("role_kind", ["Role", "ClusterRole"])
def test_a_role_binding_holds_in_its_namespace(role_kind: str) -> None:
    r = role("r", READ_PODS, namespace="ns" if role_kind == "Role" else "")
    policy = Policy([r, binding("b", user("jane"), "r", "ns", role_kind)])
    assert policy.allows(JANE, pods()) == f'RBAC: allowed by RoleBinding "b/ns" of {role_kind} "r" to User "jane"'
    assert policy.allows(JANE, pods(namespace="other")) is None
    assert policy.allows(JANE, pods("list", namespace="")) is None


def test_subjects_are_users_groups_and_service_accounts() -> None:
    account = User("system:serviceaccount:ns:sa", groups=("system:serviceaccounts",))
    to_group = Policy([binding("b", {"kind": "Group", "name": "dev"}, "view")])
    assert to_group.allows(JANE, pods())
    to_account = Policy([binding("b", {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"}, "view")])
    assert to_account.allows(account, pods())
    assert to_account.allows(JANE, pods()) is None
    local = Policy([binding("b", {"kind": "ServiceAccount", "name": "sa"}, "view", "ns")])
    assert local.allows(account, pods())


def test_a_group_does_not_match_a_user_of_the_same_name() -> None:
    assert Policy([binding("b", user("dev"), "view")]).allows(JANE, pods()) is None


@pytest.mark.parametrize(
    ("name", "verb", "resource", "allowed"),
    [
        ("cluster-admin", "delete", "nodes", True),
        ("view", "get", "pods", True),
        ("view", "get", "secrets", False),
        ("view", "delete", "pods", False),
        ("edit", "delete", "pods", True),
        ("edit", "get", "secrets", True),
        ("edit", "delete", "nodes", False),
        ("admin", "create", "configmaps", True),
        ("admin", "create", "roles", False),
    ],
)
def test_the_usual_cluster_roles_are_built_in(name: str, verb: str, resource: str, allowed: bool) -> None:
    policy = Policy([binding("b", user("jane"), name)])
    assert bool(policy.allows(JANE, Attributes(verb, resource=resource, namespace="ns"))) is allowed


def test_a_cluster_role_replaces_the_built_in_one_of_the_same_name() -> None:
    policy = Policy([role("view", READ_PODS), binding("b", user("jane"), "view")])
    assert policy.allows(JANE, pods())
    assert policy.allows(JANE, Attributes("get", resource="configmaps", namespace="ns")) is None


def test_paths_are_granted_by_cluster_role_bindings_only() -> None:
    metrics = Attributes("get", path="/metrics")
    everywhere = Policy([binding("b", user("jane"), "cluster-admin")])
    assert everywhere.allows(JANE, metrics)
    assert Policy([binding("b", user("jane"), "cluster-admin", "ns")]).allows(JANE, metrics) is None


def test_a_binding_without_its_role_grants_nothing() -> None:
    assert Policy([binding("b", user("jane"), "gone")]).allows(JANE, pods()) is None
    cluster_wide = binding("b", user("jane"), "r", role_kind="Role")
    assert Policy([role("r", READ_PODS, namespace="ns"), cluster_wide]).allows(JANE, pods()) is None


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.sampled_from(["jane", "User", "ClusterRole", "*", "view"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["kind", "name", "metadata", "subjects", "roleRef", "rules"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)
kinds = st.sampled_from(["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Pod"])


@given(st.lists(st.builds(lambda kind, rest: {**rest, "kind": kind}, kinds, st.dictionaries(st.text(), values))))
def test_malformed_documents_grant_nothing(documents: list[Document]) -> None:
    assert Policy(documents).allows(User("joe"), pods()) is None
