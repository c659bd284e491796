"""Requests that are wrong in themselves: both servers refuse them with the same code and reason."""

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

BAD, INVALID, GONE = "400 BadRequest", "422 Invalid", "404 NotFound"
NOT_ALLOWED = "405 MethodNotAllowed"

# The path begins at the test's namespace, in which there is a config map `a`.
READS = [
    ("/foos", GONE),
    ("/configmaps/a/status", GONE),
    ("/configmaps/a/b/c", GONE),
    ("/pods/nosuch/nosuch", GONE),
    ("/configmaps?limit=abc", BAD),
    ("/configmaps?continue=xxx", BAD),
    ("/configmaps?labelSelector=%3D%3D", BAD),
    ("/configmaps?fieldSelector=foo", BAD),
    ("/configmaps?fieldSelector=spec.foo%3Dx", BAD),
    ("/configmaps?resourceVersion=abc", BAD),
    ("/configmaps?resourceVersionMatch=Exact", INVALID),
    ("/configmaps?resourceVersionMatch=Foo&resourceVersion=1", INVALID),
    ("/configmaps?resourceVersionMatch=Exact&resourceVersion=0", INVALID),
    ("/configmaps?sendInitialEvents=true", INVALID),
    ("/configmaps?watch=1&resourceVersionMatch=NotOlderThan", INVALID),
    ("/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", INVALID),
    ("/configmaps?watch=1&timeoutSeconds=x", BAD),
    ("/nodes", GONE),
]
CREATES: list[tuple[str, bytes, str]] = [
    ("/configmaps", b"", BAD),
    ("/configmaps", b"{", BAD),
    ("/configmaps", b"[]", BAD),
    ("/configmaps", b'"x"', BAD),
    ("/configmaps", b"{}", INVALID),
    ("/configmaps", b'{"metadata":"x"}', BAD),
    ("/configmaps", b'{"metadata":{"name":5}}', BAD),
    ("/configmaps", b'{"metadata":{"name":"z"},"data":{"k":5}}', BAD),
    ("/configmaps", b'{"metadata":{"name":"Not_a_name"}}', INVALID),
    ("/configmaps", b'{"metadata":{"name":"z","namespace":"other"}}', BAD),
    ("/configmaps", b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"z"}}', BAD),
    ("/configmaps", b'{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"z"}}', BAD),
    ("/configmaps?dryRun=Some", b'{"metadata":{"name":"z"}}', INVALID),
    ("/configmaps?fieldValidation=Some", b'{"metadata":{"name":"z"}}', INVALID),
    ("/configmaps?fieldManager=%01", b'{"metadata":{"name":"z"}}', INVALID),
    ("/configmaps?fieldValidation=Strict", b'{"metadata":{"name":"z"},"data":{"k":"1","k":"2"}}', BAD),
    ("/configmaps", b'{"metadata":{"name":"a"}}', "409 AlreadyExists"),
    ("/configmaps", b'{"metadata":{"name":"z"},"data":{"k":"' + b"x" * (3 << 20) + b'"}}', "413 RequestEntityTooLarge"),
    ("/configmaps/a", b"{}", NOT_ALLOWED),
    ("/pods/nosuch/binding", b'{"metadata":{"name":"nosuch"},"target":{"name":"n"}}', GONE),
    ("/pods/nosuch/eviction", b'{"metadata":{"name":"nosuch"}}', GONE),
    ("/serviceaccounts/nosuch/token", b'{"spec":{}}', GONE),
    ("/serviceaccounts/default/token", b'{"spec":{"expirationSeconds":1}}', INVALID),
]
CHANGES: list[tuple[str, str, bytes, str, str]] = [
    ("PUT", "/configmaps", b"{}", "application/json", NOT_ALLOWED),
    ("PUT", "/configmaps/a", b'{"metadata":{}}', "application/json", BAD),
    ("PUT", "/configmaps/a", b'{"metadata":{"name":"b"}}', "application/json", BAD),
    ("PUT", "/configmaps/nosuch", b'{"metadata":{"name":"nosuch"}}', "application/json", GONE),
    ("PATCH", "/configmaps", b"{}", MERGE, NOT_ALLOWED),
    ("PATCH", "/configmaps/nosuch", b"{}", MERGE, GONE),
    ("PATCH", "/configmaps/a", b"{", MERGE, BAD),
    ("PATCH", "/configmaps/a", b"[]", MERGE, BAD),
    ("PATCH", "/configmaps/a", b'{"data":{"k":5}}', MERGE, INVALID),
    ("PATCH", "/configmaps/a", b'{"metadata":{"name":"b"}}', MERGE, BAD),
    ("PATCH", "/configmaps/a", b'{"metadata":{"namespace":"b"}}', MERGE, BAD),
    ("PATCH", "/configmaps/a", b'{"metadata":{"resourceVersion":"1"}}', MERGE, "409 Conflict"),
    ("PATCH", "/configmaps/a?fieldValidation=Strict", b'{"foo":1}', MERGE, INVALID),
    ("PATCH", "/configmaps/a?force=true", b"{}", MERGE, INVALID),
    ("PATCH", "/configmaps/a", b"{}", JSON_PATCH, BAD),
    ("PATCH", "/configmaps/a", b'[{"op":"remove","path":"/data/zz"}]', JSON_PATCH, INVALID),
    ("PATCH", "/configmaps/a", b'{"apiVersion":"v1","kind":"ConfigMap"}', APPLY, INVALID),
    ("PATCH", "/configmaps/a?fieldManager=x", b"{}", APPLY, BAD),
    ("PATCH", "/configmaps/a?fieldManager=x", b"a: b: c", APPLY, BAD),
    ("DELETE", "/configmaps/nosuch", b"", "", GONE),
    ("DELETE", "/configmaps/a?propagationPolicy=Foo", b"", "", INVALID),
    ("DELETE", "/configmaps/a?propagationPolicy=Orphan&orphanDependents=true", b"", "", INVALID),
    ("DELETE", "/configmaps/a?gracePeriodSeconds=x", b"", "", BAD),
    ("DELETE", "/configmaps/a", b"{", "application/json", BAD),
    ("DELETE", "/configmaps/a", b'{"kind":"Pod","apiVersion":"v1"}', "application/json", BAD),
    ("DELETE", "/configmaps/a", b'{"dryRun":["Foo"]}', "application/json", INVALID),
    ("DELETE", "/configmaps/a", b'{"preconditions":{"resourceVersion":"1"}}', "application/json", "409 Conflict"),
]


