"""Selectors of classes and requests: compiled once and evaluated once per slice, as bits of its devices.

Errors are kept per device, because it depends on the request whether an error counts: a device that is in use, or that
an earlier selector excludes, is never evaluated.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from devlet.alloc.device_cel import DeviceInput, device_environment, result_types
from devlet.cel.environment import Environment
from devlet.cel.program import Program, compile
from devlet.errors import InvalidSelector

if TYPE_CHECKING:
    from devlet.alloc.inventory import SliceEntry

__all__ = ["SelectorSet", "Selectors", "SliceMatch", "compile_selector"]

GiveUp = Callable[[], bool]

PROGRAMS_MAX: Final = 4096
MATCHES_MAX: Final = 512  # per slice; the oldest is evicted


class SelectorSet:
    """Expressions of a class and of a request. `Selectors.set_of` creates them, so that equal sets are the same
    object."""

    __slots__ = ("of_class", "of_request")

    def __init__(self, of_class: tuple[str, ...], of_request: tuple[str, ...]) -> None:
        self.of_class = of_class
        self.of_request = of_request


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector of the class, or of the request, by index, that cannot be evaluated for a device."""

    of_class: bool
    index: int
    text: str


@dataclass(frozen=True, slots=True)
class SliceMatch:
    """Bits of the devices that match, and of those where an error leaves it undecided."""

    matching: int
    failing: int = 0
    failures: Mapping[int, SelectorFailure] = field(default_factory=dict)


def compile_selector(expression: str, environment: Environment, *, lists: bool = True) -> Program:
    """Compile a selector. Raises InvalidSelector with the reference's text."""
    return compile(expression, environment, result_types(lists))


class Selectors:
    """Compiled expressions by their text. `lists` is the gate of list attributes."""

    def __init__(self, *, lists: bool = True) -> None:
        self._lists = lists
        # asked while expensive selectors are evaluated, if the caller does not pass its own
        self.give_up: GiveUp | None = None
        self._programs: OrderedDict[str, Program | InvalidSelector] = OrderedDict()
        self._sets: OrderedDict[tuple[tuple[str, ...], tuple[str, ...]], SelectorSet] = OrderedDict()

    def set_of(self, of_class: tuple[str, ...], of_request: tuple[str, ...]) -> SelectorSet:
        found = self._sets.get((of_class, of_request))
        if found is None:
            found = self._sets[of_class, of_request] = SelectorSet(of_class, of_request)
            if len(self._sets) > PROGRAMS_MAX:
                self._sets.popitem(last=False)
        return found

    def match(self, entry: "SliceEntry", selectors: SelectorSet, give_up: GiveUp | None = None) -> SliceMatch:
        """Return the devices of a slice that match all the selectors. Raises Interrupted."""
        found = entry.matches.get(selectors)
        if found is None:
            self.match_many([entry], selectors, give_up)
            found = entry.matches[selectors]
        return found

    def match_many(
        self, entries: Iterable["SliceEntry"], selectors: SelectorSet, give_up: GiveUp | None = None
    ) -> None:
        """Evaluate selectors on many slices at once, which is faster. Later calls of `match` use the results."""
        new = [entry for entry in entries if selectors not in entry.matches]
        matching, failures = self._evaluate_all(new, selectors, give_up)
        for entry in new:
            if len(entry.matches) >= MATCHES_MAX:
                del entry.matches[next(iter(entry.matches))]
            failed = failures.get(entry, {})
            entry.matches[selectors] = SliceMatch(matching.get(entry, 0), sum(1 << bit for bit in failed), failed)

    def _evaluate_all(
        self, entries: Sequence["SliceEntry"], selectors: SelectorSet, give_up: GiveUp | None
    ) -> tuple[dict["SliceEntry", int], dict["SliceEntry", dict[int, SelectorFailure]]]:
        devices = [device for entry in entries for device in entry.devices]
        failures: dict[SliceEntry, dict[int, SelectorFailure]] = {}
        for of_class, expressions in ((True, selectors.of_class), (False, selectors.of_request)):
            for index, expression in enumerate(expressions):
                results = self._evaluate(expression, [device.input for device in devices], give_up)
                for device, result in zip(devices, results, strict=True):
                    if type(result) is str:
                        failure = SelectorFailure(of_class, index, result)
                        failures.setdefault(device.slice, {})[device.bit] = failure
                devices = [device for device, result in zip(devices, results, strict=True) if result is True]
        matching: dict[SliceEntry, int] = {}
        for device in devices:
            matching[device.slice] = matching.get(device.slice, 0) | 1 << device.bit
        return matching, failures

    def _evaluate(self, expression: str, inputs: Sequence[DeviceInput], give_up: GiveUp | None) -> Sequence[bool | str]:
        """Return for each device true, false, or the error."""
        try:
            program = self.program(expression)
        except InvalidSelector as e:
            return [f"CEL compile error: {e}"] * len(inputs)
        results = program.matches(inputs, give_up or self.give_up)
        if any(input.problem or input.list_problem for input in inputs):
            problems = [input.problem_with(self._lists) for input in inputs]
            results = [problem or result for problem, result in zip(problems, results, strict=True)]
        return [result if result is True or result is False else f"CEL runtime error: {result}" for result in results]

    def program(self, expression: str) -> Program:
        """Return the compiled expression. Raises InvalidSelector."""
        program = self._programs.get(expression)
        if program is None:
            program = self._compile(expression)
            self._programs[expression] = program
            if len(self._programs) > PROGRAMS_MAX:
                self._programs.popitem(last=False)
        if isinstance(program, InvalidSelector):
            # the error is raised repeatedly; without this it would collect each traceback
            raise program.with_traceback(None)
        return program

    def _compile(self, expression: str) -> Program | InvalidSelector:
        try:
            return compile_selector(expression, device_environment(lists=self._lists), lists=self._lists)
        except InvalidSelector as e:
            return e
