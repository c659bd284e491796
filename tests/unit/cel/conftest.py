from collections.abc import Callable
from typing import Any

import pytest

from devlet.cel.checker import check
from devlet.cel.environment import BINDINGS, Environment, ObjectField, kubernetes
from devlet.cel.evaluate import Evaluation, evaluate
from devlet.cel.library import includes
from devlet.cel.parser import parse
from devlet.cel.plan import Plan, plan
from devlet.cel.types import ANY, BOOL, DYN, QUANTITY, STRING, map_of, object_type
from devlet.objects.values.quantity import Quantity
from devlet.objects.values.semver import parse as version

DRIVER = "dra.example.com"


class Domains(dict[str, dict[str, Any]]):
    def __missing__(self, _: str) -> dict[str, Any]:
        return {}


class Device:
    """As a host would have it: attributes of Python, named differently from the fields."""

    def __init__(self, attributes: dict[str, dict[str, Any]], capacity: dict[str, dict[str, Any]]) -> None:
        self.driver_name = DRIVER
        self.attributes = Domains(attributes)
        self.capacity = Domains(capacity)
        self.is_shared = True


GPU = Device(
    {
        DRIVER: {
            "name": "gpu-a100",
            "count": 8,
            "healthy": True,
            "version": version("1.2.3"),
            "names": ("fish", "bird", "cat"),
            "numbers": [1, 2, 3],
        },
        "other.example.com": {"model": "abc"},
    },
    {DRIVER: {"memory": Quantity.parse("80Gi")}},
)


def device_environment(*, stored: bool = True, shares: bool = True, lists: bool = True) -> Environment:
    fields = {
        "driver": ObjectField(STRING, "driver_name"),
        "attributes": ObjectField(map_of(STRING, map_of(STRING, DYN if lists else ANY)), "attributes"),
        "capacity": ObjectField(map_of(STRING, map_of(STRING, QUANTITY)), "capacity"),
    }
    if stored or shares:
        fields["allowMultipleAllocations"] = ObjectField(BOOL, "is_shared")
    return kubernetes((1, 35), stored=stored).extended(
        variables={"device": object_type("kubernetes.DRADevice")},
        objects={"kubernetes.DRADevice": fields},
        libraries=[BINDINGS, includes.LIBRARY] if stored or lists else [BINDINGS],
    )


ENVIRONMENT = device_environment()


@pytest.fixture
def gpu() -> Device:
    return GPU


@pytest.fixture
def planned() -> Callable[[str], Plan]:
    """From text to plan; `D` in the text is the domain of the driver."""
    return lambda text: plan(check(parse(text.replace("D.", f'device.attributes["{DRIVER}"].')), ENVIRONMENT))


@pytest.fixture
def run(planned: Callable[[str], Plan]) -> Callable[..., Evaluation]:
    """Evaluates a text with a device that has a bit of everything."""
    return lambda text, **options: evaluate(planned(text), {"device": GPU}, **options)


@pytest.fixture
def answer(run: Callable[..., Evaluation]) -> Callable[[str], tuple[Any, int]]:
    """Value or text of the error, and cost."""

    def answered(text: str) -> tuple[Any, int]:
        evaluation = run(text)
        return (evaluation.error.message if evaluation.error else evaluation.value), evaluation.cost

    return answered
