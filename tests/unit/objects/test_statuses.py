from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    DevletError,
    Expired,
    Forbidden,
    InUse,
    InvalidInput,
    InvalidObject,
    InvalidSelector,
    NotAllocated,
    NotCreated,
    NotFound,
    NotPrepared,
    Overlapping,
    PluginError,
    PluginRefused,
    StateCorrupt,
    TooLarge,
    TooManyRequests,
    Unavailable,
    UnsupportedPatch,
)
from devlet.objects.statuses import MAX_TEXT, error_from, error_from_answer, failure, status_of

CLAIMS = "resourceclaims.resource.k8s.io"
REQUIRED = Cause("FieldValueRequired", "Required value", "spec.containers")

EVERY_ERROR: list[tuple[DevletError, int, str]] = [
    (BadRequest("malformed"), 400, "BadRequest"),
    (InvalidObject("Pod", "bad", [REQUIRED]), 422, "Invalid"),
    (InvalidObject("ResourceClaim.resource.k8s.io", "c1", [REQUIRED, Cause("", "no", "")]), 422, "Invalid"),
    (UnsupportedPatch("415: Unsupported Media Type"), 415, "UnsupportedMediaType"),
    (TooLarge("limit is 3145728"), 413, "RequestEntityTooLarge"),
    (Forbidden('pods "p" is forbidden: no', resource="pods", name="p"), 403, "Forbidden"),
    (
        Forbidden(
            "no", resource="pods", name="p", causes=[Cause("NamespaceTerminating", "going", "metadata.namespace")]
        ),
        403,
        "Forbidden",
    ),
    (NotFound(f'{CLAIMS} "c" not found', resource=CLAIMS, name="c"), 404, "NotFound"),
    (NotFound("the server could not find the requested resource"), 404, "NotFound"),
    (AlreadyExists('pods "p" already exists', resource="pods", name="p"), 409, "AlreadyExists"),
    (Conflict("cannot be fulfilled", resource="pods/binding", name="p"), 409, "Conflict"),
    (
        Conflict("Apply failed", causes=[Cause("FieldManagerConflict", 'conflict with "m1"', ".data.a")]),
        409,
        "Conflict",
    ),
    (Expired("too old resource version: 300 (543)"), 410, "Expired"),
    (Expired("The provided continue parameter is too old", fresh_continue="token"), 410, "Expired"),
    (TooManyRequests("the budget is used up", retry_after=10), 429, "TooManyRequests"),
    (Unavailable("starting", retry_after=3), 503, "ServiceUnavailable"),
    (Unavailable("starting", retry_after=0), 503, "ServiceUnavailable"),
    (Unavailable("Too large resource version: 99, current: 4"), 504, "Timeout"),
    (DevletError("a surprise"), 500, "InternalError"),
]


def same(a: DevletError, b: DevletError) -> bool:
    return type(a) is type(b) and str(a) == str(b) and vars(a) == vars(b)


@pytest.mark.parametrize(("error", "code", "reason"), EVERY_ERROR, ids=lambda value: str(value)[:20])
def test_an_error_survives_the_way_to_the_client(error: DevletError, code: int, reason: str) -> None:
    status = status_of(error)
    assert (status["code"], status["reason"], status["status"]) == (code, reason, "Failure")
    assert same(error_from(status), error)
    assert same(error_from_answer(code, msgspec.json.encode(status)), error)


def test_every_error_is_in_the_list() -> None:
    def family(type_: type[DevletError]) -> set[type[DevletError]]:
        return {type_}.union(*(family(t) for t in type_.__subclasses__()))

    here = {type_ for type_ in family(DevletError) if type_.__module__ == "devlet.errors"}
    families = {InvalidInput, InUse, StateCorrupt}
    # these do not reach a client of the API
    for internal in (InvalidSelector, Overlapping, PluginError, NotAllocated, NotCreated, NotPrepared):
        families |= family(internal)
    assert {type(error) for error, _, _ in EVERY_ERROR} == {
        type_ for type_ in here - families if type_.__name__ != "ResourceError"
    }


@pytest.mark.parametrize(
    "error",
    [
        InUse("another process holds it"),
        StateCorrupt("the file is damaged"),
        NotAllocated("all are taken"),
        PluginRefused("vendor.com/gpu", "no"),
    ],
)
def test_internal_errors_of_the_server_arrive_as_an_internal_error(error: DevletError) -> None:
    status = status_of(error)
    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert same(error_from(status), DevletError(str(error)))


def test_input_that_is_wrong_in_some_way_is_a_bad_request() -> None:
    assert status_of(InvalidInput("no"))["code"] == 400


