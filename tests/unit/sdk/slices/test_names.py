import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.sdk.slices import names


@pytest.mark.spec("DN-10.P19")
@pytest.mark.parametrize(("count", "length"), [(1, 5), (0, 5), (2, 5), (0x100000, 5), (0x100001, 6), (0x1000001, 7)])
def test_indexes_are_as_long_as_the_highest_one_and_have_at_least_five_digits(count: int, length: int) -> None:
    assert names.index_length(count) == length


@pytest.mark.spec("DN-10.P20")
@pytest.mark.parametrize(
    ("index", "count", "text"),
    [(0, 1, "00000"), (10, 11, "0000a"), (100000, 100001, "186a0"), (1048576, 1048577, "100000")],
)
def test_an_index_is_written_in_hexadecimal_with_leading_zeros(index: int, count: int, text: str) -> None:
    assert names.encode(index, count) == text


@pytest.mark.spec("DN-10.P21")
@pytest.mark.parametrize(
    "name",
    [
        "0000-x-1",  # too short
        "000000-x-1",  # too long
        "00000",  # no dash
        "0000g-x-1",
        "0x00a-x-1",
        "+000a-x-1",
        "0_00a-x-1",
        "-0000a-x",
        "fffff-x-1",  # there are not so many
        "00010-x-1",
        "",
        "gpu.example.com-node-abcde",
    ],
)
def test_other_names_have_no_index(name: str) -> None:
    assert names.decode(name, 16) is None


@pytest.mark.spec("DN-10.P21")
def test_an_index_beyond_any_number_of_slices_is_none() -> None:
    assert names.decode(f"{'f' * 40}-x", 0x100001) is None


@given(st.integers(0, 1 << 22), st.integers(0, 1 << 12))
def test_what_was_encoded_is_decoded_and_sorts_like_numbers(index: int, more: int) -> None:
    count = index + more + 1
    name = names.generated(index, count, "gpu.example.com", "node") + "abcde"
    assert names.decode(name, count) == index
    assert index == 0 or names.encode(index - 1, count) < names.encode(index, count)


@pytest.mark.spec("DN-6.4f")
def test_a_name_has_index_driver_and_owner() -> None:
    assert names.generated(10, 11, "gpu.example.com", "node-1") == "0000a-gpu.example.com-node-1-"
    assert names.generated(0, 1, "gpu.example.com", "") == "00000-gpu.example.com-"


def test_a_driver_with_capitals_gets_names_that_objects_may_have() -> None:
    assert names.generated(0, 1, "GPU.example.com", "n") == "00000-gpu.example.com-n-"
