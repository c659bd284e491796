from devlet.alloc import NoFit
from tests.support.allocation.desk import Desk


def test_the_answer_is_in_words() -> None:
    slices = [{"pool": "p1", "devices": ["d1"]}, {"pool": "b/p2", "devices": ["d1"]}]
    desk = Desk(slices=slices, claims=[[{"r0": ["s0 2 a", "s1 a"]}], ["r1 b"]])
    assert desk.ask() == [["r0/s1 p1/d1"], ["r1 b/p2/d1"]]


def test_no_is_the_allocators_own_answer() -> None:
    desk = Desk(claims=[["r0 a"]])
    assert desk.ask() == NoFit()
    assert not desk.fits()


def test_a_device_is_found_by_its_words() -> None:
    desk = Desk(slices=[{"pool": "b/p2", "devices": ["d1", "d2"]}])
    assert desk.entry("b/p2/d2").bit == 1
