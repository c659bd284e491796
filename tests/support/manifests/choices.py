"""What a scheduler was free to choose: `gpu-{a}` in a file of expectations stands for any GPU.

The same letter is the same text everywhere in the file, and different letters are different texts: with
`gpu-{a}` and `gpu-{b}` in a claim, `GPU_{a}` in the environment of a container is that of the first of two devices.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Choices"]

_PLACE = re.compile(r"\{([a-z])\}|\{uid:([^}]+)\}")
_ANY = r"([A-Za-z0-9-]+?)"


@dataclass(frozen=True, slots=True)
class Choices:
    """`uids` are those of claims, for `{uid:NAME}`."""

    letters: dict[str, str] = field(default_factory=dict)
    uids: Mapping[str, str] = field(default_factory=dict)

    def with_uids(self, uids: Mapping[str, str]) -> "Choices":
        """The same letters, which may be added to without a change of these."""
        return Choices(dict(self.letters), uids)

    def fill(self, text: str) -> str:
        """With everything that is known put in its place."""
        return _PLACE.sub(lambda place: self._known(place) or place.group(), text)

    def takes(self, pattern: str, text: str) -> bool:
        """Whether the text is what the pattern means; if so, its new letters stand for what was found."""
        found = re.fullmatch(self._expression(pattern), text)
        if not found:
            return False
        new = found.groupdict()
        taken = [*self.letters.values(), *new.values()]
        if len(set(taken)) < len(taken):
            return False
        self.letters.update(new)
        return True

    def _expression(self, pattern: str) -> str:
        filled, seen, parts, end = self.fill(pattern), set[str](), list[str](), 0
        for place in _PLACE.finditer(filled):
            parts.append(re.escape(filled[end : place.start()]))
            parts.append(_unknown(place, seen))
            end = place.end()
        return "".join([*parts, re.escape(filled[end:])])

    def _known(self, place: re.Match[str]) -> str | None:
        letter, claim = place.groups()
        return self.letters.get(letter) if letter else self.uids.get(claim)


def _unknown(place: re.Match[str], seen: set[str]) -> str:
    letter = place.group(1)
    if not letter:
        return re.escape(place.group())
    if letter in seen:
        return f"(?P={letter})"
    seen.add(letter)
    return _ANY.replace("(", f"(?P<{letter}>", 1)
