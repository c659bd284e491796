from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devlet.auth import reviews
from devlet.auth.authentication import Authenticator
from devlet.auth.authorization import Authorizer
from devlet.auth.certificates import new_key
from devlet.auth.service_accounts import groups, username
from devlet.auth.tokens import ISSUER, Binding, Reference, StaticTokens, TokenIssuer
from devlet.auth.users import User
from devlet.errors import BadRequest, InvalidObject
from devlet.objects.documents import Document

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
TOKENS = TokenIssuer(new_key())
ADMIN = User("admin", groups=("system:masters", "system:authenticated"))
JANE = User("jane", groups=("system:authenticated",))
READER = User(username("ns", "sa"), "u", groups("ns"), {"k": ("v",)})


class World:
    def pods_on(self, node: str) -> Iterable[Document]:
        return []

    def slice_node(self, name: str) -> str | None:
        return None


AUTHORIZER = Authorizer(World())
AUTHENTICATOR = Authenticator(StaticTokens({"t": ADMIN}), TOKENS, lambda *_: "u", lambda: NOW)


def ask_for(verb: str, resource: str, **more: Any) -> Document:
    return {"resourceAttributes": {"verb": verb, "resource": resource, **more}}


def test_a_self_subject_review_shows_all_facts_about_the_user() -> None:
    assert reviews.self_subject_review({}, READER, NOW) == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2026-05-01T12:00:00Z"},
        "status": {
            "userInfo": {
                "username": "system:serviceaccount:ns:sa",
                "uid": "u",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
                "extra": {"k": ["v"]},
            }
        },
    }
    assert reviews.self_subject_review({}, User("x"), NOW)["status"] == {"userInfo": {"username": "x"}}


def test_the_review_of_a_valid_token_names_its_user() -> None:
    token = TOKENS.issue(Binding("ns", Reference("sa", "u")), NOW, timedelta(hours=1), ("vault", ISSUER))
    reply = reviews.token_review({"spec": {"token": token, "audiences": ["x", "vault"]}}, AUTHENTICATOR)
    assert (reply["kind"], reply["spec"]["token"]) == ("TokenReview", token)
    assert reply["status"]["authenticated"] is True
    assert reply["status"]["audiences"] == ["vault"]
    assert reply["status"]["user"]["username"] == "system:serviceaccount:ns:sa"


@pytest.mark.parametrize("spec", [{"token": "wrong"}, {"token": "t", "audiences": ["vault"]}])
def test_the_review_of_a_wrong_token_is_an_answer(spec: Document) -> None:
    status = reviews.token_review({"spec": spec}, AUTHENTICATOR)["status"]
    assert status == {"error": "invalid bearer token", "user": {}}


def test_a_self_subject_access_review_allows_or_denies() -> None:
    spec = ask_for("create", "pods", namespace="ns")
    yes = reviews.self_subject_access_review({"spec": spec}, ADMIN, AUTHORIZER)
    assert yes == {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": spec,
        "status": {"allowed": True},
    }
    assert reviews.self_subject_access_review({"spec": spec}, JANE, AUTHORIZER)["status"] == {"allowed": False}


def test_an_access_review_can_be_about_a_path() -> None:
    spec = {"nonResourceAttributes": {"path": "/healthz", "verb": "GET"}}
    assert reviews.self_subject_access_review({"spec": spec}, JANE, AUTHORIZER)["status"] == {"allowed": True}


def test_an_access_review_uses_exactly_the_given_groups() -> None:
    spec = ask_for("get", "pods") | {"user": "x", "groups": ["system:masters"]}
    assert reviews.subject_access_review({"spec": spec}, AUTHORIZER)["status"] == {"allowed": True}
    spec = {"nonResourceAttributes": {"path": "/api", "verb": "get"}, "user": "jane"}
    assert reviews.subject_access_review({"spec": spec}, AUTHORIZER)["status"] == {"allowed": False}


