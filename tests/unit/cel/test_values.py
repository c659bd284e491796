from devlet.cel.values import NONE, CelError, CostExceeded, Duration, Optional, Timestamp, Uint


def test_an_optional_without_a_value_is_not_one_of_null() -> None:
    assert NONE != Optional(None)
    assert not NONE.has_value and Optional(None).has_value


def test_durations_and_timestamps_are_ordered_and_never_equal_to_each_other() -> None:
    assert Duration(1) < Duration(2) and Timestamp(1) < Timestamp(2)
    values: list[object] = [Duration(1), Timestamp(1)]
    assert values[0] != values[1]


def test_the_zone_a_timestamp_was_written_in_is_no_difference() -> None:
    assert Timestamp(5, 3600) == Timestamp(5)


def test_an_unsigned_number_is_of_its_own_type() -> None:
    number: object = Uint(3)
    assert type(number) is Uint and number == 3


def test_the_limit_on_cost_is_an_error_of_its_own() -> None:
    error = CostExceeded("too much", 7)
    assert issubclass(CostExceeded, CelError)
    assert (str(error), error.message, error.node) == ("too much", "too much", 7)
