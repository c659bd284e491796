from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.checker import Checked, check
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.evaluate import evaluate
from devlet.cel.generate import Generated, generate, generate_filter
from devlet.cel.parser import parse
from devlet.cel.plan import Plan, plan
from devlet.cel.types import BOOL, DYN, QUANTITY, STRING, map_of, object_type
from devlet.cel.values import CelError, Optional
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import Semver
from devlet.objects.values.semver import parse as version

D = "gpu.example.com"


class Domains(dict[str, dict[str, Any]]):
    def __missing__(self, _: str) -> dict[str, Any]:
        return {}


class Device:
    def __init__(self, attributes: dict[str, Any], capacity: dict[str, str], driver: str = D) -> None:
        self.driver = driver
        self.attributes = Domains({driver: attributes} if attributes else {})
        self.capacity = Domains({driver: {name: Quantity.parse(text) for name, text in capacity.items()}})
        self.allow_multiple_allocations = len(attributes) > 3


DEVICES = [
    Device(
        {"model": "a100", "index": 3, "mig": True, "version": version("1.3.0"), "tags": ["a", "b"]}, {"memory": "40Gi"}
    ),
    Device(
        {"model": "h100", "index": 0, "mig": False, "version": version("1.1.0-rc.1"), "tags": []}, {"memory": "80Gi"}
    ),
    Device({"model": 7, "index": "3", "mig": "yes", "version": "1.2.3", "tags": (1, 2)}, {"memory": "1", "cores": "8"}),
    Device({"model": version("1.0.0"), "index": True, "mig": 1, "version": 2, "tags": "a"}, {}),
    Device({"index": 2**63 - 1, "mig": False}, {"cores": "100m"}, "other.example.com"),
    Device({}, {}, "nic.example.com"),
]


def environment() -> Environment:
    fields = {
        "driver": ObjectField(STRING, "driver"),
        "attributes": ObjectField(map_of(STRING, map_of(STRING, DYN)), "attributes"),
        "capacity": ObjectField(map_of(STRING, map_of(STRING, QUANTITY)), "capacity"),
        "allowMultipleAllocations": ObjectField(BOOL, "allow_multiple_allocations"),
    }
    return kubernetes((1, 36), stored=True).extended(
        variables={"device": object_type("kubernetes.DRADevice")},
        objects={"kubernetes.DRADevice": fields},
        libraries=[BINDINGS],
    )


class Bench:
    """Compiles expressions over `device` and runs them on all devices."""

    devices = DEVICES
    environment = environment()

    def compiled(self, text: str) -> tuple[Checked, Plan]:
        checked = check(parse(text, self.environment.macros), self.environment)
        return checked, plan(checked)

    def filter(self, text: str) -> Generated:
        return generate_filter(*self.compiled(text))

    def source(self, text: str) -> str:
        return self.filter(text).source

    def check(self, text: str) -> list[Any]:
        """The results for all devices, after comparing them with what `evaluate` says."""
        checked, planned = self.compiled(text)
        function = generate(checked, planned)
        results: list[Any] = generate_filter(checked, planned)(self.devices)
        for device, result in zip(self.devices, results, strict=True):
            found = evaluate(planned, {"device": device}, cost_limit=2**63)
            expected = shown(found.error or found.value)
            assert shown(result) == expected, text
            assert shown(_run(function, [device] if function.variables else [])) == expected, text
        return results


def _run(function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return function(*arguments)
    except CelError as e:
        return e


def shown(value: Any) -> Any:
    """Something that is equal only if the values are the same in every respect, NaN included."""
    match value:
        case CelError():
            return type(value), value.message, value.node
        case list() | tuple():
            return list, [shown(element) for element in value]
        case dict():
            return dict, [(shown(key), shown(element)) for key, element in value.items()]
        case Optional():
            return Optional, value.has_value and shown(value.value), value.has_value
        case Device() | Semver() | Quantity():
            return type(value), repr(value)
        case _:
            return type(value), repr(value)


@pytest.fixture(scope="session")
def bench() -> Bench:
    return Bench()
