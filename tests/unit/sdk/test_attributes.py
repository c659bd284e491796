from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.validation import attributes
from devlet.sdk.attributes import shortened
from devlet.sdk.slices.resources import wanted
from devlet.sdk.values import Device, Pool


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert shortened("é" * 32) == "é" * 32


def test_a_longer_one_is_cut_between_characters() -> None:
    assert shortened("é" * 40) == "é" * 32
    assert shortened("x" + "é" * 40) == "x" + "é" * 31


def test_what_is_no_text_is_replaced() -> None:
    assert shortened("/dev/\udcff") == "/dev/?"


@given(st.text(st.characters(codec=None)))
def test_it_can_be_an_attribute(text: str) -> None:
    assert len(shortened(text).encode()) <= attributes.VALUE_MAX
    wanted({"p": Pool([Device("d", {"label": shortened(text)})])}, "d.example.com", "n")
