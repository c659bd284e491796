"""A conflict in one sentence, from what is known about the devices of the node.

Each sentence has a second version without numbers and device values, which is used to count nodes by cause.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from devlet.alloc.explain.agreement import covers, value_text, values_of
from devlet.alloc.explain.conflict import Wish
from devlet.alloc.explain.overdraft import (
    CapacityOverdraft,
    CounterOverdraft,
    capacity_overdraft,
    counter_overdraft,
)
from devlet.alloc.explain.report import VerdictKind
from devlet.alloc.explain.standing import Option, Scene, Seen
from devlet.alloc.explain.verdicts import amount_text
from devlet.alloc.inventory import DeviceEntry
from devlet.alloc.pools import Pool
from devlet.alloc.requests import RESULTS_MAX
from devlet.objects.types.claim import DeviceConstraint

__all__ = ["Blocked", "blocked", "conflict_sentence", "distance"]

_EXPRESSION_MAX = 160
_DEVICES_MAX = 4

# What remains after each question, in the order in which the questions are asked.
_STAGES = (
    (VerdictKind.CLASS_SELECTOR, "are of class"),
    (VerdictKind.SELECTOR_ERROR, "can be evaluated"),
    (VerdictKind.REQUEST_SELECTOR, "match"),
    (VerdictKind.IN_USE, "in use"),
    (VerdictKind.TAINT, "tainted"),
    (VerdictKind.CAPACITY, "without enough capacity"),
    (VerdictKind.COUNTERS, "without enough counters"),
)
_SELECTION = tuple(kind for kind, _ in _STAGES[:3])


@dataclass(frozen=True, slots=True)
class Blocked:
    """An option with too few devices left. `after` is the question after which they are too few; None means from the
    start."""

    option: Option
    seen: Sequence[Seen]
    number: int
    at: VerdictKind | None


def blocked(scene: Scene, option: Option, seen: Sequence[Seen]) -> Blocked | None:
    """Return why the option is impossible even if it were alone and without constraints."""
    wanted = scene.number(option, seen)
    number = max(wanted, 1) if option.wanted.is_all else wanted
    counts = Counter(each.kind for each in seen)
    if option.wanted.is_all and wanted:
        del counts[VerdictKind.CAPACITY]
    left = sum(counts.values()) - counts[VerdictKind.OTHER_NODE] - counts[VerdictKind.BINDING_CONDITIONS]
    if left < number:
        return Blocked(option, seen, number, None)
    for kind, _ in _STAGES:
        left -= counts[kind]
        if left < number:
            return Blocked(option, seen, number, kind)
    return None


def distance(scene: Scene) -> tuple[int, int]:
    """Return how far the node is from fitting: the first question that fails (earlier is farther), and the number of
    missing devices."""
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
    """Return the sentence and its cause. `detail`, the false part of a selector, is added if devices do not match."""
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
    if len(texts) == 1:
        return f"{wish.text} {texts[0][0]}", f"{wish.text} {texts[0][1]}"
    names = [option.wanted.name for option, _ in options]
    lists = ("; ".join(f"{n} {text[i]}" for n, text in zip(names, texts, strict=True)) for i in (0, 1))
    sentence, cause = (f"{wish.text}: none of its alternatives: {each}" for each in lists)
    return sentence, cause


def _option(scene: Scene, option: Option, seen: Sequence[Seen], found: Blocked | None, detail: str) -> tuple[str, str]:
    """Describe what an option needs and what it finds; also return the cause."""
    here = [each for each in seen if each.kind not in (VerdictKind.OTHER_NODE, VerdictKind.BINDING_CONDITIONS)]
    number = scene.number(option, seen)
    needs = "asks for all devices" if option.wanted.is_all else f"needs {_devices(number)}"
    matching = len(here) - _count(here, *(kind for kind, _ in _STAGES[:3]))
    broken = _broken(scene, option) if option.wanted.is_all or matching < number else []
    if broken:
        text, cause = _waiting(broken)
    elif found is None:
        text, cause = _overdrawn(scene, option, seen, number)
    elif found.at is None:
        text = f"the node has {len(here) or 'none'}"
        cause = "needs more devices than the node has" if here else "finds no devices on the node"
    elif found.at in _SELECTION:
        text, cause = _unmatched(option, here, found.at, f": {detail}" if detail else "")
    else:
        text, cause = _not_free(here, matching)
    return f"{needs}, {text}", cause


def _overdrawn(scene: Scene, option: Option, seen: Sequence[Seen], number: int) -> tuple[str, str]:
    """Describe options that have enough free devices individually, but overdraw a counter."""
    if number > RESULTS_MAX:
        text = f"cannot be satisfied: more than {RESULTS_MAX} devices"
        return text, text
    found = counter_overdraft(scene, [[(option, seen)]])
    free = _count(seen, VerdictKind.FREE)
    if found is None:
        return _not_together(seen, free)
    they = "together they take" if found.is_forced else f"any {number} of them take at least"
    cause = f"finds enough free devices, but together they need more of counter {found.name} than is left"
    return f"{free} {_are(free)} free, but {they} {_counter(found)}", cause


def _not_together(seen: Sequence[Seen], free: int) -> tuple[str, str]:
    """Describe devices that are unavailable together although no single counter is the reason."""
    entries = [each.entry for each in seen if each.kind is VerdictKind.FREE]
    counters = sorted({f"{set}/{name}" for entry in entries for (set, name), _ in entry.counters})
    if not counters:
        return "cannot be satisfied", "cannot be satisfied"
    why = f"cannot be used together: they take from counter{'s' * (len(counters) > 1)} {_join(counters)}"
    return f"{free} {_are(free)} free, but {why}", f"finds enough free devices, but they {why}"


def _counter(found: CounterOverdraft) -> str:
    return f"{amount_text(found.needed)} of counter {found.name}, of which {amount_text(found.left)} is left"


def _waiting(broken: Sequence[Pool]) -> tuple[str, str]:
    kinds = sorted({"being updated" if pool.is_incomplete else "invalid" for pool in broken})
    text = "; ".join(f"pool {pool.name} {pool.problem}" for pool in broken)
    return f"but {text}", f"would need devices of a pool that is {' or '.join(kinds)}"


def _unmatched(option: Option, here: Sequence[Seen], at: VerdictKind, because: str) -> tuple[str, str]:
    name = option.wanted.device_class.name
    of_class = len(here) - _count(here, VerdictKind.CLASS_SELECTOR)
    failing = _count(here, VerdictKind.SELECTOR_ERROR)
    if at is VerdictKind.CLASS_SELECTOR:
        text = f"{of_class} of {_devices(len(here))} {_are(of_class)} of class {name}{because}"
        return text, f"finds {'too few devices' if of_class else 'no device'} of class {name}"
    if at is VerdictKind.SELECTOR_ERROR:
        return f"a selector fails on {failing} of {_devices(len(here))}{because}", f"has a selector that fails{because}"
    matching = of_class - failing - _count(here, VerdictKind.REQUEST_SELECTOR)
    text = f"{matching} of {of_class} of class {name} match{'es' * (matching == 1)} its selectors{because}"
    return text, f"finds {'too few' if matching else 'no'} devices that match {_selectors(option)}"


def _not_free(here: Sequence[Seen], matching: int) -> tuple[str, str]:
    free = _count(here, VerdictKind.FREE)
    reasons = [(text, count) for kind, text in _STAGES[3:] if (count := _count(here, kind))]
    why = ", ".join(f"{count} {text}" for text, count in reasons)
    text = f"{free} {_are(free)} free of {matching} that match{'es' * (matching == 1)} ({why})"
    return text, f"finds {'too few' if free else 'no'} free devices ({' or '.join(text for text, _ in reasons)})"


def _broken(scene: Scene, option: Option) -> list[Pool]:
    """Return unusable pools that have matching devices, as far as they are known."""
    inventory, selectors = scene.allocator.inventory, scene.allocator.selectors
    return [
        pool
        for pool in scene.layout.pools
        if pool.problem
        and any(selectors.match(entry, option.wanted.selectors).matching for entry in inventory.slices_of(pool.key))
    ]


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
            they = "has" if len(requests) == 1 else "have"
            texts.append(f"{they} no attribute {name} in common on enough free devices ({have})")
            causes.append(f"{they} no attribute {name} in common")
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
    """Return the request whose free devices all lack the attribute; otherwise the values for each request."""
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
        text = f"need {_devices(needed)} together, but only {len(free)} {_are(len(free))} free and match any of them"
        return f"{who} {text}", f"{short} together need more devices than are free"
    every = [scene.seen[wish.claim, wish.index] for wish in requests]
    if counter := counter_overdraft(scene, every):
        least = "" if counter.is_forced else "at least "
        cause = f"{short} together need more of counter {counter.name} than is left"
        return f"{who} together take {least}{_counter(counter)}", cause
    if capacity := capacity_overdraft(scene, every):
        return f"{_requests(requests)} {_capacity(capacity)}", _capacity_cause(requests, capacity)
    shared = ["devices"]
    shared += ["counters"] if any(entry.counters for entry in free) else []
    shared += ["capacity"] if any(entry.shareable for entry in free) else []
    text = f"can be satisfied separately but not together: they need the same {' or '.join(shared)}"
    return f"{who} {text}", f"{short} {text}"


def _capacity(found: CapacityOverdraft) -> str:
    if len(found.left) == 1:
        ((device, left),) = found.left
        return f"together need {found.total} of {found.name} of device {device}, of which {left} is left"
    have = ", ".join(f"{device} {left}" for device, left in found.left[:_DEVICES_MAX])
    have += f" and {len(found.left) - _DEVICES_MAX} more" * (len(found.left) > _DEVICES_MAX)
    if found.total > found.total_left:
        return f"together need {found.total} of {found.name}, of which {found.total_left} is left ({have})"
    each = _join(list(map(str, found.needed)))
    return f"need {each} of {found.name}, more than fits into what the devices have left ({have})"


def _capacity_cause(requests: Sequence[Wish], found: CapacityOverdraft) -> str:
    return f"{_requests(requests)} together need more {found.name} of shared devices than is left"


def _requests(requests: Sequence[Wish]) -> str:
    """Join the names, such as `requests a and b`."""
    names = [wish.text.removeprefix("request ") for wish in requests]
    is_plain = len(names) > 1 and all(wish.text.startswith("request ") for wish in requests)
    return f"requests {_join(names)}" if is_plain else _join([wish.text for wish in requests])


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
