import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.kit.dice import Dice
from devlet.testing.fault_acts import (
    Act,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Error,
    Hang,
    Moment,
    Reorder,
    flipped,
    replaced,
)


@given(message=st.binary(min_size=1), seed=st.integers())
def test_a_flipped_message_differs_in_one_bit(message: bytes, seed: int) -> None:
    changed = flipped(Dice(seed))(message)
    assert len(changed) == len(message)
    assert sum((one ^ other).bit_count() for one, other in zip(message, changed, strict=True)) == 1


def test_an_empty_message_is_flipped_into_one_that_is_not() -> None:
    assert flipped(Dice(0))(b"")


def test_the_same_seed_flips_the_same_bits() -> None:
    one, other = flipped(Dice(5)), flipped(Dice(5))
    assert [one(b"hello") for _ in range(9)] == [other(b"hello") for _ in range(9)]


def test_a_replacement_does_not_look() -> None:
    assert replaced(b"x")(b"anything") == b"x"


def test_the_last_of_a_group_goes_first() -> None:
    act = Reorder(3, 1.0)
    turns = [act.join() for _ in range(3)]
    assert [turn.has_come for turn in turns] == [False, False, True]
    turns[2].answered.add(2)
    assert [turn.has_come for turn in turns] == [False, True, True]
    turns[1].answered.add(1)
    assert turns[0].has_come


def test_the_next_calls_are_a_group_of_their_own() -> None:
    act = Reorder(2, 1.0)
    first, second, third, fourth = [act.join() for _ in range(4)]
    second.answered.add(1)
    assert (first.has_come, third.has_come, fourth.has_come) == (True, False, True)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (Delay(0.5), "delay of 0.5 s"),
        (Hang(), "hang"),
        (Drop(), "drop"),
        (Error(grpc.StatusCode.INTERNAL, "x"), "error INTERNAL"),
        (Corrupt(replaced(b"")), "corruption"),
        (Disconnect(Moment.DURING), "disconnection in the middle of the answer"),
        (Duplicate(), "duplicate"),
        (Reorder(2, 1.0), "another order"),
    ],
)
def test_acts_read_well(act: Act, words: str) -> None:
    assert str(act) == words
