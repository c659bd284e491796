import inspect

import pytest

from devlet import errors
from devlet.errors import (
    MAX_CAUSES,
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    DevletError,
    Expired,
    Forbidden,
    InvalidInput,
    InvalidObject,
    NotFound,
    ResourceError,
    TooLarge,
    Unavailable,
    UnsupportedPatch,
)


def test_every_error_is_one_of_ours_and_says_who_acts() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, Exception)]
    assert all(issubclass(c, DevletError) and c.__doc__ for c in classes)
    assert all(c.__name__ in (errors.__doc__ or "") for c in classes if c is not ResourceError)


@pytest.mark.parametrize("kind", [BadRequest, TooLarge, UnsupportedPatch])
def test_wrong_input_can_never_succeed(kind: type[DevletError]) -> None:
    assert issubclass(kind, InvalidInput) and str(kind("why")) == "why"


def test_an_invalid_object_names_its_causes() -> None:
    cause = Cause("FieldValueRequired", "Required value", "spec.containers")
    assert str(InvalidObject("Pod", "p", [cause])) == 'Pod "p" is invalid: spec.containers: Required value'
    both = InvalidObject("Pod", "p", [cause, Cause("FieldValueInvalid", "broken", "")])
    assert str(both) == 'Pod "p" is invalid: [spec.containers: Required value, broken]'
    assert both.causes[0] is cause


@pytest.mark.parametrize("kind", [NotFound, AlreadyExists, Conflict, Forbidden])
def test_an_error_about_an_object_says_which(kind: type[ResourceError]) -> None:
    error = kind("text", resource="pods", name="p", causes=[Cause("r", "m", "f")])
    assert (str(error), error.resource, error.name, error.causes[0].reason) == ("text", "pods", "p", "r")
    assert kind("text").causes == ()


def test_what_passes_says_when_to_come_back() -> None:
    assert (Unavailable("busy").retry_after, Unavailable("busy", retry_after=5).retry_after) == (1.0, 5)
    assert (Expired("old").fresh_continue, Expired("old", fresh_continue="token").fresh_continue) == ("", "token")


def test_an_error_lists_so_many_causes_and_says_that_there_are_more() -> None:
    causes = [Cause("FieldValueInvalid", "wrong", f"spec.f{i}") for i in range(MAX_CAUSES + 5)]
    error = InvalidObject("Pod", "a", causes)
    assert len(error.causes) == MAX_CAUSES and str(error).endswith("wrong, and more]")
    assert not str(InvalidObject("Pod", "a", causes[:MAX_CAUSES])).endswith("and more]")