def test_extra_values_count_and_their_keys_are_case_insensitive() -> None:
    driver = username("kube-system", "devlet-driver-gpu.example.com")
    spec = ask_for("create", "resourceslices", group="resource.k8s.io") | {"user": driver}
    assert not reviews.subject_access_review({"spec": spec}, AUTHORIZER)["status"]["allowed"]
    spec["extra"] = {"Authentication.kubernetes.io/node-name": ["n1"]}
    assert reviews.subject_access_review({"spec": spec}, AUTHORIZER)["status"]["allowed"]


@pytest.mark.parametrize(
    "selector",
    [
        {"rawSelector": "spec.nodeName=n1"},
        {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
    ],
)
def test_a_field_selector_is_part_of_an_access_review(selector: Document) -> None:
    spec = ask_for("list", "pods") | {"user": "system:node:n1", "groups": ["system:nodes"]}
    refused = reviews.subject_access_review({"spec": spec}, AUTHORIZER)["status"]
    assert refused["reason"] == "can only list/watch pods with spec.nodeName field selector"
    spec["resourceAttributes"]["fieldSelector"] = selector
    assert reviews.subject_access_review({"spec": spec}, AUTHORIZER)["status"] == {"allowed": True}


def test_a_local_review_is_about_its_namespace() -> None:
    spec = ask_for("get", "pods", namespace="ns") | {"user": "admin", "groups": ["system:masters"]}
    document = {"metadata": {"namespace": "ns"}, "spec": spec}
    reply = reviews.local_subject_access_review(document, "ns", AUTHORIZER)
    assert (reply["metadata"], reply["status"]) == ({"namespace": "ns"}, {"allowed": True})
    with pytest.raises(InvalidObject, match=r"must match metadata\.namespace"):
        reviews.local_subject_access_review(document, "other", AUTHORIZER)
    path = {"nonResourceAttributes": {"path": "/"}, "user": "x"}
    with pytest.raises(InvalidObject, match="disallowed on this kind of request"):
        reviews.local_subject_access_review({"spec": path}, "ns", AUTHORIZER)


def test_the_administrator_may_do_everything() -> None:
    status = reviews.self_subject_rules_review({"spec": {"namespace": "default"}}, ADMIN, AUTHORIZER)["status"]
    assert status == {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


def test_an_incomplete_list_of_rules_is_marked() -> None:
    document = {"spec": {"namespace": "ns"}}
    assert not reviews.self_subject_rules_review(document, JANE, AUTHORIZER)["status"]["incomplete"]
    status = reviews.self_subject_rules_review(document, READER, AUTHORIZER)["status"]
    assert status["incomplete"]
    assert status["evaluationError"]


def test_rules_are_listed_for_a_namespace() -> None:
    with pytest.raises(BadRequest, match="no namespace on request"):
        reviews.self_subject_rules_review({"spec": {}}, JANE, AUTHORIZER)


SPEC = ask_for("get", "pods")
BOTH = SPEC | {"nonResourceAttributes": {"path": "/"}}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "spec.resourceAttributes"),
        ({"spec": None}, "spec.resourceAttributes"),
        ({"spec": BOTH}, "spec.nonResourceAttributes"),
        ({"spec": SPEC, "metadata": {"name": "x"}}, "metadata"),
    ],
)
def test_a_malformed_review_is_refused(document: Document, field: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        reviews.self_subject_access_review(document, JANE, AUTHORIZER)
    assert [cause.field for cause in caught.value.causes] == [field]


def test_a_review_without_a_subject_is_refused() -> None:
    with pytest.raises(InvalidObject, match="at least one of user or group must be specified"):
        reviews.subject_access_review({"spec": SPEC}, AUTHORIZER)
    with pytest.raises(BadRequest, match="token is required for TokenReview in authentication"):
        reviews.token_review({"spec": {}}, AUTHENTICATOR)


def test_metadata_that_clients_send_is_accepted() -> None:
    metadata: Document = {"creationTimestamp": None, "managedFields": []}
    reply = reviews.self_subject_access_review({"metadata": metadata, "spec": SPEC}, ADMIN, AUTHORIZER)
    assert reply["status"]["allowed"]
