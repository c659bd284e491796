"""Allocation problems, one JSON document per line, and their answers.

A line that is not a problem is reported with its number and does not stop the others. Times cover solving alone: the
problem has been read and the inventory built, as in a scheduler that already knows the cluster.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final
from uuid import uuid4

import msgspec

from devlet.alloc.allocator import Allocator
from devlet.alloc.features import Rules
from devlet.alloc.placement import MODES, Mode, place
from devlet.alloc.problems import Problem, answer_problem, read_problem
from devlet.alloc.scan import Scan
from devlet.cli.session import Document
from devlet.control.search_time import SearchTime
from devlet.errors import InvalidInput

MAX_LINE_BYTES: Final = 1 << 30
LARGE_BYTES: Final = 1 << 20


class Answers:
    """A solver of problems. `seconds` limits a search, over all nodes of a problem or for each claim that is placed.

    `report` is called with what is wrong with a line; `failed` counts such lines.
    """

    def __init__(self, rules: Rules, seconds: float, *, bench: bool, report: Callable[[str], None]) -> None:
        self._rules = rules
        self._seconds = seconds
        self._bench = bench
        self._report = report
        self.failed = 0

    def of(self, lines: BinaryIO, origin: str) -> Iterator[Document]:
        for number, line in enumerate(_lines(lines, origin), start=1):
            if line.isspace():
                continue
            try:
                yield self._answered(_document(line))
            except InvalidInput as e:
                self.failed += 1
                self._report(f"{origin}:{number}: {e}")
                yield from _refused(line, str(e))
            if len(line) > LARGE_BYTES:
                gc.collect()  # objects that were frozen are otherwise collected late

    def _answered(self, document: Document) -> Document:
        problem = read_problem(document)
        document.clear()
        with _undisturbed():
            if not problem.mode:
                return self._solved(problem)
            if problem.mode not in MODES:
                expected = ", ".join(MODES)
                raise InvalidInput(
                    f"problem {problem.name!r}: unknown mode {problem.mode!r}: use one of {expected}, or leave it out"
                )
            return self._filled(problem, problem.mode)

    def _solved(self, problem: Problem) -> Document:
        budget = SearchTime(self._seconds)
        begun = time.perf_counter()
        answers = answer_problem(problem, self._rules, lambda: budget.limits)
        seconds = time.perf_counter() - begun
        for answer in answers:
            answer.pop("results", None)
        return {"name": problem.name, "answers": answers} | ({"seconds": seconds} if self._bench else {})

    def _filled(self, problem: Problem, mode: Mode) -> Document:
        budget = SearchTime(self._seconds)
        scan = Scan(Allocator(problem.inventory, problem.features, self._rules), problem.nodes)
        scan.warm()
        placed = 0
        begun = time.perf_counter()
        for node in place(scan, problem.claims, mode, lambda: str(uuid4()), budget.limits):
            placed += node is not None
            budget.restart()
        seconds = time.perf_counter() - begun
        cut = f"searches abandoned after {self._seconds:g} s: {budget.exceeded}" if budget.exceeded else ""
        return {"name": problem.name, "placed": placed, "seconds": seconds} | ({"error": cut} if cut else {})


def _lines(lines: BinaryIO, origin: str) -> Iterator[bytes]:
    while line := lines.readline(MAX_LINE_BYTES):
        if len(line) == MAX_LINE_BYTES:
            raise InvalidInput(f"{origin}: a line has more than {MAX_LINE_BYTES} bytes")
        yield line


def _document(line: bytes) -> Document:
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as e:
        raise InvalidInput(f"not JSON: {e}") from e
    if not isinstance(document, dict):
        raise InvalidInput("expected a JSON object with nodes, slices, classes and claims")
    return document


def _refused(line: bytes, error: str) -> Iterator[Document]:
    """Answer an invalid problem with an error for each node, if its name and nodes can be read."""
    try:
        found = msgspec.json.decode(line, type=_Named)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    answers = [{"node": node.metadata.name, "outcome": "error", "error": error} for node in found.nodes or ()]
    yield {"name": found.name, "answers": answers}


class _Metadata(msgspec.Struct):
    name: str = ""


class _NamedNode(msgspec.Struct):
    metadata: _Metadata


class _Named(msgspec.Struct):
    name: str
    nodes: list[_NamedNode] | None = None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Exclude the problem from garbage collection while it is being solved."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
