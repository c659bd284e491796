"""Write tests/vectors/allocator_problems_lists.jsonl: `python -m tools.make_problems [--check]`.

The problems are random, with list attributes and binding conditions in each; the answers are those of the reference's
allocator, from `dra-allocate` of `make peers`. `--check` writes nothing and fails if the file would change.
"""

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from devlet.kit.dice import Dice
from tests.support.problems.generator import THEMES, random_problem

PROJECT = Path(__file__).resolve().parents[1]
PROGRAM = PROJECT / ".cache" / "peers" / "bin" / "dra-allocate"
TARGET = PROJECT / "tests" / "vectors" / "allocator_problems_lists.jsonl"
TRIES = 800
FIRST_SEED = 200_000
WANTED = {
    "fit": 85,
    "no-fit": 65,
    "error": 50,
}  # by the most interesting answer of a node; random problems alone produce few errors
LIST_KEYS = frozenset(["ints", "bools", "strings", "versions"])

Document = dict[str, Any]


def problems() -> list[Document]:
    return [problem for problem in map(_problem, range(FIRST_SEED, FIRST_SEED + TRIES)) if _has_both(problem)]


def _problem(seed: int) -> Document:
    """Return a random problem. Lists matter where attributes are compared, so one of the two constraints is always
    present."""
    dice = Dice(seed)
    themes = {"lists", "binding", dice.pick(("match", "distinct"))}
    themes.update(dice.some([theme for theme in THEMES if theme not in themes], 0, 4))
    if seed % 3 == 0:
        themes.add("errors")
    return random_problem(seed, sorted(themes))


def _has_both(problem: Document) -> bool:
    devices = [device for each in problem["slices"] for device in each["spec"].get("devices", ())]
    values = [value for device in devices for value in device["attributes"].values()]
    return any(LIST_KEYS & value.keys() for value in values) and any("bindingConditions" in d for d in devices)


def answered(made: Sequence[Document], program: Path = PROGRAM) -> list[Document]:
    """Add the reference's answers to each problem as `expected`."""
    text = "\n".join(map(json.dumps, made))
    answer = subprocess.run([program], input=text, stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line)["answers"] for line in answer.stdout.splitlines()]
    return [{**problem, "expected": expected} for problem, expected in zip(made, answers, strict=True)]


def chosen(found: Iterable[Document], wanted: Mapping[str, int]) -> Iterator[Document]:
    """Yield the first problems of each kind, as many as wanted."""
    left = dict(wanted)
    for problem in found:
        outcomes = {answer["outcome"] for answer in problem["expected"]}
        kind = next(kind for kind in ("error", "fit", "no-fit") if kind in outcomes)
        left[kind] -= 1
        if left[kind] >= 0:
            yield problem


def lines() -> list[str]:
    found = chosen(answered(problems()), WANTED)
    return [json.dumps(problem, separators=(",", ":")) + "\n" for problem in found]


def difference(old: Sequence[str], new: Sequence[str]) -> str:
    """Describe the first difference; empty if there is none."""
    for number, (was, now) in enumerate(itertools.zip_longest(old, new), start=1):
        if was != now:
            return f"line {number}, problem {json.loads(now or was or '')['name']}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make allocator problems, answered by the reference.")
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    check = parser.parse_args(arguments).check
    if not PROGRAM.is_file():
        print(f"{PROGRAM.name} is not built: run `make peers`", file=sys.stderr)
        return 1
    made = lines()
    if not check:
        TARGET.write_text("".join(made))
        return 0
    found = difference(TARGET.read_text().splitlines(keepends=True) if TARGET.is_file() else [], made)
    if found:
        print(f"{TARGET.relative_to(PROJECT)}: {found} differs from the current output", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
