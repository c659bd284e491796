from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.auth.rules import Attributes
from devlet.auth.users import User
from devlet.errors import BadRequest
from devlet.serve.kube_api.impersonation import MAX_CLAIMS, impersonation

Headers = list[tuple[str, str]]


def ask(headers: Headers) -> tuple[User | None, list[Attributes]]:
    """The user that the headers ask for, and the permissions that this requires."""
    wanted = impersonation(headers)
    return (wanted.user(), list(wanted.permissions())) if wanted else (None, [])


def test_a_request_without_the_headers_asks_for_no_other_user() -> None:
    assert ask([("Accept", "*/*"), ("Impersonated", "x")]) == (None, [])


def test_a_user_gets_the_groups_asked_for_and_is_authenticated() -> None:
    user, asked = ask([("Impersonate-User", "jane"), ("impersonate-group", "dev"), ("Impersonate-Group", "ops")])
    assert user == User("jane", groups=("dev", "ops", "system:authenticated"))
    assert [(one.verb, one.resource, one.name) for one in asked] == [
        ("impersonate", "users", "jane"),
        ("impersonate", "groups", "dev"),
        ("impersonate", "groups", "ops"),
    ]


def test_a_service_account_has_its_groups_unless_others_are_given() -> None:
    user, asked = ask([("Impersonate-User", "system:serviceaccount:ns:sa")])
    assert user is not None
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert asked == [Attributes("impersonate", resource="serviceaccounts", namespace="ns", name="sa")]
    user, _ = ask([("Impersonate-User", "system:serviceaccount:ns:sa"), ("Impersonate-Group", "g")])
    assert user is not None
    assert user.groups == ("g", "system:authenticated")


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("system:anonymous", [], ("system:unauthenticated",)),
        ("system:anonymous", ["system:unauthenticated"], ("system:unauthenticated",)),
        ("jane", ["system:unauthenticated"], ("system:unauthenticated",)),
        ("jane", ["system:authenticated"], ("system:authenticated",)),
    ],
)
def test_exactly_one_group_says_whether_the_user_is_authenticated(
    name: str, groups: list[str], expected: tuple[str, ...]
) -> None:
    user, _ = ask([("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)])
    assert user is not None
    assert user.groups == expected


def test_a_driver_on_a_node_is_impersonated_with_the_nodes_name() -> None:
    user, asked = ask(
        [
            ("Impersonate-User", "system:serviceaccount:ns:sa"),
            ("Impersonate-Uid", "u-1"),
            ("Impersonate-Extra-Authentication.kubernetes.io%2fnode-Name", "n1"),
            ("Impersonate-Extra-Plain", "a"),
            ("Impersonate-Extra-plain", "b"),
        ]
    )
    assert user is not None
    assert user.uid == "u-1"
    assert user.extra == {"authentication.kubernetes.io/node-name": ("n1",), "plain": ("a", "b")}
    assert [(one.group, one.resource, one.subresource, one.name) for one in asked[1:]] == [
        ("authentication.k8s.io", "userextras", "authentication.kubernetes.io/node-name", "n1"),
        ("authentication.k8s.io", "userextras", "plain", "a"),
        ("authentication.k8s.io", "userextras", "plain", "b"),
        ("authentication.k8s.io", "uids", "", "u-1"),
    ]


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-x"])
def test_groups_uid_and_extra_require_a_user_name(header: str) -> None:
    with pytest.raises(BadRequest, match=r"requested .* without impersonating a user name"):
        ask([(header, "v"), ("Impersonate-User", "")])


def test_the_number_of_groups_is_limited_and_values_must_be_utf_8() -> None:
    many = [("Impersonate-User", "jane"), *[("Impersonate-Group", "g")] * (MAX_CLAIMS + 1)]
    with pytest.raises(BadRequest, match="at most 256"):
        ask(many)
    with pytest.raises(BadRequest, match="Impersonate-User is not UTF-8"):
        ask([("Impersonate-User", "\udc80")])


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Lu", "Lt"]), min_size=1))
def test_any_key_survives_its_encoding(key: str) -> None:
    key = key.lower()
    user, _ = ask([("Impersonate-User", "jane"), (f"Impersonate-Extra-{quote(key, safe='')}", "v")])
    assert user is not None
    assert user.extra == {key: ("v",)}


tokens = st.text("ABCxyz%2f-._", min_size=1, max_size=12)
names = st.sampled_from(["Impersonate-User", "Impersonate-Group", "Impersonate-Uid"]) | tokens.map(
    lambda key: f"Impersonate-Extra-{key}"
)


@given(st.lists(st.tuples(names, st.text(st.characters(codec="utf-8"), max_size=8)), max_size=12))
def test_every_part_of_the_new_user_requires_a_permission(headers: Headers) -> None:
    try:
        user, asked = ask(headers)
    except BadRequest:
        return
    if user is None:
        assert asked == []
        return
    names = {(one.resource, one.name) for one in asked}
    always = {"system:authenticated", "system:unauthenticated"}
    assert ("users", user.name) in names
    assert {("groups", group) for group in user.groups if group not in always} <= names
    assert {("userextras", value) for values in user.extra.values() for value in values} <= names
    assert not user.uid or ("uids", user.uid) in names
