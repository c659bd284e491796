"""Hypothesis strategies for the parts of API objects: names, labels, quantities, versions.

Everything shrinks to a short and readable value: names to single letters, quantities to 0. Some values are long, at the
limits of the API.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

__all__ = [
    "annotations",
    "device_identifiers",
    "dns_labels",
    "dns_subdomains",
    "driver_names",
    "label_keys",
    "label_values",
    "labels",
    "optional",
    "pool_names",
    "qualified_names",
    "quantities",
    "resource_names",
    "texts",
    "versions",
]

DRIVER_NAME_MAX = 63
TEXT_MAX = 16  # characters, of at most four bytes each: attributes have 64 bytes

_LOWER = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_LETTERS = _LOWER + _LOWER.upper()
_CHARACTERS = "aZ09 _-./:'\"\\{}<>&%$#\0\t\n\x7fäß\u00a0\u0301ж漢\u2028\ufffd🙂"
_SUFFIXES = ("", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "m", "e3", "E3")
_WORDS = ("gpu", "nic", "tpu", "usb", "fpga")


# Strategies are cached: creating one takes longer than drawing from it.


def _word(first: str, rest: str, longest: int, strip: str = "") -> SearchStrategy[str]:
    """Generate a character and optional further ones. The last one is not in `strip`."""
    both = st.tuples(st.sampled_from(first), st.text(rest, max_size=longest - 1)).map("".join)
    return both.map(lambda word: word.rstrip(strip)) if strip else both


_SHORT = _word(_LOWER, _LOWER + _DIGITS, 8)


@cache
def dns_labels() -> SearchStrategy[str]:
    """Generate names of devices, requests, containers and namespaces."""
    return st.one_of(_SHORT, _word(_LOWER + _DIGITS, _LOWER + _DIGITS + "-", 63, "-"))


@cache
def dns_subdomains() -> SearchStrategy[str]:
    """Generate names of most objects."""
    return st.one_of(_SHORT, st.lists(dns_labels(), min_size=1, max_size=3).map(".".join))


@cache
def driver_names() -> SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(_WORDS).map(lambda word: f"{word}.example.com"),
        dns_subdomains().map(lambda name: name[:DRIVER_NAME_MAX].rstrip("-.")),
    )


@cache
def pool_names() -> SearchStrategy[str]:
    return st.one_of(dns_subdomains(), st.lists(_SHORT, min_size=2, max_size=4).map("/".join))


@cache
def device_identifiers() -> SearchStrategy[str]:
    """Generate names of attributes and capacities in a driver's own domain."""
    return st.one_of(_word(_LOWER, _LETTERS, 8), _word(_LETTERS + "_", _LETTERS + _DIGITS + "_", 32))


@cache
def qualified_names() -> SearchStrategy[str]:
    """Generate the same names, also in a domain."""
    return st.one_of(device_identifiers(), st.builds("{}/{}".format, driver_names(), device_identifiers()))


@cache
def resource_names() -> SearchStrategy[str]:
    """Generate names of extended resources, as device plugins have them."""
    name = _word(_LOWER, _LOWER + _DIGITS + "-.", 20, "-.")
    return st.builds("{}/{}".format, st.sampled_from(("vendor.com", "example.org", "a.b.c")), name)


@cache
def label_keys() -> SearchStrategy[str]:
    name = _word(_LOWER, _LETTERS + _DIGITS + "-_.", 20, "-_.")
    return st.one_of(name, st.builds("{}.com/{}".format, _SHORT, name))


@cache
def label_values() -> SearchStrategy[str]:
    anything = _word(_LETTERS + _DIGITS, _LETTERS + _DIGITS + "-_.", 63, "-_.")
    return st.one_of(st.just(""), _SHORT, anything)


@cache
def labels() -> SearchStrategy[dict[str, str]]:
    return st.dictionaries(label_keys(), label_values(), max_size=3)


@cache
def annotations() -> SearchStrategy[dict[str, str]]:
    return st.dictionaries(label_keys(), texts(), max_size=3)


@cache
def texts() -> SearchStrategy[str]:
    """Generate strings with characters of one to four bytes, some of which are special elsewhere."""
    return st.one_of(st.just(""), _SHORT, st.text(_CHARACTERS, max_size=TEXT_MAX))


@cache
def quantities(most: int = 1_000) -> SearchStrategy[str]:
    """Generate quantities that are not negative. The number before the suffix is at most `most`."""
    whole = st.builds("{}{}".format, st.integers(0, most), st.sampled_from(_SUFFIXES))
    broken = st.builds("{}.{}{}".format, st.integers(0, most), st.integers(0, 999), st.sampled_from(("", "Gi", "M")))
    return st.one_of(whole, broken)


@cache
def versions() -> SearchStrategy[str]:
    """Generate semantic versions."""
    number = st.integers(0, 99)
    plain = st.builds("{}.{}.{}".format, number, number, number)
    return st.one_of(plain, st.builds("{}-{}+{}".format, plain, _SHORT, _SHORT))


def optional(members: dict[str, SearchStrategy[Any]]) -> SearchStrategy[dict[str, Any]]:
    """Generate documents with some of these fields; the simplest has none."""
    return st.fixed_dictionaries({}, optional=members)
