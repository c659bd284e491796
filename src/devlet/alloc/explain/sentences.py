"""A conflict in one sentence, from what is known about the devices of the node.

Each has a second text without numbers and values of devices, under which nodes are counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from devlet.alloc.explain.agreement import covers, value_text, values_of
from devlet.alloc.explain.conflict import Wish
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.requests import RESULTS_MAX
from devlet.objects.claim import DeviceConstraint

__all__ = ["Blocked", "blocked", "conflict_sentence", "distance"]

_EXPRESSION_MAX = 160

# What is left after each question, in the order in which they are asked.
_STAGES = (
    (VerdictKind.CLASS_SELECTOR, "are of class"),
    (VerdictKind.SELECTOR_ERROR, "can be evaluated"),
    (VerdictKind.REQUEST_SELECTOR, "match"),
    (VerdictKind.IN_USE, "in use"),
    (VerdictKind.TAINT, "tainted"),
    (VerdictKind.CAPACITY, "without enough capacity"),
    (VerdictKind.COUNTERS, "without enough counters"),
)


@dataclass(frozen=True, slots=True)
class Blocked:
    """An option that too few devices are left for, and the question after which they are too few (None: at once)."""

    option: Option
    seen: Sequence[Seen]
    number: int
    at: VerdictKind | None


def blocked(scene: Scene, option: Option, seen: Sequence[Seen]) -> Blocked | None:
    """Whether the option cannot be had even if it were alone, and without constraints."""
    number = scene.number(option, seen)
    counts = Counter(each.kind for each in seen)
    left = sum(counts.values()) - counts[VerdictKind.OTHER_NODE] - counts[VerdictKind.BINDING_CONDITIONS]
    if option.wanted.is_all and number == 0:
        number = 1
    if left < number:
        return Blocked(option, seen, number, None)
    for kind, _ in _STAGES:
        left -= counts[kind]
        if left < number and not (option.wanted.is_all and kind is VerdictKind.CAPACITY and number <= left):
            return Blocked(option, seen, number, kind)
    return None


def distance(scene: Scene) -> tuple[int, int]:
    """How far the node is from fitting: the first question that fails, the earlier the farther, and what is missing."""
    order = [None, *(kind for kind, _ in _STAGES)]
    worst, missing = 0, 0
    for options in scene.seen.values():
        found = [blocked(scene, option, seen) for option, seen in options]
        if all(found):
            near = min(
                (len(order) - order.index(each.at), each.number - _count(each.seen, VerdictKind.FREE))
                for each in found
                if each
            )
            worst, missing = max(worst, near[0]), missing + near[1]
    return worst, missing


def _count(seen: Sequence[Seen], *kinds: VerdictKind) -> int:
    return sum(each.kind in kinds for each in seen)


def conflict_sentence(scene: Scene, wishes: Sequence[Wish], detail: str = "") -> tuple[str, str]:
    """The sentence and the cause. `detail` is added if devices do not match: what in a selector is false."""
    requests = [wish for wish in wishes if not wish.is_constraint]
    if len(requests) == 1 and len(wishes) == 1:
        return _alone(scene, requests[0], detail)
    constraints = [scene.claims.claims[w.claim].spec.devices.constraints[w.index] for w in wishes if w.is_constraint]
    if constraints:
        return _constrained(scene, requests, constraints)
    return _together(scene, requests)


# One request


def _alone(scene: Scene, wish: Wish, detail: str) -> tuple[str, str]:
    options = scene.seen[wish.claim, wish.index]
    found = [(option, seen, blocked(scene, option, seen)) for option, seen in options]
    texts = [_option(scene, option, seen, each, detail) for option, seen, each in found]
    name = wish.text
    if len(texts) == 1:
        return f"{name} {texts[0][0]}", f"{name} {texts[0][1]}"
    return (
        f"{name}: none of its alternatives: "
        + "; ".join(f"{o.wanted.name} {t}" for (o, _), (t, _) in zip(options, texts)),
        f"{name}: none of its alternatives: "
        + "; ".join(f"{o.wanted.name} {c}" for (o, _), (_, c) in zip(options, texts)),
    )


def _option(scene: Scene, option: Option, seen: Sequence[Seen], found: Blocked | None, detail: str) -> tuple[str, str]:
    wanted, class_name = option.wanted, option.wanted.device_class.name
    number = scene.number(option, seen)
    needs = "asks for all devices" if wanted.is_all else f"needs {_devices(number)}"
    if found is None:
        cause = "cannot be met: more than 32 devices" if number > RESULTS_MAX else "cannot be met"
        return f"{needs}: {cause}", cause
    here = [each for each in seen if each.kind not in (VerdictKind.OTHER_NODE, VerdictKind.BINDING_CONDITIONS)]
    of_class = len(here) - _count(here, VerdictKind.CLASS_SELECTOR)
    matching = of_class - _count(here, VerdictKind.SELECTOR_ERROR, VerdictKind.REQUEST_SELECTOR)
    because = f": {detail}" if detail else ""
    match found.at:
        case None:
            broken = "; ".join(f"pool {pool.name} {pool.problem}" for pool in scene.layout.pools if pool.problem)
            if broken:
                kinds = {"being updated" if p.is_incomplete else "invalid" for p in scene.layout.pools if p.problem}
                return f"{needs}: {broken}", f"finds only pools that are {' or '.join(sorted(kinds))}"
            if not here:
                return f"{needs}, the node has none", "finds no devices on the node"
            return f"{needs}, the node has {len(here)}", "needs more devices than the node has"
        case VerdictKind.CLASS_SELECTOR:
            some = f"{of_class} of {len(here)} devices {_are(of_class)} of class {class_name}"
            few = "no device" if not of_class else "too few devices"
            return f"{needs}, {some}{because}", f"finds {few} of class {class_name}"
        case VerdictKind.SELECTOR_ERROR:
            failing = _count(here, VerdictKind.SELECTOR_ERROR)
            text = f"a selector fails on {failing} of {_devices(len(here))}{because}"
            return f"{needs}, {text}", f"has a selector that fails{because}"
        case VerdictKind.REQUEST_SELECTOR:
            some = f"{matching} of {of_class} of class {class_name} match{'es' * (matching == 1)} its selectors"
            return (
                f"{needs}, {some}{because}",
                f"finds {'no' if not matching else 'too few'} devices that match {_selectors(option)}",
            )
        case _:
            free = _count(here, VerdictKind.FREE)
            taken = [f"{count} {text}" for kind, text in _STAGES[3:] if (count := _count(here, kind))]
            why = " or ".join(text for kind, text in _STAGES[3:] if _count(here, kind))
            text = f"{needs}, {free} {_are(free)} free of {matching} that match{'es' * (matching == 1)} ({', '.join(taken)})"
            return text, f"finds {'no' if not free else 'too few'} free devices ({why})"


def _selectors(option: Option) -> str:
    expressions = option.wanted.selectors.of_request
    if len(expressions) != 1:
        return "its selectors"
    text = " ".join(expressions[0].split())
    return text if len(text) <= _EXPRESSION_MAX else f"{text[: _EXPRESSION_MAX - 1]}…"


# Several requests


def _constrained(scene: Scene, requests: Sequence[Wish], constraints: Sequence[DeviceConstraint]) -> tuple[str, str]:
    who = _names(scene, requests)
    short = _join([wish.text for wish in requests])
    texts, causes = [], []
    for constraint in constraints:
        name = constraint.match_attribute or constraint.distinct_attribute or ""
        is_match = constraint.match_attribute is not None
        lacking, values = _values(scene, requests, constraint)
        if lacking:
            texts.append(f"no free device of request {lacking} has attribute {name}")
            causes.append(f"no device of request {lacking} has attribute {name}")
        elif is_match:
            have = "; ".join(f"{request}: {value_text(found)}" for request, found in values.items())
            texts.append(f"have no attribute {name} in common on enough free devices ({have})")
            causes.append(f"have no attribute {name} in common")
        else:
            found = frozenset(value for each in values.values() for value in each)
            texts.append(f"must differ in attribute {name}, of which free devices have {value_text(found)}")
            causes.append(f"cannot differ in attribute {name}")
    if len(texts) == 1 and texts[0].startswith("no "):
        return f"{who}: {texts[0]}", f"{short}: {causes[0]}"
    return f"{who} {' and '.join(texts)}", f"{short} {' and '.join(causes)}"


def _values(
    scene: Scene, requests: Sequence[Wish], constraint: DeviceConstraint
) -> tuple[str, dict[str, frozenset[tuple[str, object]]]]:
    """The request of which no free device has the attribute; else the values for each request."""
    values: dict[str, frozenset[tuple[str, object]]] = {}
    for wish in requests:
        for option, seen in scene.seen[wish.claim, wish.index]:
            if covers(constraint, option):
                free = (each.entry for each in seen if each.kind is VerdictKind.FREE)
                found = frozenset(value for entry in free for value in values_of(scene, constraint, entry) or ())
                values[option.wanted.full_name] = found
    return next((name for name, found in values.items() if not found), ""), values


def _together(scene: Scene, requests: Sequence[Wish]) -> tuple[str, str]:
    who, short = _names(scene, requests), _join([wish.text for wish in requests])
    free: dict[DeviceEntry, None] = {}
    needed = 0
    for wish in requests:
        options = scene.seen[wish.claim, wish.index]
        needed += min(scene.number(option, seen) for option, seen in options)
        for _, seen in options:
            free.update(dict.fromkeys(each.entry for each in seen if each.kind is VerdictKind.FREE))
    for claim in {wish.claim for wish in requests}:
        if sum(_least(scene, wish) for wish in requests if wish.claim == claim) > RESULTS_MAX:
            text = f"together ask for more than {RESULTS_MAX} devices, the limit of a claim"
            return f"{who} {text}", f"{short} {text}"
    if needed > len(free) and not any(entry.shareable for entry in free):
        text = f"need {_devices(needed)} together, {len(free)} {_are(len(free))} free that match any of them"
        return f"{who} {text}", f"{short} together need more devices than are free"
    if any(entry.counters for entry in free):
        text = "can be met one by one but not together: their devices take from the same counters"
    elif any(entry.shareable for entry in free):
        text = "can be met one by one but not together: there is not enough capacity for all"
    else:
        text = "can be met one by one but not together: they need the same devices"
    return f"{who} {text}", f"{short} {text}"


def _least(scene: Scene, wish: Wish) -> int:
    return min(scene.number(option, seen) for option, seen in scene.seen[wish.claim, wish.index])


def _names(scene: Scene, requests: Sequence[Wish]) -> str:
    return _join([f"{wish.text} ({_devices(_least(scene, wish))})" for wish in requests])


def _join(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else "".join(names)


def _devices(number: int) -> str:
    return "1 device" if number == 1 else f"{number} devices"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
