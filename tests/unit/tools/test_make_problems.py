import json
from pathlib import Path
from typing import Any

import pytest
from tools import make_problems
from tools.make_problems import TARGET, WANTED, answered, chosen, difference, problems


def kept() -> list[dict[str, Any]]:
    return [json.loads(line) for line in TARGET.read_text().splitlines()]


def test_the_file_has_as_many_problems_of_each_kind_as_wanted() -> None:
    assert len(kept()) == sum(WANTED.values()) == 200
    assert list(chosen(kept(), WANTED)) == kept()


def test_every_problem_of_the_file_is_the_one_its_seed_gives() -> None:
    made = {problem["name"]: problem for problem in problems()}
    for problem in kept():
        del problem["expected"]
        assert problem == made[problem["name"]]


def test_every_problem_has_list_attributes_and_binding_conditions() -> None:
    for problem in kept():
        text = json.dumps(problem["slices"])
        assert '"bindingConditions": ["' in text
        assert any(f'"{key}": [' in text for key in ("ints", "bools", "strings", "versions"))


def test_answers_are_taken_from_the_program_in_order(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("""#!/bin/sh\nread one; read two; echo '{"answers": [1]}'; echo '{"answers": [2]}'\n""")
    program.chmod(0o755)
    assert answered([{"name": "a"}, {"name": "b"}], program) == [
        {"name": "a", "expected": [1]},
        {"name": "b", "expected": [2]},
    ]


@pytest.mark.parametrize(
    ("new", "text"),
    [
        (['{"name": "a"}', '{"name": "b"}'], ""),
        (['{"name": "a"}', '{"name": "c"}'], "line 2, problem c"),
        (['{"name": "a"}'], "line 2, problem b"),
    ],
)
def test_a_difference_says_where(new: list[str], text: str) -> None:
    assert difference(['{"name": "a"}', '{"name": "b"}'], new) == text


def test_without_the_program_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_problems, "PROGRAM", tmp_path / "dra-allocate")
    assert make_problems.main(["--check"]) == 1
    assert capsys.readouterr().err == "dra-allocate is not built: run `make peers`\n"
