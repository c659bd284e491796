"""Fail if the lock files do not fit pyproject.toml: `python -m tools.check_lock [ROOT]`. Needs no network.

The dependencies of a package are read from its installed metadata, so a lock is only checked completely in the
environment that was installed from it. `make lock` recreates both files.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = {"requirements.lock": "build", "requirements-dev.lock": "dev"}


@dataclass(frozen=True, slots=True)
class Pin:
    """A package in a lock: `applies` says whether its marker holds on this machine."""

    name: str
    version: str
    applies: bool
    hashes: int


def problems(root: Path) -> list[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text())
    locks = {name: (root / name).read_text() for name in LOCKS}
    found = []
    for name, group in LOCKS.items():
        wanted = [Requirement(text) for text in _wanted(project, group)]
        found += [f"{name}: {problem}" for problem in _lock_problems(locks[name], wanted)]
    run, dev = ({pin.name: pin.version for pin in _pins(text)} for text in locks.values())
    for name, version in run.items():
        if dev.get(name) != version:
            found.append(f"requirements.lock: {name} {version}, but {dev.get(name)} in requirements-dev.lock")
    return found


def _wanted(project: dict[str, Any], group: str) -> Iterator[str]:
    yield from project["project"]["dependencies"]
    yield from _group(project["dependency-groups"], group)


def _group(groups: dict[str, Any], name: str) -> Iterator[str]:
    for entry in groups[name]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from _group(groups, entry["include-group"])


def _lock_problems(text: str, wanted: list[Requirement]) -> Iterator[str]:
    for line in text.splitlines():
        if "://" in line or (line.startswith("-") and not line.startswith("--hash=")):
            yield f"{line.strip()!r} does not belong in a lock file, which only lists versions and hashes"
    pins = list(_pins(text))
    for pin in pins:
        if not pin.version:
            yield f"{pin.name} is not pinned to one version"
        if not pin.hashes:
            yield f"{pin.name} has no hash"
    here = {pin.name: pin for pin in pins if pin.applies}
    for requirement in wanted:
        yield from _unsatisfied(requirement, here, "pyproject.toml")
    needed, missing = _needed(wanted, here)
    yield from missing
    for name in sorted(here.keys() - needed):
        yield f"nothing needs {name}"


def _pins(text: str) -> Iterator[Pin]:
    for entry in re.split(r"\n(?=[A-Za-z0-9])", text):
        head = entry.split("\\\n")[0].strip()
        if not head or head.startswith(("#", "-")):
            continue
        requirement = Requirement(head)
        version = re.fullmatch(r"==([^,*]+)", str(requirement.specifier))
        yield Pin(
            canonicalize_name(requirement.name),
            version[1] if version else "",
            requirement.marker is None or requirement.marker.evaluate(),
            len(re.findall(r"--hash=sha256:[0-9a-f]{64}", entry)),
        )


def _unsatisfied(requirement: Requirement, here: dict[str, Pin], who: str) -> Iterator[str]:
    pin = here.get(canonicalize_name(requirement.name))
    if pin is None:
        yield f"{who} needs {requirement}, which is not in the lock file"
    elif not requirement.specifier.contains(pin.version, prereleases=True):
        yield f"{who} needs {requirement}, but the lock file has {pin.version}"


def _needed(wanted: Iterable[Requirement], here: dict[str, Pin]) -> tuple[set[str], list[str]]:
    """Return every package that `wanted` depends on, and the requirements on the way that the lock does not meet."""
    todo = list(wanted)
    seen: set[tuple[str, frozenset[str]]] = set()
    missing: list[str] = []
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        for need in _needs(name, requirement.extras):
            missing += _unsatisfied(need, here, name)
            todo.append(need)
    return {name for name, _ in seen}, missing


def _needs(name: str, extras: set[str]) -> Iterator[Requirement]:
    try:
        texts = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return  # not installed: if the lock should have it, the check of the lock itself reports that
    for text in texts:
        need = Requirement(text)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield need


def main() -> int:
    found = problems(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
    print("\n".join(found) or "the lock files fit pyproject.toml")
    if found:
        print("run `make lock` to update them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
