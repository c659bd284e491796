import threading

import pytest

from devlet.cel.library.regex import compiled
from devlet.cel.pattern_work import PatternMeter, current
from devlet.cel.values import CelError, CostExceeded


def test_what_is_compiled_in_the_block_is_counted_the_same_every_time() -> None:
    seen = []
    for _ in range(2):
        with PatternMeter(counts_known=True) as meter:
            compiled("a{50}b")
            compiled(r"\pL")
        seen.append(meter.spent)
    assert seen[0] == seen[1] > 50


def test_at_run_time_only_new_patterns_count() -> None:
    with PatternMeter(1000) as meter:
        compiled("only at run time 1")
        once = meter.spent
        compiled("only at run time 1")
    assert meter.spent == once > 0


def test_beyond_the_limit_no_pattern_is_handed_out() -> None:
    with pytest.raises(CostExceeded, match="actual cost limit exceeded"), PatternMeter(500):
        for i in range(100):
            compiled(f"beyond the limit {i}")


def test_patterns_that_are_refused_count_as_much_as_the_largest() -> None:
    with PatternMeter() as meter, pytest.raises(CelError):
        compiled(r"\pL{900}")
    assert meter.spent > 10_000


def test_meters_are_nested_and_belong_to_their_thread() -> None:
    with PatternMeter() as outer:
        with PatternMeter(counts_known=True) as inner:
            compiled("a{20}")
        compiled("only for the outer one")
        others: list[object] = []
        thread = threading.Thread(target=lambda: others.append(current()))
        thread.start()
        thread.join()
        assert current() is outer
    assert inner.spent and outer.spent and others == [None]
    assert current() is None
