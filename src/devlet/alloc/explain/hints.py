"""Suggestions for a name that no device has: the same name in another domain, or a similar name."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.explain.parts import Missing

__all__ = ["Names", "similar"]

_CUTOFF = 0.6


def similar(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three similar names, the most similar first. Case is ignored."""
    by_lower = {each.lower(): each for each in names}
    return [by_lower[each] for each in get_close_matches(name.lower(), list(by_lower), n=3, cutoff=_CUTOFF)]


class Names:
    """What the devices publish: attributes and capacities with their domains, and the number of devices with each."""

    def __init__(self, inputs: Sequence[DeviceInput]) -> None:
        self.devices = len(inputs)
        self._counts: dict[tuple[str, str, str], int] = {}
        for input in inputs:
            for kind, domains in (("attributes", input.attributes), ("capacity", input.capacity)):
                for domain, values in domains.items():
                    for name in values:
                        self._counts[kind, domain, name] = self._counts.get((kind, domain, name), 0) + 1

    def count(self, missing: Missing) -> int:
        return self._counts.get((missing.kind, missing.domain, missing.name), 0)

    def suggestions(self, missing: Missing) -> list[str]:
        """Return correct spellings, the most likely first."""
        there = list(self._counts)
        found = [each for each in there if each[2] == missing.name and each[:2] != (missing.kind, missing.domain)]
        for domain in (missing.domain, *similar(missing.domain, {each[1] for each in there})):
            names = {each[2]: each for each in there if each[1] == domain and each[0] == missing.kind}
            found += [names[name] for name in similar(missing.name, names)]
        wanted = (missing.kind, missing.domain, missing.name)
        return [written(*each) for each in dict.fromkeys(found) if each != wanted][:3]

    def hint(self, missing: Missing) -> str:
        """Return a one-sentence hint, or an empty string."""
        having = self.count(missing)
        if having:
            is_asked = "?" in missing.text or missing.text.startswith("has(")
            advice = "" if is_asked else f": test has({missing.text}) first"
            return f"{missing.name} exists in {having} of {self.devices} devices{advice}"
        if suggestions := self.suggestions(missing):
            return f"did you mean {' or '.join(suggestions)}?"
        return f"no device has {missing.domain}/{missing.name}"


def written(kind: str, domain: str, name: str) -> str:
    """Return the name as it is written in a selector."""
    field = f".{name}" if name.isidentifier() else f'["{name}"]'
    return f'device.{kind}["{domain}"]{field}'
