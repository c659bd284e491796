"""Parses the message of a waiting pod, to compare its numbers and causes with the truth. Pure.

    0/2 nodes are available: 1 Insufficient cpu; 1 node(s): request gpu needs 9 devices, the node has 8

Only texts are known here. What is on a node was counted by somebody else (`Option`), and a text of a form that is not
known is not true. If several nodes have the same cause it is given without numbers; both forms are parsed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from re import Match
from typing import Final

from tests.support.allocation.supply import DeviceKey

__all__ = ["DEVICES", "Option", "Requests", "Summary", "is_true", "read"]

DEVICES: Final = "node(s): "  # what comes then is about devices

_REQUEST: Final = r"(?:claim \S+, )?request [^\s:,]+"


@dataclass(frozen=True, slots=True)
class Summary:
    """`causes` are counted by nodes."""

    nodes: int
    causes: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Option:
    """What a request, or one of its alternatives, wants of a node and finds there. `selectors` are its own;
    `is_false` says whether an expression is false for a device that they keep away."""

    number: int
    class_name: str
    selectors: tuple[str, ...]
    here: int
    of_class: int
    matching: frozenset[DeviceKey]
    free: frozenset[DeviceKey]
    is_false: Callable[[str], bool]

    @property
    def is_selected(self) -> bool:
        """There are enough devices that match, free or not."""
        return self.number <= len(self.matching)


Options = Mapping[str, Option]
"""By the names of alternatives; a request without has one, without a name."""

Requests = Mapping[str, Options]
"""By what they are called in texts: `request gpu`, or `claim default/c, request gpu` where there are several claims."""

Fits = Callable[[Sequence[str]], bool]
"""Whether these requests can be met at once."""


def read(text: str) -> Summary | None:
    """None if it is none."""
    found = re.fullmatch(r"0/(\d+) nodes are available: (.+)", text)
    if found is None:
        return None
    parts = re.split(r"; (?=\d+ (?:node\(s\)|the devices of|Insufficient|Too many))", found[2])
    counted = [re.fullmatch(r"(\d+) (.+)", part) for part in parts]
    if not all(counted):
        return None
    return Summary(int(found[1]), tuple((int(each[1]), each[2]) for each in counted if each))


def is_true(sentence: str, requests: Requests, fits: Fits) -> bool:
    """Whether the sentence is right about a node where the requests find that."""
    if found := re.fullmatch(rf"({_REQUEST}): none of its alternatives: (.+)", sentence):
        return _alternatives(found[2], requests.get(found[1], {}))
    if found := re.fullmatch(rf"({_REQUEST}) (.+)", sentence):
        options = requests.get(found[1], {})
        if list(options) == [""] and _is_true_of(options[""], found[2]):
            return True
    return any(check(found, requests, fits) for form, check in _OF_SEVERAL if (found := re.fullmatch(form, sentence)))


# One request


def _alternatives(text: str, options: Options) -> bool:
    """All of them, in their order."""
    stated = [each.partition(" ")[::2] for each in text.split("; ")]
    return [name for name, _ in stated] == list(options) and all(_is_true_of(options[name], of) for name, of in stated)


def _is_true_of(option: Option, text: str) -> bool:
    if found := re.fullmatch(r"needs (\d+) devices?, (.+)", text):
        if int(found[1]) != option.number:
            return False
        text = found[2]
    return any(check(found, option) for form, check in _OF_ONE if (found := re.fullmatch(form, text)))


def _none_free(found: Match[str], option: Option) -> bool:
    free, matching = len(option.free), len(option.matching)
    return tuple(map(int, found.groups())) == (free, matching, matching - free) and _is_in_use(option)


def _is_in_use(option: Option) -> bool:
    return option.is_selected and len(option.free) < option.number


def _none_here(found: Match[str], option: Option) -> bool:
    return int(found[1].replace("none", "0")) == option.here < option.number


def _none_match(found: Match[str], option: Option) -> bool:
    numbers = (int(found[1]), int(found[2]), found[3])
    if numbers != (len(option.matching), option.of_class, option.class_name):
        return False
    return _is_unmatched(option) and (found[4] is None or option.is_false(found[4]))


def _is_unmatched(option: Option) -> bool:
    return not option.is_selected and option.number <= option.of_class


def _are(count: int) -> str:
    return "too few" if count else "no"


_OF_ONE: Final[Sequence[tuple[str, Callable[[Match[str], Option], bool]]]] = (
    (r"(\d+) (?:is|are) free of (\d+) that match(?:es)? \((\d+) in use\)", _none_free),
    (r"the node has (\d+|none)", _none_here),
    (r"(\d+) of (\d+) of class (\S+) match(?:es)? its selectors(?:: (.+) is false \(.+\))?", _none_match),
    # The same of several nodes.
    (
        r"finds (no|too few) free devices \(in use\)",
        lambda found, option: found[1] == _are(len(option.free)) and _is_in_use(option),
    ),
    (r"needs more devices than the node has", lambda _, option: 0 < option.here < option.number),
    (r"finds no devices on the node", lambda _, option: option.here == 0),
    (
        r"finds (no|too few) devices that match (.+)",
        lambda found, option: (
            found[1] == _are(len(option.matching))
            and found[2] in ("its selectors", *option.selectors)
            and _is_unmatched(option)
        ),
    ),
)

# Several requests

_NAMED: Final = rf"({_REQUEST})(?: \((\d+) devices?\))?"


def _named(text: str, requests: Requests) -> list[str] | None:
    """The requests in a list of them; None if one is not there, or wants another number."""
    found = re.findall(_NAMED, text)
    if not re.fullmatch(r"(?:, | and )*", re.sub(_NAMED, "", text)):
        return None
    known = all(name in requests and number in ("", str(_least(requests[name]))) for name, number in found)
    return [name for name, _ in found] if known else None


def _least(options: Options) -> int:
    return min(option.number for option in options.values())


def _shortage(names: Sequence[str], requests: Requests) -> tuple[int, int]:
    """How many devices they need at least, and how many are free that one of them could have."""
    free = {device for name in names for option in requests[name].values() for device in option.free}
    return sum(_least(requests[name]) for name in names), len(free)


def _too_few(found: Match[str], requests: Requests, _: Fits) -> bool:
    names = _named(found[1], requests)
    if not names:
        return False
    needed, free = _shortage(names, requests)
    return needed > free and tuple(map(int, found.groups()[1:])) in ((), (needed, free))


def _one_by_one(found: Match[str], requests: Requests, fits: Fits) -> bool:
    names = _named(found[1], requests)
    return bool(names) and all(fits([name]) for name in names or ()) and not fits(names or ())


_OF_SEVERAL: Final[Sequence[tuple[str, Callable[[Match[str], Requests, Fits], bool]]]] = (
    (r"(.+) need (\d+) devices together, but only (\d+) (?:is|are) free and match any of them", _too_few),
    (r"(.+) together need more devices than are free", _too_few),
    (r"(.+) can be satisfied separately but not together: they need the same devices", _one_by_one),
)
