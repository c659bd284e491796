import pytest

from devlet.state.go_json import Malformed, Members, integer, members
from devlet.state.json_pieces import MAX_FAILURES, scan, value_at


def number(value: object) -> int | None:
    """Return the value of the field n of an object."""
    found = dict(members(value))
    return integer(str(found["n"])) if "n" in found else None


def scanned(text: str) -> tuple[list[int], list[str]]:
    lost: list[str] = []
    return list(scan(text, number, lambda start: f"at {start}" if text.startswith('{"n"', start) else None, lost)), lost


def test_objects_are_found_anywhere() -> None:
    assert scanned('{"a":[{"n":1},{"b":{ "n":2}}]} garbage {"n":3') == ([1, 2], ["at 39: the file ends before it does"])


def test_objects_inside_a_taken_object_are_skipped() -> None:
    assert scanned('{"n":1,"m":{"n":2}}') == ([1], [])


def test_an_unreadable_object_is_lost_with_its_label_and_affects_no_other() -> None:
    assert scanned('[{"n":1},{"n":\0},{"x":\0},{"n":"two"},{"n":4}]') == (
        [1, 4],
        ["at 9: not JSON at character 14", "at 25: expected integers of 64 bits as keys, found 'two'"],
    )


def test_after_too_much_damage_the_rest_is_skipped() -> None:
    found, lost = scanned('{"a' * (MAX_FAILURES + 1) + '{"n":1}')
    assert (found, lost) == (
        [],
        [f"all from character {3 * MAX_FAILURES}: more than {MAX_FAILURES} places are damaged"],
    )


def test_the_end_of_a_value_is_found() -> None:
    assert value_at('x{"a":null}y', 1) == (Members([("a", None)]), 11)
    for text, reason in (('{"a', "the file ends"), ("{]}", "not JSON at character 1"), ("[" * 100_000, "too deeply")):
        with pytest.raises(Malformed, match=reason):
            value_at(text, 0)