def test_a_conflict_reads_as_the_reference_writes_it() -> None:
    message = (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified;'
        " please apply your changes to the latest version and try again"
    )
    assert msgspec.json.encode(status_of(Conflict(message, resource="configmaps", name="a"))) == msgspec.json.encode(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": "Conflict",
            "details": {"name": "a", "kind": "configmaps"},
            "code": 409,
        }
    )


def test_the_details_of_an_invalid_object_have_its_kind_and_of_others_the_plural() -> None:
    invalid = status_of(InvalidObject("ResourceClaim.resource.k8s.io", "c", [REQUIRED]))
    assert invalid["details"] == {
        "name": "c",
        "group": "resource.k8s.io",
        "kind": "ResourceClaim",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}],
    }
    absent = status_of(NotFound("no", resource=CLAIMS, name="c"))
    assert absent["details"] == {"name": "c", "group": "resource.k8s.io", "kind": "resourceclaims"}


def test_an_unknown_resource_has_empty_details_and_a_bad_request_none() -> None:
    assert status_of(NotFound("the server could not find the requested resource"))["details"] == {}
    assert "details" not in status_of(BadRequest("malformed"))


def test_a_version_in_the_future_is_a_time_out_with_its_cause() -> None:
    status = status_of(Unavailable("Too large resource version: 99999999, current: 493"))
    assert status["message"] == "Timeout: Too large resource version: 99999999, current: 493"
    assert status["details"] == {
        "retryAfterSeconds": 1,
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    }


def test_the_reason_counts_more_than_the_code() -> None:
    assert type(error_from(failure(500, "AlreadyExists", "there"))) is AlreadyExists
    assert type(error_from(failure(409, "", "somebody was faster"))) is Conflict
    assert type(error_from(failure(409, "NeverHeardOf", "somebody was faster"))) is Conflict


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (401, "Unauthorized", Forbidden),
        (405, "MethodNotAllowed", BadRequest),
        (406, "NotAcceptable", BadRequest),
        (410, "Gone", Expired),
        (429, "TooManyRequests", TooManyRequests),
        (500, "ServerTimeout", Unavailable),
        (500, "InternalError", DevletError),
        (502, "", Unavailable),
        (418, "", BadRequest),
        (302, "", DevletError),
        (0, "", DevletError),
    ],
)
def test_statuses_of_other_servers_become_errors(code: int, reason: str, expected: type[DevletError]) -> None:
    assert type(error_from(failure(code, reason, "text"))) is expected
    assert type(error_from_answer(code or 500, b"")) in (expected, type(error_from(failure(code or 500, "", ""))))


def test_the_servers_words_about_an_invalid_object_are_kept() -> None:
    message = "the server rejected our request due to an error in our request"
    error = error_from(failure(422, "Invalid", message, {}))
    assert isinstance(error, InvalidObject)
    assert (str(error), error.kind, error.name, error.causes) == (message, "", "", ())


def test_a_response_that_is_not_a_status_becomes_its_text() -> None:
    assert str(error_from_answer(404, b"404 page not found\n")) == "404 page not found"
    assert str(error_from_answer(404, b'{"kind": "Pod", "message": "x"}')) == '{"kind": "Pod", "message": "x"}'
    assert "503" in str(error_from_answer(503, b""))
    assert len(str(error_from_answer(400, b"x" * 100_000))) == MAX_TEXT


def test_when_to_retry_comes_from_the_details_or_else_from_the_header() -> None:
    from_header = error_from_answer(429, b"slow down", retry_after=7)
    from_details = error_from(failure(429, "TooManyRequests", "", {"retryAfterSeconds": 2}), retry_after=7)
    assert isinstance(from_header, Unavailable) and from_header.retry_after == 7
    assert isinstance(from_details, Unavailable) and from_details.retry_after == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
members = st.sampled_from(["kind", "message", "reason", "details", "code", "metadata"])


@given(st.dictionaries(members, json_values))
def test_a_malformed_status_is_an_error_and_not_a_crash(status: dict[str, Any]) -> None:
    assert isinstance(error_from(status), DevletError)


@given(st.integers(300, 599), st.binary(max_size=64))
def test_any_answer_is_some_error_with_a_text(code: int, body: bytes) -> None:
    assert isinstance(error_from_answer(code, body), DevletError)


names = st.text("abcdefgh-.", max_size=10)
causes = st.lists(st.builds(Cause, names, st.text(max_size=10), names), max_size=3)


@given(st.sampled_from([Forbidden, NotFound, AlreadyExists, Conflict]), st.text(min_size=1), names, names, causes)
def test_details_survive_whatever_they_hold(
    type_: Any, message: str, resource: str, name: str, causes: list[Cause]
) -> None:
    error = type_(message, resource=resource.strip("."), name=name, causes=causes)
    assert same(error_from(status_of(error)), error)
