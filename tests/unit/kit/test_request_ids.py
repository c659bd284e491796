import pytest

from devlet.kit import request_ids


def test_ids_are_valid_and_differ() -> None:
    made = [request_ids.new() for _ in range(100)]
    assert all(map(request_ids.is_valid, made)) and len(set(made)) == 100


@pytest.mark.parametrize("text", ["", "a b", "x" * 65, "a\n", "\x1b[1m", b"abc", None, "ü"])
def test_what_could_spoil_a_log_line_is_not_valid(text: object) -> None:
    assert not request_ids.is_valid(text)
