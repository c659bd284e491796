import pytest

from devlet.kit import request_ids
from devlet.kit.facts import bound_fact


def test_ids_are_valid_and_differ() -> None:
    made = [request_ids.new() for _ in range(100)]
    assert all(map(request_ids.is_valid, made)) and len(set(made)) == 100


def test_a_request_has_an_id_of_its_own_that_ends_with_it() -> None:
    found = []
    for _ in range(2):
        with request_ids.request():
            found.append(bound_fact(request_ids.FACT))
    assert len(set(filter(request_ids.is_valid, found))) == 2
    assert bound_fact(request_ids.FACT) is None


@pytest.mark.parametrize("text", ["", "a b", "x" * 65, "a\n", "\x1b[1m", b"abc", None, "ü"])
def test_what_could_spoil_a_log_line_is_not_valid(text: object) -> None:
    assert not request_ids.is_valid(text)
