from collections.abc import Callable
from typing import Any

from devlet.cel.values import Duration

Answer = Callable[[str], tuple[Any, int]]


def test_what_comes_after_an_element_that_failed_is_not_evaluated(answer: Answer) -> None:
    assert answer("[1 / 0, 2 / 0, 3 / 0]") == ("division by zero", 11)
    assert answer("{1 / 0: 2 / 0}") == ("division by zero", 31)


def test_of_equal_keys_the_last_wins(answer: Answer) -> None:
    assert answer("{'a': 1, 'a': size(device.driver)}")[0] == {"a": 15}


def test_elements_and_entries_may_be_optional(answer: Answer) -> None:
    assert answer("[?optional.of(1), ?optional.none(), 2]")[0] == [1, 2]
    assert answer("{?'a': D.?nope, ?'b': D.?count}")[0] == {"b": 8}


def test_an_optional_element_must_be_an_optional(answer: Answer) -> None:
    text = "cannot initialize optional list element from non-optional value dra.example.com"
    assert answer("[?dyn(device.driver)]")[0] == text
    entry = "cannot initialize optional entry 'a' from non-optional value 8"
    assert answer("{?'a': dyn(D.count)}")[0] == entry


def test_a_message_of_protobuf_is_the_value_in_it(answer: Answer) -> None:
    assert answer("google.protobuf.Int64Value{value: 1}") == (1, 40)
    assert answer("google.protobuf.Duration{seconds: 2}")[0] == Duration(2 * 10**9)
    assert answer("kubernetes.DRADevice{driver: 'x'}") == ("unknown type 'kubernetes.DRADevice'", 40)


def test_an_invalid_key_is_an_error_and_not_a_crash(answer: Answer) -> None:
    assert answer("{dyn([device.driver]): 1}.size() == 1")[0] == "unsupported key type: list"
    assert answer("{dyn(device.attributes): 1}.size() == 1")[0] == "unsupported key type: map"
    text = "internal error: runtime error: hash of unhashable type types.Bytes"
    assert answer("{bytes(device.driver): 1}.size() == 1")[0] == text
