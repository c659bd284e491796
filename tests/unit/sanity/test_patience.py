"""Who never answers is not waited for as long each time."""

import pytest

from devlet.errors import PluginRefused, PluginUnavailable
from devlet.sanity.patience import LEAST, Patience


def test_silence_makes_the_next_wait_for_the_same_method_shorter() -> None:
    patience = Patience()
    assert patience.limit("Allocate", 45.0) == 45.0
    patience.silent("Allocate")
    assert (patience.limit("Allocate", 45.0), patience.limit("GetInfo", 45.0)) == (15.0, 45.0)
    for _ in range(9):
        patience.silent("Allocate")
    assert patience.limit("Allocate", 45.0) == LEAST
    assert patience.limit("Allocate", 0.5) == 0.5


def test_each_answer_makes_up_for_one_silence() -> None:
    patience = Patience()
    for _ in range(100):
        patience.silent("Allocate")
    limits = []
    for _ in range(7):
        patience.answered("Allocate")
        limits.append(patience.limit("Allocate", 81.0))
    assert limits == [1.0, 1.0, 3.0, 9.0, 27.0, 81.0, 81.0]


def test_only_what_comes_after_the_whole_time_is_silence() -> None:
    patience = Patience()
    with pytest.raises(PluginUnavailable), patience.waiting("Allocate", 0.0):
        raise PluginUnavailable("led", "not answered")
    assert patience.limit("Allocate", 9.0) == 3.0
    with pytest.raises(PluginUnavailable), patience.waiting("Allocate", 9.0):
        raise PluginUnavailable("led", "its process is gone")
    assert patience.limit("Allocate", 9.0) == 3.0


def test_an_error_is_an_answer() -> None:
    patience = Patience()
    patience.silent("Allocate")
    with pytest.raises(PluginRefused), patience.waiting("Allocate", 9.0) as limit:
        assert limit == 3.0
        raise PluginRefused("led", "no such device")
    assert patience.limit("Allocate", 9.0) == 9.0
