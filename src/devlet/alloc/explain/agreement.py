"""Which devices a constraint excludes because other devices must have a value in common with them.

The test is necessary but not sufficient: excluded devices cannot be used, and the remaining devices may still not fit
together.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations

from devlet.alloc.allocator import Fit
from devlet.alloc.constraints import attribute_values
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen
from devlet.alloc.inventory import DeviceEntry, Values
from devlet.alloc.requests import RESULTS_MAX
from devlet.objects.types.claim import DeviceConstraint

__all__ = ["Objection", "at_odds", "covers", "objections", "refusals", "value_text", "values_of"]

Objection = tuple[int, str]
"""Number of the constraint, and what is wrong."""


def covers(constraint: DeviceConstraint, option: Option) -> bool:
    names = constraint.requests
    return not names or option.request_name in names or option.wanted.full_name in names


def values_of(scene: Scene, constraint: DeviceConstraint, entry: DeviceEntry) -> Values | None:
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    return attribute_values(entry, name, lists=scene.allocator.features.list_type_attributes)


def value_text(values: Iterable[tuple[str, object]]) -> str:
    texts = sorted(f'"{value}"' if kind == "strings" else str(value).lower() for kind, value in values)
    return ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")


def objections(scene: Scene, option: Option, seen: list[Seen]) -> dict[DeviceEntry, Objection]:
    """Return objections to free devices that a constraint excludes, whichever other devices are chosen."""
    found: dict[DeviceEntry, Objection] = {}
    constraints = scene.claims.claims[option.claim].spec.devices.constraints
    for i, constraint in enumerate(constraints):
        name = constraint.match_attribute or constraint.distinct_attribute
        if name is None or not covers(constraint, option):
            continue
        workable = _workable(scene, constraint, option.claim) if constraint.match_attribute is not None else None
        for each in seen:
            if each.kind is VerdictKind.FREE and each.entry not in found:
                values = values_of(scene, constraint, each.entry)
                if not values:
                    found[each.entry] = (i, f"has no attribute {name}")
                elif workable is not None and not values & workable.keys():
                    lost = _shortage(scene, constraint, option.claim, min(values, key=str))
                    found[each.entry] = (i, f"{name} is {value_text(values)}, {lost}")
    return found


def refusals(scene: Scene, option: Option, seen: list[Seen], fit: Fit) -> dict[DeviceEntry, Objection]:
    """Return objections to free devices that do not agree with the chosen ones."""
    found: dict[DeviceEntry, Objection] = {}
    for i, constraint in enumerate(scene.claims.claims[option.claim].spec.devices.constraints):
        names = constraint.requests
        chosen = [
            values_of(scene, constraint, each.entry) or frozenset()
            for each in fit.chosen[option.claim]
            if not names or each.step.request in names or each.step.full_name in names
        ]
        if chosen and covers(constraint, option):
            for each in seen:
                if each.kind is VerdictKind.FREE and (text := _refusal(scene, constraint, each.entry, chosen)):
                    found.setdefault(each.entry, (i, text))
    return found


def _refusal(scene: Scene, constraint: DeviceConstraint, entry: DeviceEntry, chosen: list[Values]) -> str:
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    values = values_of(scene, constraint, entry)
    if not values:
        return f"has no attribute {name}"
    common = frozenset.intersection(*chosen)
    if constraint.match_attribute is not None:
        return "" if values & common else f"{name} is {value_text(values)}, the chosen have {value_text(common)}"
    taken = any(values & each for each in chosen)
    return f"{name} is {value_text(values)}, like that of a chosen device" if taken else ""


def _workable(scene: Scene, constraint: DeviceConstraint, claim: int) -> dict[tuple[str, object], bool]:
    """Return the values that enough devices of every request have."""
    values = {
        value
        for (i, _), alternatives in scene.seen.items()
        for option, seen in alternatives
        if i == claim and covers(constraint, option)
        for each in seen
        if each.kind is VerdictKind.FREE
        for value in values_of(scene, constraint, each.entry) or ()
    }
    return {value: True for value in values if not _shortage(scene, constraint, claim, value)}


def _shortage(scene: Scene, constraint: DeviceConstraint, claim: int, value: tuple[str, object]) -> str:
    """Say which request has too few devices with the value."""
    for (i, _), alternatives in scene.seen.items():
        if i != claim or any(not covers(constraint, option) for option, _ in alternatives):
            continue
        most = 0
        for option, seen in alternatives:
            having = sum(
                each.kind is VerdictKind.FREE and value in (values_of(scene, constraint, each.entry) or ())
                for each in seen
            )
            number = scene.number(option, seen)
            if having >= number:
                break
            most = max(most, having)
        else:
            name = alternatives[0][0].request_name
            needed = min(scene.number(option, seen) for option, seen in alternatives)
            return f"but request {name} has {most} free device{'s' * (most != 1)} with that value and needs {needed}"
    return ""


def at_odds(scene: Scene) -> tuple[int, int, tuple[int, ...]] | None:
    """Return one or two requests for which no value works, as indices of claim, constraint and requests: a smallest
    conflict.

    The conflict is found by counting, and only where counting proves that the claims would fit without any one of
    these.
    """
    for i, claim in enumerate(scene.claims.claims[: len(scene.claims.requests)]):
        for c, constraint in enumerate(claim.spec.devices.constraints):
            if constraint.match_attribute is not None and scene.allocator.rules.exact_constraints:
                suiting = {j: _suiting(scene, constraint, i, j) for j in _countable(scene, constraint, i)}
                if alone := [j for j, values in suiting.items() if not values]:
                    return (i, c, (alone[0],))
                for pair in combinations(suiting, 2):
                    if not suiting[pair[0]] & suiting[pair[1]] and _enough_for(scene, i, pair):
                        return (i, c, pair)
    return None


def _countable(scene: Scene, constraint: DeviceConstraint, claim: int) -> list[int]:
    """Return the requests that the constraint covers and that could be satisfied if they were alone."""
    found = []
    for (i, j), alternatives in scene.seen.items():
        if i == claim and len(alternatives) == 1 and covers(constraint, alternatives[0][0]):
            option, seen = alternatives[0]
            free = [each.entry for each in seen if each.kind is VerdictKind.FREE]
            is_plain = not (option.wanted.is_all or option.wanted.admin_access or any(e.counters for e in free))
            if is_plain and 0 < option.wanted.count <= min(len(free), RESULTS_MAX):
                found.append(j)
    return found


def _suiting(scene: Scene, constraint: DeviceConstraint, claim: int, request: int) -> set[tuple[str, object]]:
    """Return the values that enough free devices have."""
    ((option, seen),) = scene.seen[claim, request]
    free = (each.entry for each in seen if each.kind is VerdictKind.FREE)
    counts = Counter(value for entry in free for value in values_of(scene, constraint, entry) or ())
    return {value for value, count in counts.items() if count >= option.wanted.count}


def _enough_for(scene: Scene, claim: int, requests: tuple[int, ...]) -> bool:
    """Return whether two requests that can each be satisfied alone can be satisfied together, ignoring constraints."""
    options = [scene.seen[claim, request][0] for request in requests]
    free = {each.entry for _, seen in options for each in seen if each.kind is VerdictKind.FREE}
    return sum(option.wanted.count for option, _ in options) <= min(len(free), RESULTS_MAX)
