from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.documents import Document
from devlet.serve.kube_api.rbac import Policy, Rule, rule_of
from devlet.serve.kube_api.requests import Attributes, User

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


@pytest.mark.parametrize(
    ("rule", "wanted", "allowed"),
    [
        (Rule(("get",), ("",), ("pods",)), pods(), True),
        (Rule(("get",), ("",), ("pods",)), pods("list"), False),
        (Rule(("*",), ("",), ("pods",)), pods("associated-node:patch"), True),
        (Rule(("get",), ("apps",), ("pods",)), pods(), False),
        (Rule(("get",), ("*",), ("*",)), pods(), True),
        (Rule(("get",), ("",), ("pods",)), pods(subresource="status"), False),
        (Rule(("get",), ("",), ("pods/status",)), pods(subresource="status"), True),
        (Rule(("get",), ("",), ("pods/status",)), pods(), False),
        (Rule(("get",), ("",), ("*/status",)), pods(subresource="status"), True),
        (Rule(("get",), ("",), ("*/status",)), pods(subresource="log"), False),
        (Rule(("get",), ("",), ("*",)), pods(subresource="status"), True),
        (Rule(("get",), ("",), ("pods",), ("p", "q")), pods(), True),
        (Rule(("get",), ("",), ("pods",), ("q",)), pods(), False),
        (Rule(("get",), ("",), ("pods",), ("q",)), pods(name=""), False),
        (Rule(("get",), ("",), ("*",), but=("pods",)), pods(), False),
        (Rule(("get",), ("",), ("*",), but=("pods",)), pods(subresource="status"), False),
        (Rule(("get",), urls=("*",)), pods(), False),
        (Rule(("get",), ("*",), ("*",)), Attributes("get", path="/metrics"), False),
        (Rule(("get",), urls=("/metrics",)), Attributes("get", path="/metrics"), True),
        (Rule(("get",), urls=("/metrics",)), Attributes("get", path="/metrics/x"), False),
        (Rule(("get",), urls=("/metrics/*",)), Attributes("get", path="/metrics/x"), True),
        (Rule(("get",), urls=("/metrics/*",)), Attributes("get", path="/metrics"), False),
        (Rule(("get",), urls=("*",)), Attributes("post", path="/metrics"), False),
    ],
)
def test_a_rule_allows_what_it_lists(rule: Rule, wanted: Attributes, allowed: bool) -> None:
    assert rule.allows(wanted) is allowed


def test_a_cluster_role_binding_holds_everywhere_and_says_why() -> None:
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


def test_a_group_of_the_name_of_a_user_is_not_the_user() -> None:
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
def test_the_usual_cluster_roles_are_there(name: str, verb: str, resource: str, allowed: bool) -> None:
    policy = Policy([binding("b", user("jane"), name)])
    assert bool(policy.allows(JANE, Attributes(verb, resource=resource, namespace="ns"))) is allowed


def test_a_cluster_role_of_the_same_name_counts_instead() -> None:
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


def test_a_rule_is_read_from_its_document() -> None:
    document = READ_PODS | {"resourceNames": ["p"], "nonResourceURLs": None, "verbs": ["get", 1]}
    assert rule_of(document) == Rule(("get",), ("",), ("pods",), ("p",))


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
