import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state import go_hash
from devlet.state.go_hash import BASIS, PRIME, Piece, after

STATES = st.integers(0, 2**32 - 1)


def plain(state: int, text: bytes) -> int:
    for byte in text:
        state = ((state ^ byte) * PRIME) & 0xFFFFFFFF
    return state


@pytest.mark.parametrize(("text", "expected"), [(b"", BASIS), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_known_hashes_of_fnv1a(text: bytes, expected: int) -> None:
    assert after(BASIS, text) == expected


@given(STATES, st.binary(max_size=300))
def test_hashing_from_any_state_equals_the_plain_loop(state: int, text: bytes) -> None:
    assert after(state, text) == plain(state, text)


@pytest.mark.parametrize("low", range(256))
def test_hashing_can_start_from_every_low_byte(low: int) -> None:
    assert after(0xABCDEF00 | low, b"some text") == plain(0xABCDEF00 | low, b"some text")


@given(st.binary(max_size=100), st.lists(STATES, min_size=1, max_size=20))
def test_a_piece_has_the_same_hash_every_time(text: bytes, states: list[int]) -> None:
    piece = Piece(text)
    assert [piece.after(state) for state in states * 2] == [plain(state, text) for state in states * 2]


@given(STATES, st.lists(st.binary(max_size=50), max_size=10))
def test_hashing_pieces_equals_hashing_their_concatenation(state: int, texts: list[bytes]) -> None:
    result = state
    for text in texts:
        result = Piece(text).after(result)
    assert result == after(state, b"".join(texts))


def test_null_empty_and_full_are_dumped_differently() -> None:
    assert [go_hash.strings(v) for v in (None, [], ["a", "b c"])] == [b"<nil>", b"[]", b"[a b c]"]
    assert [go_hash.octets(v) for v in (None, b"", b"\x00\xff\x0a")] == [b"<nil>", b"[]", b"[0 255 10]"]
    assert [go_hash.mapping(v) for v in (None, [], [(b"0", ["x"]), (b"1", None)])] == [
        b"<nil>",
        b"map[]",
        b"map[0:[x] 1:<nil>]",
    ]


def test_a_string_that_is_not_utf8_is_hashed_as_it_is_decoded() -> None:
    assert go_hash.strings(["a\ud800"]) == "[a\ufffd]".encode()
