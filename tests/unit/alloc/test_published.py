from typing import Any

import pytest

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.mentions import Mention
from devlet.alloc.published import Published
from devlet.objects.documents import view
from devlet.objects.types.slice import Device

GPU = {"attributes": {"model": {"string": "a"}, "index": {"int": 1}}, "capacity": {"memory": {"value": "1Gi"}}}
OTHER = {"attributes": {"model": {"int": 1}, "x.example.com/speed": {"int": 1}}}


@pytest.fixture
def published() -> Published:
    documents: list[dict[str, Any]] = [GPU, GPU, OTHER]
    return Published(DeviceInput("gpu.example.com", view(Device, document)) for document in documents)


def asked(name: str, domain: str = "gpu.example.com", kind: str = "attributes") -> Mention:
    return Mention(kind, domain, name, 1)


def test_devices_with_a_name_are_counted(published: Published) -> None:
    assert published.total == 3
    assert published.sentence(asked("model")) == "attribute gpu.example.com/model exists in 3 of 3 devices"
    assert published.sentence(asked("index")) == "attribute gpu.example.com/index exists in 2 of 3 devices"
    assert published.sentence(asked("memory", kind="capacity")).startswith(
        "capacity gpu.example.com/memory exists in 2"
    )
    assert published.sentence(asked("", "x.example.com")) == "domain x.example.com exists in 1 of 3 devices"


def test_types_are_counted(published: Published) -> None:
    assert published.types(asked("model")) == {"string": 2, "int": 1}
    assert published.types(asked("lost")) == {}


@pytest.mark.parametrize(
    ("mention", "guess"),
    [
        (asked("modle"), 'did you mean "model"?'),
        (asked("Model"), 'did you mean "model"?'),
        (
            asked("model", "gpu.exmple.com"),
            'no device has the domain "gpu.exmple.com", did you mean "gpu.example.com"?',
        ),
        (asked("speed"), 'did you mean device.attributes["x.example.com"].speed?'),
        (asked("memory"), 'did you mean device.capacity["gpu.example.com"].memory?'),
        (asked("", "gpu.example.com/model"), 'write device.attributes["gpu.example.com"].model'),
        (asked("zzzz", "nothing.like.it"), ""),
    ],
)
def test_suggestions_name_no_service(published: Published, mention: Mention, guess: str) -> None:
    assert published.guess(mention).endswith(guess)
    assert bool(published.guess(mention)) == bool(guess)
