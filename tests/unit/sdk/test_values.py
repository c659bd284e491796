"""Values that authors write and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.objects.documents import Document, view
from devlet.objects.types.claim import DeviceAllocationConfiguration, DeviceResult, ResourceClaim
from devlet.objects.validation import attributes
from devlet.sdk.slices.resources import wanted
from devlet.sdk.values import Claim, ClaimRef, Device, Grant, PluginDevice, Pool, shortened


def config(color: str, *requests: str) -> DeviceAllocationConfiguration:
    document: Document = {"opaque": {"driver": "led.example.com", "parameters": {"color": color}}}
    return view(DeviceAllocationConfiguration, {**document, "requests": list(requests)})


@pytest.mark.parametrize(
    ("request_name", "colors"),
    [
        ("led", ["all", "led"]),
        ("led/bright", ["all", "led", "bright"]),
        ("led/dim", ["all", "led"]),
        ("lamp", ["all"]),
    ],
)
def test_a_result_has_the_parameters_for_all_for_its_request_and_for_its_alternative(
    request_name: str, colors: list[str]
) -> None:
    result = view(DeviceResult, {"request": request_name, "driver": "led.example.com", "pool": "n1", "device": "red"})
    configs = (config("all"), config("led", "led"), config("bright", "led/bright"))
    claim = Claim(ClaimRef("default", "c", "u-1"), (result,), configs, view(ResourceClaim, {}), {})
    assert [each["color"] for each in claim.configs_for(result)] == colors
    assert claim.uid == "u-1"


class Color(Struct, forbid_unknown_fields=True):
    color: str


def lit(*configs: DeviceAllocationConfiguration) -> tuple[Claim, DeviceResult]:
    result = view(DeviceResult, {"request": "led", "driver": "led.example.com", "pool": "n1", "device": "red"})
    return Claim(ClaimRef("default", "c", "u-1"), (result,), configs, view(ResourceClaim, {}), {}), result


def test_parameters_are_of_the_type_that_the_driver_takes() -> None:
    claim, result = lit(config("dim"), config("bright", "led"), config("other", "lamp"))
    assert claim.parameters_for(result, Color) == [Color("dim"), Color("bright")]
    assert claim.parameters_for(result, dict) == [{"color": "dim"}, {"color": "bright"}]
    assert lit()[0].parameters_for(result, None) == []


def test_parameters_that_the_driver_does_not_take_are_refused_by_the_name_of_their_request() -> None:
    claim, result = lit(config("dim"))
    with pytest.raises(InvalidInput, match=r"request led has parameters, and led\.example\.com takes none"):
        claim.parameters_for(result, None)
    with pytest.raises(InvalidInput, match=r"parameters of request led: .*`int`"):
        claim.parameters_for(result, dict[str, int])


def test_values_that_say_the_same_are_the_same() -> None:
    assert PluginDevice("red") == PluginDevice("red", "Healthy", ())
    assert Device("red", {"color": "red"}) == Device("red", {"color": "red"}) != Device("red")
    assert Grant(devices=["/dev/null"]) == Grant(devices=["/dev/null"])


def test_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        PluginDevice("red").health = "Unhealthy"  # type: ignore[misc]


def test_a_string_that_fits_is_not_shortened() -> None:
    assert shortened("é" * 32) == "é" * 32


def test_a_longer_string_is_cut_between_characters() -> None:
    assert shortened("é" * 40) == "é" * 32
    assert shortened("x" + "é" * 40) == "x" + "é" * 31


def test_bytes_that_are_not_utf_8_are_replaced() -> None:
    assert shortened("/dev/\udcff") == "/dev/?"


@given(st.text(st.characters(codec=None)))
def test_a_shortened_string_is_a_valid_attribute(text: str) -> None:
    assert len(shortened(text).encode()) <= attributes.VALUE_MAX
    wanted({"p": Pool([Device("d", {"label": shortened(text)})])}, "d.example.com", "n")
