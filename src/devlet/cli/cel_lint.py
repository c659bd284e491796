"""The work of `devlet cel lint`: check every selector as an API server does, and on the published devices.

A selector is evaluated only on devices that match the selectors before it: first those of its class, then those before
it in its own list. Allocation does the same, so `has()` is unnecessary for what a class has tested.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.lint import Finding, Severity, lint, results_of
from devlet.alloc.published import Published
from devlet.cli.cel_eval import deadline
from devlet.cli.cel_input import Input, Selector
from devlet.cli.cel_release import Release
from devlet.cli.session import Document
from devlet.errors import InvalidSelector


@dataclass(frozen=True, slots=True)
class Located:
    selector: Selector
    finding: Finding

    @property
    def line(self) -> str:
        """`FILE: OBJECT: PATH:LINE:COLUMN: SEVERITY: MESSAGE`."""
        finding = self.finding
        return f"{self.selector.place}:{finding.line}:{finding.column}: {finding.severity}: {finding.message}"

    def document(self) -> Document:
        selector, finding = self.selector, self.finding
        return {
            "origin": selector.origin,
            "object": selector.object,
            "path": selector.path,
            "line": finding.line,
            "column": finding.column,
            "severity": str(finding.severity),
            "rule": finding.rule,
            "message": finding.message,
        }


class Linter:
    """Checks selectors. `seconds` limits the evaluation of one selector on all devices."""

    def __init__(self, input: Input, release: Release, seconds: float = 10.0) -> None:
        self._release = release
        self._seconds = seconds
        self._devices = [specimen.input for specimen in input.specimens()]
        self._published = Published(self._devices)
        self._selectors = input.selectors()
        self._known = {name for _, name in input.objects.classes}
        self._matching: dict[tuple[str, ...], list[DeviceInput]] = {}

    @property
    def count(self) -> int:
        return len(self._selectors)

    @property
    def devices(self) -> int:
        return len(self._devices)

    def findings(self) -> Iterator[Located]:
        before: list[str] = []
        group = ("", "")
        for selector in self._selectors:
            this = (selector.object, selector.path.rpartition("[")[0])
            if this != group:
                group, before = this, self._of_class(selector.class_name)
                yield from self._unknown_class(selector)
            devices = self._narrowed(tuple(before))
            yield from (Located(selector, finding) for finding in self._lint(selector.expression, devices))
            before.append(selector.expression)

    def _of_class(self, name: str) -> list[str]:
        return [each.expression for each in self._selectors if name and each.object == f"DeviceClass {name}"]

    def _unknown_class(self, selector: Selector) -> Iterator[Located]:
        name = selector.class_name
        if name and self._known and name not in self._known:
            message = f'device class "{name}" does not exist; its selectors are not taken into account'
            yield Located(selector, Finding(Severity.NOTE, "unknown-class", message))

    def _lint(self, expression: str, devices: Sequence[DeviceInput]) -> list[Finding]:
        return lint(
            expression,
            self._release.environment,
            devices,
            lists=self._release.lists,
            published=self._published,
            give_up=deadline(self._seconds),
        )

    def _narrowed(self, expressions: tuple[str, ...]) -> list[DeviceInput]:
        """Return the devices that match all expressions, ignoring expressions that do not compile."""
        if not expressions:
            return self._devices
        if expressions not in self._matching:
            self._matching[expressions] = self._matched(expressions[-1], self._narrowed(expressions[:-1]))
        return self._matching[expressions]

    def _matched(self, expression: str, devices: list[DeviceInput]) -> list[DeviceInput]:
        try:
            program = self._release.compile(expression)
        except InvalidSelector:
            return devices
        results = results_of(program, devices, lists=self._release.lists, give_up=deadline(self._seconds))
        return [device for device, result in zip(devices, results.values, strict=False) if result is True]
