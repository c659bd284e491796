"""Did you mean?"""

import msgspec

from devlet.alloc.device_cel import DeviceInput
from devlet.alloc.explain.hints import Names, similar, written
from devlet.alloc.explain.parts import Missing
from devlet.objects.types.slice import Device


def names(*devices: dict[str, str]) -> Names:
    documents = [{"name": "d", "attributes": {name: {"string": v} for name, v in each.items()}} for each in devices]
    return Names([DeviceInput("gpu.example.com", msgspec.convert(each, Device)) for each in documents])


def lost(name: str, domain: str = "gpu.example.com", text: str = "") -> Missing:
    return Missing("attributes", domain, name, text or written("attributes", domain, name))


def test_a_name_with_a_typo_is_recognized() -> None:
    published = names({"productName": "x"})
    assert published.hint(lost("productname")) == 'did you mean device.attributes["gpu.example.com"].productName?'
    assert published.hint(lost("prodctName")) == 'did you mean device.attributes["gpu.example.com"].productName?'


def test_a_name_in_another_domain_is_found() -> None:
    published = names({"resource.kubernetes.io/pcieRoot": "x"})
    assert 'device.attributes["resource.kubernetes.io"].pcieRoot' in published.hint(lost("pcieRoot"))


def test_a_domain_with_a_typo_is_recognized() -> None:
    hint = names({"model": "x"}).hint(lost("modle", "gpu.exampel.com"))
    assert hint == 'did you mean device.attributes["gpu.example.com"].model?'


def test_a_name_that_only_some_devices_have_needs_a_test_with_has() -> None:
    published = names({"type": "x"}, {})
    text = 'device.attributes["gpu.example.com"].type'
    assert published.hint(lost("type")) == f"type exists in 1 of 2 devices: test has({text}) first"
    assert published.hint(lost("type", text=f"has({text})")) == "type exists in 1 of 2 devices"


def test_an_unrelated_name_is_reported_as_missing_on_all_devices() -> None:
    assert names({"model": "x"}).hint(lost("zzz")) == "no device has gpu.example.com/zzz"


def test_similar_names_come_in_order() -> None:
    assert similar("gpu.exmaple.com", ["nic.example.com", "gpu.example.com", "other"])[0] == "gpu.example.com"
    assert written("capacity", "d", "a-b") == 'device.capacity["d"]["a-b"]'
