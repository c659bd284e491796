import json
from pathlib import Path

import pytest

from devlet.cli.cel_cases import answers, read
from devlet.errors import InvalidInput

GOOD = {"id": "good", "expression": "1 == 1", "device": {"driver": "a"}}


def test_an_invalid_case_is_reported_and_the_others_are_answered() -> None:
    told: list[str] = []
    content = json.dumps([GOOD, {"id": "bad"}, 5, GOOD]).encode()
    found = list(answers(content, "x.json", 1, told.append))
    assert [answer["result"] for answer in found] == [True, True]
    assert told == [
        "x.json: case 'bad': expression is missing",
        "x.json: case #2: expected an object with id, expression and device",
    ]


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"a": 1}', b"\xff"])
def test_input_that_is_not_a_list_of_cases_is_an_error(content: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"x\.json: (invalid JSON|expected a JSON list)"):
        list(answers(content, "x.json", 1, print))


def test_each_case_has_its_own_time() -> None:
    slow = {**GOOD, "expression": "lists.range(190000).all(x, x >= 0)"}
    content = json.dumps([slow, GOOD]).encode()
    first, second = answers(content, "x.json", 0.01, print)
    assert (first["error"], second["result"]) == ("operation interrupted", True)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[]")
    assert read(str(tmp_path / "a")) == (b"[]", str(tmp_path / "a"))
    with pytest.raises(InvalidInput, match="No such file"):
        read(str(tmp_path / "b"))
