"""The environment in which an expression is compiled: release of Kubernetes, new or stored, and feature gates."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from devlet.alloc.device_cel import FIRST_RELEASE, LISTS_SINCE, RELEASE, SHARES_SINCE, device_environment
from devlet.alloc.selectors import compile_selector
from devlet.cel.environment import Environment
from devlet.cel.program import Program
from devlet.errors import InvalidInput

SHARES, LISTS = "DRAConsumableCapacity", "DRAListTypeAttributes"

# Gate → the release that introduced it, and the one that enabled it by default.
_GATES: Final = {SHARES: (SHARES_SINCE, 36), LISTS: (LISTS_SINCE, 1_000)}
_VERSION: Final = re.compile(r"v?1\.(\d{1,3})(?:\.\d+)?(?:[-+].*)?")


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kubernetes. `shares` and `lists` are the gates of consumable capacity and list attributes."""

    minor: int
    stored: bool
    shares: bool
    lists: bool

    @property
    def name(self) -> str:
        return f"1.{self.minor}"

    @property
    def text(self) -> str:
        return f"{'stored' if self.stored else 'new'} expressions of Kubernetes {self.name}"

    @property
    def environment(self) -> Environment:
        return device_environment((1, self.minor), stored=self.stored, shares=self.shares, lists=self.lists)

    def compile(self, expression: str) -> Program:
        """Compile an expression. Raises InvalidSelector."""
        return compile_selector(expression, self.environment, lists=self.lists)

    def document(self) -> dict[str, object]:
        gates = {SHARES: self.shares, LISTS: self.lists}
        known = {name: on for name, on in gates.items() if self.minor >= _GATES[name][0]}
        return {"kubeVersion": self.name, "stored": self.stored, "featureGates": known}


def releases(versions: str, gates: str, *, stored: bool) -> list[Release]:
    """Parse `--kube-version`, `--feature-gates` and `--stored`. By default, use devlet's release with all gates on."""
    asked = parse_gates(gates)
    if not versions:
        return [_release(RELEASE[1], stored, {SHARES: True, LISTS: True, **asked})]
    minors = dict.fromkeys(_minor(version.strip()) for version in versions.split(","))
    found = []
    for minor in minors:
        on = {name: minor >= default for name, (_, default) in _GATES.items()}
        found.append(_release(minor, stored, on | asked))
    return found


def _release(minor: int, stored: bool, gates: Mapping[str, bool]) -> Release:
    shares, lists = (gates[name] and minor >= _GATES[name][0] for name in (SHARES, LISTS))
    return Release(minor, stored, shares, lists)


def _minor(text: str) -> int:
    match = _VERSION.fullmatch(text)
    if match is None or not FIRST_RELEASE[1] <= (minor := int(match[1])) <= RELEASE[1]:
        known = f"versions from 1.{FIRST_RELEASE[1]} to 1.{RELEASE[1]}"
        raise InvalidInput(f'--kube-version "{text}": expected {known}, separated by commas')
    return minor


def parse_gates(text: str) -> dict[str, bool]:
    """Parse `A=true,B=false`, as Kubernetes components do; only gates that affect selectors are known."""
    return dict(_gate(part.strip()) for part in _parts(text))


def _parts(text: str) -> Iterable[str]:
    return text.split(",") if text else ()


def _gate(part: str) -> tuple[str, bool]:
    name, _, value = part.partition("=")
    if name not in _GATES or value.lower() not in ("true", "false"):
        known = " or ".join(f"{each}=true|false" for each in _GATES)
        raise InvalidInput(f'--feature-gates "{part}": expected {known}')
    return name, value.lower() == "true"
