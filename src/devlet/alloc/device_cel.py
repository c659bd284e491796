"""A device as CEL sees it: the variable `device` with driver, attributes, capacity and allowMultipleAllocations.

Names without a domain belong to the driver's domain. An unknown domain is an empty map; looking up an unknown name in
it is an error.
"""

from functools import lru_cache
from sys import intern
from typing import Any, Final

from devlet.cel import amounts
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.functions import Range
from devlet.cel.library import includes, semver
from devlet.cel.types import ANY, BOOL, DYN, STRING, Type, map_of, object_type
from devlet.cel.values import CelError
from devlet.errors import InvalidInput
from devlet.objects.types.slice import Device, DeviceAttribute
from devlet.objects.values.semver import parse as parse_version

__all__ = ["DeviceInput", "device_environment"]

QUANTITY: Final = object_type("kubernetes.Quantity")
DEVICE: Final = object_type("kubernetes.DRADevice")
RELEASE: Final = (1, 36)
FIRST_RELEASE: Final = (1, 31)
SHARES_SINCE: Final = 34
LISTS_SINCE: Final = 36

# Limits set by validation: lengths of domains, names and attributes, entries of a map, values of a list.
DOMAIN_MAX: Final = 63
ID_MAX: Final = 32
ATTRIBUTE_MAX: Final = 64
ENTRIES_MAX: Final = 32
VALUES_MAX: Final = 48


class _Domains(dict[str, dict[str, Any]]):
    """A device's maps by domain. Any domain can be looked up, but only the existing ones are listed."""

    __slots__ = ()

    def __missing__(self, _domain: str) -> dict[str, Any]:
        return {}


class DeviceInput:
    """The value of `device`. If `problem` is set, the device cannot be passed to any expression."""

    __slots__ = ("allow_multiple_allocations", "attributes", "capacity", "driver", "list_problem", "problem")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.allow_multiple_allocations = bool(device.allow_multiple_allocations)
        self.attributes = _Domains()
        self.capacity = _Domains()
        self.problem: CelError | None = None
        self.list_problem: CelError | None = None
        try:
            self._fill(device)
        except CelError as e:
            self.problem = e

    def _fill(self, device: Device) -> None:
        for name, attribute in device.attributes.items():
            value = _value(name, attribute)
            if type(value) is tuple:
                self.list_problem = CelError(f"attribute {name}: unsupported attribute value")
            self._put(self.attributes, name, value)
        for name, capacity in device.capacity.items():
            self._put(self.capacity, name, amounts.read(str(capacity.value)))

    def _put(self, domains: _Domains, name: str, value: Any) -> None:
        """Add a value. If a name of the driver's domain is spelled with and without it, the spelling with the domain
        wins."""
        domain, id = split(name, self.driver)
        values = domains.setdefault(domain, {})
        if "/" in name:
            values[id] = value
        else:
            values.setdefault(id, value)

    def problem_with(self, lists: bool) -> CelError | None:
        """Return why the device cannot be passed to an expression. Lists are such a problem while their gate is off."""
        return self.problem or (None if lists else self.list_problem)


def split(name: str, driver: str) -> tuple[str, str]:
    """Return domain and name of a qualified name. There are few names, so all devices share the strings."""
    domain, slash, id = name.partition("/")
    return (intern(domain), intern(id)) if slash else (driver, intern(name))


def _value(name: str, attribute: DeviceAttribute) -> Any:
    try:
        if attribute.ints or attribute.bools or attribute.strings:
            return attribute.ints or attribute.bools or attribute.strings
        if attribute.versions:
            return tuple(parse_version(version) for version in attribute.versions)
        for value in (attribute.int_, attribute.bool_, attribute.string):
            if value is not None:
                return value
        if attribute.version is not None:
            return parse_version(attribute.version)
    except InvalidInput as e:
        raise CelError(f"attribute {name}: parse semantic version: {e}") from e
    raise CelError(f"attribute {name}: unsupported attribute value")


@lru_cache(64)
def device_environment(
    version: tuple[int, int] = RELEASE, *, stored: bool = True, shares: bool = True, lists: bool = True
) -> Environment:
    """Return the environment of selectors in a release. `shares` and `lists` are the gates of consumable capacity and
    of list attributes.

    Stored expressions may use everything that the release has. New expressions must also compile in the previous
    release, or a downgrade would break them; only features behind an enabled gate are available at once.
    """
    minor = version[1]
    lists_known = minor >= LISTS_SINCE and (stored or lists)
    base = kubernetes((1, minor if stored else minor - 1), stored=False)
    libraries = [BINDINGS] if "semver" in base.functions else [BINDINGS, semver.VERSION_0]
    return base.extended(
        variables={"device": DEVICE},
        objects={DEVICE.name: _fields(minor >= SHARES_SINCE and (stored or shares), minor >= LISTS_SINCE and lists)},
        libraries=[*libraries, includes.LIBRARY] if lists_known else libraries,
        sizes=_sizes,
    )


def _fields(shares: bool, lists: bool) -> dict[str, ObjectField]:
    fields = {
        "driver": ObjectField(STRING, "driver"),
        "attributes": ObjectField(map_of(STRING, map_of(STRING, DYN if lists else ANY)), "attributes"),
        "capacity": ObjectField(map_of(STRING, map_of(STRING, QUANTITY)), "capacity"),
    }
    return fields | ({"allowMultipleAllocations": ObjectField(BOOL, "allow_multiple_allocations")} if shares else {})


# By the steps of a path. The empty step is the size of the value itself; "*" stands for any attribute name.
_ATTRIBUTES: Final[dict[str, Any]] = {
    "": ENTRIES_MAX,
    "@keys": {"": DOMAIN_MAX},
    "@values": {"": ENTRIES_MAX, "@keys": {"": ID_MAX}, "@values": {"": ATTRIBUTE_MAX}, "*": {"": ATTRIBUTE_MAX}},
}
_CAPACITY: Final[dict[str, Any]] = {
    "": ENTRIES_MAX,
    "@keys": {"": DOMAIN_MAX},
    "@values": {"": ENTRIES_MAX, "@keys": {"": ID_MAX}, "@values": {"": 0}},
}
_DEVICE: Final[dict[str, Any]] = {
    "": 0,
    "driver": {"": DOMAIN_MAX},
    "allowMultipleAllocations": {"": 1},
    "attributes": _ATTRIBUTES,
    "capacity": _CAPACITY,
}


def _sizes(path: tuple[str, ...]) -> Range | None:
    node: dict[str, Any] | None = {"device": _DEVICE}
    for step in path:
        key = "@values" if step == "@items" else step
        node = node.get(key) or (None if step[:1] == "@" else node.get("*")) if node else None
    return Range(0, node[""]) if node else None


def result_types(lists: bool) -> frozenset[Type]:
    """Return the types that a selector may evaluate to, as far as they are known statically."""
    return frozenset({BOOL, ANY, DYN} if lists else {BOOL, ANY})
