import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cassettes.placeholders import DEVICE, ID, NODE, changed, filled, generalised, variable
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/dev/gpu-0", "/dev/{device}"),
        ("gpu-0,gpu-0", "{device},{device}"),
        ("gpu-01", "gpu-01"),
        ("mygpu-0", "mygpu-0"),
        ("my_gpu-0", "my_{device}"),
        ("", ""),
    ],
)
def test_a_name_is_found_only_where_it_stands_by_itself(text: str, expected: str) -> None:
    assert generalised(text, {DEVICE: "gpu-0"}) == expected


def test_an_empty_name_is_found_nowhere() -> None:
    assert generalised("abc", {DEVICE: ""}) == "abc"


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    assert filled("{device} {node}", {DEVICE: "{node}", NODE: "n1"}) == "{node} n1"


def test_unknown_placeholders_stay() -> None:
    assert filled("{other} {} {", {DEVICE: "a"}) == "{other} {} {"
    assert filled("{device}", {}) == "{device}"


@given(st.text("ab-/{} 0", max_size=20), st.text("ab-0", min_size=1, max_size=4))
def test_what_was_generalised_is_filled_to_what_it_was(text: str, name: str) -> None:
    if ID not in text:
        assert filled(generalised(text, {ID: name}), {ID: name}) == text


def test_texts_change_and_names_of_members_do_not() -> None:
    edits = ContainerEdits(env=("path=path",), device_nodes=(DeviceNode("/dev/path", type="c", major=1),))
    new = changed(edits, lambda text: text.replace("path", "x"))
    assert new == ContainerEdits(env=("x=x",), device_nodes=(DeviceNode("/dev/x", type="c", major=1),))
    assert changed({"key": ["key"]}, str.upper) == {"key": ["KEY"]}


def test_any_name_can_be_a_part_of_a_variables_name() -> None:
    assert [variable(name) for name in ("gpu-0", "example.com/led", "0000:3b:02.0")] == [
        "GPU_0",
        "EXAMPLE_COM_LED",
        "0000_3B_02_0",
    ]
