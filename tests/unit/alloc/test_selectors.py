import pytest

from devlet.alloc import Rules, selectors
from devlet.alloc.device_cel import device_environment
from devlet.alloc.selectors import Selectors, compile_selector
from devlet.errors import InvalidInput, InvalidSelector
from tests.support.allocation.desk import Desk

GPUS = [{"pool": "p1", "devices": ["d1 kind=l4 numa=0", "d2 kind=a100 numa=1", "d3 numa=1"]}]


def is_kind(kind: str) -> str:
    return f'device.attributes["a.example.com"].kind == "{kind}"'


def numa(number: int) -> str:
    return f'device.attributes["a.example.com"].numa == {number}'


def match(of_class: tuple[str, ...], of_request: tuple[str, ...], made: Selectors | None = None) -> object:
    entry = Desk(slices=GPUS).entry("p1/d1").slice
    made = made or Selectors()
    found = made.match(entry, made.set_of(of_class, of_request))
    return (found.matching, found.failing)


def test_all_selectors_must_match() -> None:
    assert match((), ()) == (0b111, 0)
    assert match((numa(1),), ()) == (0b110, 0)
    assert match((numa(1),), ("device.driver == 'a.example.com'", "false")) == (0, 0)


@pytest.mark.spec("DA-3.6a")
def test_a_device_that_an_earlier_selector_excludes_is_not_evaluated() -> None:
    assert match((), (is_kind("l4"),)) == (0b001, 0b100)
    assert match((numa(0),), (is_kind("l4"),)) == (0b001, 0)


@pytest.mark.spec("DA-3.6b")
def test_a_failure_says_whose_selector_it_is() -> None:
    made, entry = Selectors(), Desk(slices=GPUS).entry("p1/d1").slice
    failure = made.match(entry, made.set_of(("true", is_kind("l4")), ())).failures[2]
    assert (failure.of_class, failure.index, failure.text) == (True, 1, "CEL runtime error: no such key: kind")
    failure = made.match(entry, made.set_of((), ("1 +",))).failures[0]
    assert (failure.of_class, failure.index) == (False, 0)
    assert failure.text.startswith("CEL compile error: ")


def test_equal_expressions_are_one_set_and_are_evaluated_once() -> None:
    made, entry = Selectors(), Desk(slices=GPUS).entry("p1/d1").slice
    first, second = made.set_of(("true",), ()), made.set_of(("true",), ())
    assert first is second
    assert made.match(entry, first) is made.match(entry, second)


def test_a_slice_caches_a_limited_number_of_results() -> None:
    made, entry = Selectors(), Desk(slices=GPUS).entry("p1/d1").slice
    for i in range(selectors.MATCHES_MAX + 10):
        made.match(entry, made.set_of((), (f"{i} > 0",)))
    assert len(entry.matches) == selectors.MATCHES_MAX


def test_two_allocators_do_not_mix_what_they_remember() -> None:
    slices = [{"pool": "p1", "devices": ["d1 x=[1,2]"]}]
    entry = Desk(slices=slices).entry("p1/d1").slice
    with_lists, without = Selectors(lists=True), Selectors(lists=False)
    expression = 'device.driver == "a.example.com"'
    assert with_lists.match(entry, with_lists.set_of((), (expression,))).matching == 1
    assert without.match(entry, without.set_of((), (expression,))).failing == 1


def test_a_selector_must_be_a_condition() -> None:
    with pytest.raises(InvalidSelector, match="must evaluate to bool or the unknown type, not string"):
        compile_selector("device.driver", device_environment())


def test_an_error_does_not_grow_each_time_it_is_raised() -> None:
    made, depths = Selectors(), []
    for _ in range(3):
        with pytest.raises(InvalidSelector) as caught:
            made.program("1 +")
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


@pytest.mark.spec("DA-3.6c")
def test_a_failure_is_an_error_if_a_device_is_tried_and_a_device_in_use_is_not() -> None:
    wish = [["r0 a kind=a100"]]
    text = "claim default/claim-0: selector #0: CEL runtime error: no such key: kind"
    slices = [{"pool": "p1", "devices": ["d1 numa=0", "d2 kind=a100"]}]
    with pytest.raises(InvalidInput, match=text):
        Desk(slices=slices, claims=wish, rules=Rules.reference()).ask()
    held = Desk(slices=slices, claims=wish, allocated=["p1/d1"], rules=Rules.reference())
    assert held.ask() == [["r0 p1/d2"]]


@pytest.mark.spec("DA-11.06")
def test_a_device_where_a_selector_fails_does_not_match_and_the_others_are_tried() -> None:
    slices = [{"pool": "p1", "devices": ["d1 numa=0", "d2 kind=a100"]}]
    assert Desk(slices=slices, claims=[["r0 a kind=a100"]]).ask() == [["r0 p1/d2"]]
    assert Desk(slices=slices, claims=[["r0 all a kind=a100"]]).ask() == [["r0 p1/d2"]]


@pytest.mark.spec("DA-11.06")
def test_a_selector_that_does_not_compile_is_an_error_even_without_devices() -> None:
    with pytest.raises(InvalidInput, match="claim default/claim-0: selector #0: CEL compile error: "):
        Desk(claims=[["r0 a if 1 +"]]).ask()
    assert not Desk(claims=[["r0 a if 1 +"]], rules=Rules.reference()).fits()
