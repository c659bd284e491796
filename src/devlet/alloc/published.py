"""What devices publish: how many have an attribute and of which type, and which name a misspelled one probably stands
for."""

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.mentions import Mention
from devlet.cel.types import type_name

__all__ = ["Published"]

Name = tuple[str, str, str]
"""Kind, domain and name; the name is empty for the domain as a whole."""


class Published:
    def __init__(self, devices: Iterable[DeviceInput]) -> None:
        self.total = 0
        self._counts: Counter[Name] = Counter()
        self._types: dict[Name, Counter[str]] = {}
        for device in devices:
            self.total += 1
            self._add("attributes", device.attributes)
            self._add("capacity", device.capacity)

    def _add(self, kind: str, domains: dict[str, dict[str, object]]) -> None:
        for domain, values in domains.items():
            self._counts[kind, domain, ""] += 1
            for name, value in values.items():
                self._counts[kind, domain, name] += 1
                self._types.setdefault((kind, domain, name), Counter())[type_name(value)] += 1

    def count(self, mention: Mention) -> int:
        return self._counts[mention.kind, mention.domain, mention.name]

    def types(self, mention: Mention) -> Counter[str]:
        return self._types.get((mention.kind, mention.domain, mention.name), Counter())

    def sentence(self, mention: Mention) -> str:
        """Describe a mention: `attribute gpu.example.com/modle exists in 0 of 812 devices; did you mean "model"?`"""
        count = self.count(mention)
        guess = "" if count else self.guess(mention)
        devices = "device" if self.total == 1 else "devices"
        return f"{mention.text} exists in {count} of {self.total} {devices}" + (f"; {guess}" if guess else "")

    def guess(self, mention: Mention) -> str:
        """Return a "did you mean" question for a name that no device has; empty if no name is close."""
        domain, slash, name = mention.domain.partition("/")
        if slash and self._counts[mention.kind, domain, name]:
            return f'a key is the domain alone: write device.{mention.kind}["{domain}"].{name}'
        if not self._counts[mention.kind, mention.domain, ""]:
            return self._guess_domain(mention)
        names = [n for k, d, n in self._counts if (k, d) == (mention.kind, mention.domain) and n]
        if close := _closest(mention.name, names):
            return f'did you mean "{close}"?'
        return self._guess_elsewhere(mention)

    def _guess_domain(self, mention: Mention) -> str:
        domains = [d for k, d, n in self._counts if k == mention.kind and not n]
        if close := _closest(mention.domain, domains):
            return f'no device has the domain "{mention.domain}", did you mean "{close}"?'
        return self._guess_elsewhere(mention)

    def _guess_elsewhere(self, mention: Mention) -> str:
        """Look for the same name in another domain, or as a capacity instead of an attribute."""
        for kind, domain, name in sorted(self._counts):
            if name and name == mention.name:
                return f'did you mean device.{kind}["{domain}"].{name}?'
        return ""


def _closest(name: str, names: list[str]) -> str:
    lower = {each.lower(): each for each in sorted(names, reverse=True)}
    found = get_close_matches(name.lower(), sorted(lower), n=1)
    return lower[found[0]] if found else ""
