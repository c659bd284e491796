from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.auth.certificates import new_key
from devlet.auth.token_requests import BoundReference, answer, bound_reference, check_node
from devlet.auth.tokens import ISSUER, Reference, TokenIssuer
from devlet.auth.users import User
from devlet.errors import BadRequest, Conflict, Forbidden, InvalidObject
from devlet.objects.kinds import NODES, PODS, SECRETS

TOKENS = TokenIssuer(new_key())
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ACCOUNT = {"metadata": {"name": "sa", "namespace": "ns", "uid": "u-1"}}
POD = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u-2"},
    "spec": {"serviceAccountName": "sa", "nodeName": "n"},
}
NODE = {"metadata": {"name": "n", "uid": "u-3"}}


def bound(kind: str = "Pod", name: str = "p", uid: str = "", api_version: str = "v1") -> dict[str, Any]:
    return {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": api_version, "name": name, "uid": uid}}}


def test_an_empty_request_gets_a_token_for_an_hour_and_for_the_api() -> None:
    reply = answer({}, ACCOUNT, TOKENS, NOW)
    token = reply["status"].pop("token")
    assert reply == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": "sa", "namespace": "ns", "uid": "u-1", "creationTimestamp": "2026-05-01T12:00:00Z"},
        "spec": {"audiences": [ISSUER], "expirationSeconds": 3600},
        "status": {"expirationTimestamp": "2026-05-01T13:00:00Z"},
    }
    assert token.count(".") == 2
    assert TOKENS.verify(token, NOW).exp == int(NOW.timestamp()) + 3600


def test_the_request_itself_is_not_changed() -> None:
    request: dict[str, Any] = {"metadata": {}, "spec": {}}
    answer(request, ACCOUNT, TOKENS, NOW)
    assert request == {"metadata": {}, "spec": {}}


def test_audiences_and_duration_are_as_requested() -> None:
    request = {"spec": {"audiences": ["vault"], "expirationSeconds": 600}}
    claims = TOKENS.verify(answer(request, ACCOUNT, TOKENS, NOW)["status"]["token"], NOW, ("vault",))
    assert (claims.aud, claims.exp - claims.iat) == (("vault",), 600)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "may not specify a duration less than 10 minutes"),
        (599, "may not specify a duration less than 10 minutes"),
        (-1, "may not specify a duration less than 10 minutes"),
        (2**32 + 1, "may not specify a duration larger than 2\\^32 seconds"),
        ("600", "must be a whole number"),
        (True, "must be a whole number"),
    ],
)
def test_a_duration_out_of_bounds_is_refused(seconds: object, text: str) -> None:
    with pytest.raises(InvalidObject, match=f"spec.expirationSeconds: Invalid value: .*: {text}"):
        answer({"spec": {"expirationSeconds": seconds}}, ACCOUNT, TOKENS, NOW)


@pytest.mark.parametrize("audiences", [[1], ["a"] * 65])
def test_audiences_are_a_limited_number_of_strings(audiences: list[Any]) -> None:
    with pytest.raises(InvalidObject, match=r"spec\.audiences"):
        answer({"spec": {"audiences": audiences}}, ACCOUNT, TOKENS, NOW)


def test_a_token_for_a_pod_carries_the_pod_and_its_node() -> None:
    reply = answer(bound(uid="u-2"), ACCOUNT, TOKENS, NOW, bound=POD, node=NODE)
    binding = TOKENS.verify(reply["status"]["token"], NOW).kubernetes
    assert (binding.pod, binding.node) == (Reference("p", "u-2"), Reference("n", "u-3"))


def test_a_node_that_does_not_exist_is_still_named() -> None:
    reply = answer(bound(), ACCOUNT, TOKENS, NOW, bound=POD)
    assert TOKENS.verify(reply["status"]["token"], NOW).kubernetes.node == Reference("n")


def test_the_token_of_an_unbound_pod_names_no_node() -> None:
    pod = POD | {"spec": {"serviceAccountName": "sa"}}
    reply = answer(bound(), ACCOUNT, TOKENS, NOW, bound=pod)
    assert TOKENS.verify(reply["status"]["token"], NOW).kubernetes.node is None


def test_tokens_can_be_bound_to_nodes_and_secrets() -> None:
    to_node = answer(bound("Node", "n"), ACCOUNT, TOKENS, NOW, bound=NODE)
    assert TOKENS.verify(to_node["status"]["token"], NOW).kubernetes.node == Reference("n", "u-3")
    secret = {"metadata": {"name": "s", "uid": "u-4"}}
    to_secret = answer(bound("Secret", "s"), ACCOUNT, TOKENS, NOW, bound=secret)
    assert TOKENS.verify(to_secret["status"]["token"], NOW).kubernetes.secret == Reference("s", "u-4")


def test_the_object_to_read_is_returned() -> None:
    assert bound_reference({}) is None
    assert bound_reference(bound(uid="u")) == BoundReference(PODS, "p", "u")
    assert bound_reference(bound("Node", "n")) == BoundReference(NODES, "n")
    assert bound_reference(bound("Secret", "s")) == BoundReference(SECRETS, "s")


@pytest.mark.parametrize(("kind", "version"), [("ConfigMap", "/v1"), ("Pod", "apps/v1"), ("", "/")])
def test_tokens_cannot_be_bound_to_other_objects(kind: str, version: str) -> None:
    with pytest.raises(BadRequest, match=f"cannot bind token to object of type {version}, Kind={kind}"):
        bound_reference(bound(kind, api_version=version.removeprefix("/")))


def test_a_pod_of_another_account_is_refused() -> None:
    pod = POD | {"spec": {"serviceAccountName": "other"}}
    with pytest.raises(BadRequest, match="different serviceaccount name"):
        answer(bound(), ACCOUNT, TOKENS, NOW, bound=pod)


def test_another_uid_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="does not match the UID in record"):
        answer(bound(uid="old"), ACCOUNT, TOKENS, NOW, bound=POD)
    with pytest.raises(Conflict, match="does not match the UID of the service account"):
        answer({"metadata": {"uid": "old"}}, ACCOUNT, TOKENS, NOW)


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_the_body_must_name_the_same_account(key: str) -> None:
    with pytest.raises(InvalidObject, match=f"must match the service account {key} if specified"):
        answer({"metadata": {key: "other"}}, ACCOUNT, TOKENS, NOW)


def test_a_node_gets_tokens_only_for_its_own_pods() -> None:
    node = User("system:node:n", groups=("system:nodes",))
    check_node(node, ACCOUNT, POD)
    check_node(User("admin"), ACCOUNT, None)
    for bound_to in ({**POD, "spec": {"nodeName": "other"}}, {"metadata": POD["metadata"]}, None):
        with pytest.raises(Forbidden, match='"sa" is forbidden: node requested token bound to a pod scheduled on a'):
            check_node(node, ACCOUNT, bound_to)