def shown(value: Any) -> str:
    return str(value)[:60]


@pytest.fixture
def base(site: "Site") -> str:
    site.created("configmaps", site.config_map("a"))
    return f"/api/v1/namespaces/{site.namespace}"


@pytest.mark.parametrize(("path", "expected"), READS, ids=shown)
async def test_a_wrong_read_is_refused(site: "Site", base: str, path: str, expected: str) -> None:
    assert site.server.request("GET", base + path).summary == expected


@pytest.mark.parametrize(("path", "body", "expected"), CREATES, ids=shown)
async def test_a_wrong_create_is_refused(site: "Site", base: str, path: str, body: bytes, expected: str) -> None:
    assert site.server.request("POST", base + path, body).summary == expected
    assert site.get("configmaps", "z").code == 404


@pytest.mark.parametrize(("method", "path", "body", "kind", "expected"), CHANGES, ids=shown)
async def test_a_wrong_change_is_refused_and_changes_nothing(
    site: "Site", base: str, method: str, path: str, body: bytes, kind: str, expected: str
) -> None:
    before = site.get("configmaps", "a").document
    assert site.server.request(method, base + path, body, content_type=kind).summary == expected
    assert site.get("configmaps", "a").document == before


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("DELETE", "/api/v1/namespaces", NOT_ALLOWED),
        ("DELETE", "/api/v1/namespaces/kube-system", "403 Forbidden"),
        ("POST", "/api/v1/namespaces/nosuch/configmaps", GONE),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", NOT_ALLOWED),
    ],
)
async def test_what_the_cluster_does_not_have_or_give_up(site: "Site", method: str, path: str, expected: str) -> None:
    body = site.config_map() if method == "POST" else None
    assert site.server.request(method, path, body).summary == expected


@pytest.mark.parametrize("path", ["/nosuch", "/apis/nosuch", "/healthz/nosuch"])
async def test_a_path_that_means_nothing_is_answered_in_plain_text(site: "Site", path: str) -> None:
    answer = site.server.request("GET", path)
    assert (answer.code, answer.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("when", "method", "path", "body", "kind"),
    [
        ("a body is null", "POST", "/configmaps", b"null", "application/json"),
        (
            "an operation of a JSON patch is unknown",
            "PATCH",
            "/configmaps/a",
            b'[{"op":"foo","path":"/x"}]',
            JSON_PATCH,
        ),
        (
            "one object is read at a resourceVersion that is not a number",
            "GET",
            "/configmaps/a?resourceVersion=abc",
            b"",
            "",
        ),
    ],
)
async def test_a_refusal_that_differs_is_listed(
    site: "Site", base: str, when: str, method: str, path: str, body: bytes, kind: str
) -> None:
    answer = site.server.request(method, base + path, body or None, content_type=kind)
    site.server.differs(when, answer.summary)
