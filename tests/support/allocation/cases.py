"""Small allocation problems written in few words, and what must come out: `tests/scenarios/alloc/*.yaml`.

A file is a list of cases. This one has two devices of driver `a` in pool `p1`, one of them held by another claim, and
a claim for one device of class `a`:

    - case: one-is-taken
      slices: [{pool: p1, devices: [d1, d2 memory:4Gi]}]
      allocated: [p1/d1]
      claims: [[r0 a]]
      fit: [r0 p1/d2]

The words are explained in `shorthand`; those of a result are `r0/s1 p1/d2 admin shared memory:2 ~NoExecute
?Ready`. Without `fit` or `error` the claims do not fit; `nodeError` is what is said then. `selector` is the node
selector of the allocation (the node's name if not given), `config` its configuration (none), `searchCalls` what the
reference needs. `improved` is what comes out without `reference_compatible`, `because` of an improvement.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from devlet.objects.documents import Document
from tests.support.allocation.shorthand import (
    add_condition,
    claim_config,
    identity,
    problem,
    selector,
    toleration,
)

__all__ = ["Case", "Expected", "load"]


@dataclass(frozen=True)
class Expected:
    """What comes out; selectors and configuration have one entry per claim. `error` is a part of the text."""

    outcome: str
    error: str = ""
    results: tuple[tuple[Document, ...], ...] = ()
    selectors: tuple[Document | None, ...] = ()
    config: tuple[tuple[Document, ...], ...] = ()

    def differences(self, answer: Document) -> list[str]:
        """Between what was expected and the answer for a node; the exact share IDs do not matter."""
        found = []
        if answer["outcome"] != self.outcome or self.error not in answer.get("error", ""):
            found.append(f"{answer['outcome']} {answer.get('error')!r}, expected {self.outcome} {self.error!r}")
        elif self.outcome == "fit":
            pairs = (
                ("results", [_without_ids(result) for result in answer["results"]], self.results),
                ("selectors", [result.get("nodeSelector") for result in answer["results"]], self.selectors),
                ("config", [tuple(result["devices"].get("config") or ()) for result in answer["results"]], self.config),
            )
            found += [f"{what}: {got}, expected {want}" for what, got, want in pairs if got != list(want)]
        return found


@dataclass(frozen=True)
class Case:
    name: str
    problem: Document
    expected: Expected
    improved: Expected | None = None
    improvement: str = ""
    search_calls: int | None = None


def load(path: Path) -> list[Case]:
    """The cases of one file."""
    return [_case(document) for document in yaml.safe_load(path.read_text())]


def _case(short: Document) -> Case:
    improved = short.get("improved")
    return Case(
        name=short["case"],
        problem=problem(short),
        expected=_expected(short, short),
        improved=_expected(improved, short) if improved else None,
        improvement=improved["because"] if improved else "",
        search_calls=short.get("searchCalls"),
    )


def _without_ids(result: Document) -> tuple[Document, ...]:
    return tuple(
        {key: value for key, value in one.items() if key != "shareID"} | ({"shared": True} if "shareID" in one else {})
        for one in result["devices"].get("results") or []
    )


def _expected(short: Document, case: Document) -> Expected:
    if "error" in short:
        return Expected("error", short["error"])
    if "fit" not in short:
        return Expected("no-fit", short.get("nodeError", ""))
    claims = _per_claim(short["fit"])
    return Expected(
        "fit",
        results=tuple(tuple(_result(text) for text in _spread(claim)) for claim in claims),
        selectors=_expected_selectors(short.get("selector", case.get("node", "node-1").split()[0]), len(claims)),
        config=tuple(tuple(_result_config(text) for text in claim) for claim in _per_claim(short.get("config", [])))
        or ((),) * len(claims),
    )


def _per_claim(entries: list[Any]) -> list[list[str]]:
    """A list of texts is for the only claim."""
    return entries if not entries or isinstance(entries[0], list) else [entries]


def _spread(texts: Iterable[str]) -> list[str]:
    """`r0 p1/d0..d3` is four results."""
    found = []
    for text in texts:
        if match := re.fullmatch(r"(.* \S+/d)(\d+)\.\.d(\d+)", text):
            found += [f"{match[1]}{i}" for i in range(int(match[2]), int(match[3]) + 1)]
        else:
            found.append(text)
    return found


def _result(text: str) -> Document:
    request, place, *words = text.split()
    result: Document = {"request": request, **identity(place)}
    for word in words:
        if word == "admin":
            result["adminAccess"] = True
        elif word == "shared":
            result["shared"] = True
        elif word.startswith("~"):
            result.setdefault("tolerations", []).append(toleration(word[1:]))
        elif word.startswith("?"):
            add_condition(result, word)
        else:
            name, amount = word.split(":")
            result.setdefault("consumedCapacity", {})[name] = amount
    return result


def _expected_selectors(entry: str | list[str], claims: int) -> tuple[Document | None, ...]:
    texts = entry if isinstance(entry, list) else [entry] * claims
    return tuple(
        None if text == "all" else selector(text if "=" in text else f"metadata.name={text}") for text in texts
    )


def _result_config(text: str) -> Document:
    source, pair = text.split(" ", 1)
    return {"source": "FromClass" if source == "class" else "FromClaim", **claim_config(pair)}
