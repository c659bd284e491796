import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.claims.book import Book, parts
from devlet.objects.identifiers import ClaimUID, DeviceIdentity, DeviceName, PodUID, PoolName
from devlet.state import claim_checkpoint
from devlet.state.claim_entry import ClaimEntry
from tests.support.claim_specimens import GPU, NIC, claim, device, key

A, B = PodUID("a"), PodUID("b")
UID = ClaimUID("u")
RESULTS = claim().results


@pytest.mark.spec("DN-10.C02")
@pytest.mark.spec("DN-10.C04")
def test_a_claim_is_there_as_long_as_pods_refer_to_it() -> None:
    book = Book()
    assert book.refer(key("c"), UID, [GPU], A) and not book.refer(key("c"), UID, [GPU], A)
    assert book.refer(key("c"), UID, [GPU], B)
    assert book[key("c")].pods == frozenset({"a", "b"}) and book.claims_of(A) == {key("c")}
    book.unrefer(key("c"), A)
    assert book.pods() == {B} and len(book) == 1
    book.unrefer(key("c"), B)
    assert len(book) == 0 and book.pods() == frozenset()


def test_a_driver_that_came_with_a_new_allocation_is_added() -> None:
    book = Book()
    book.refer(key("c"), UID, [GPU], A)
    book.confirm(key("c"), GPU, (device("d"),), RESULTS)
    assert book.refer(key("c"), UID, [GPU, NIC], A)
    assert book[key("c")].drivers == {GPU: (device("d"),), NIC: None}


def test_what_could_not_be_written_down_is_put_back_as_it_was() -> None:
    book = Book()
    book.refer(key("c"), UID, [GPU], A)
    before = book[key("c")]
    book.refer(key("c"), UID, [GPU, NIC], B)
    book.refer(key("new"), UID, [GPU], B)
    book.put_back(key("c"), before)
    book.put_back(key("new"), None)
    assert dict(book) == {key("c"): before} and book.pods() == {A}


def test_a_driver_is_confirmed_until_it_has_unprepared_the_claim() -> None:
    book = Book()
    book.refer(key("c"), UID, [GPU, NIC], A)
    book.confirm(key("c"), GPU, (), RESULTS)
    assert book.is_confirmed(key("c"), GPU) and not book.is_confirmed(key("c"), NIC)
    assert not book.is_outdated(key("c"), {GPU: RESULTS})
    assert book.is_outdated(key("c"), {GPU: claim(devices="other").results}) and book.is_outdated(key("c"), {})
    book.forget_driver(key("c"), GPU)
    assert not book.is_confirmed(key("c"), GPU) and book[key("c")].drivers == {NIC: None}


def test_a_driver_that_is_asked_to_unprepare_a_claim_is_not_confirmed_and_what_it_answered_is_kept() -> None:
    book = Book()
    book.refer(key("c"), UID, [GPU], A)
    book.confirm(key("c"), GPU, (device("d"),), RESULTS)
    book.doubt(key("c"), GPU)
    assert not book.is_confirmed(key("c"), GPU) and book[key("c")].drivers == {GPU: (device("d"),)}
    book.doubt(key("unknown"), GPU)


def test_users_of_a_device_are_found_whatever_their_share() -> None:
    book = Book()
    for pod, name, share in ((A, "one", "s1"), (B, "two", "s2")):
        book.refer(key(name), UID, [GPU], pod)
        book.confirm(key(name), GPU, (device("d", share=share),), RESULTS)
    assert book.users([DeviceIdentity(GPU, PoolName("pool"), DeviceName("d"))]) == {A, B}
    assert book.users([DeviceIdentity(NIC, PoolName("pool"), DeviceName("d"))]) == frozenset()


def test_a_file_says_who_has_answered_even_if_with_no_device() -> None:
    book = Book()
    assert claim_checkpoint.decode(book.content()).claims is None
    book.refer(key("c"), UID, [GPU, NIC], A)
    book.confirm(key("c"), GPU, (), RESULTS)
    again = Book()
    again.restore(claim_checkpoint.decode(book.content()).claims)
    assert [(p.driver, p.devices) for p in parts(again[key("c")])] == [(GPU, ()), (NIC, None)]
    assert not again.is_confirmed(key("c"), GPU)
    book.unrefer(key("c"), A)
    assert claim_checkpoint.decode(book.content()).claims == ()


def test_a_claim_of_nobody_is_kept_as_that_of_a_pod_that_does_not_exist() -> None:
    book = Book()
    entry = ClaimEntry("u", "c", "default", None, {GPU: None})
    book.restore([entry])
    assert book.claims_of(PodUID("")) == {key("c")}
    assert claim_checkpoint.decode(book.content()).claims == (entry,)
    book.unrefer(key("c"), PodUID(""))
    assert len(book) == 0 and book.pods() == frozenset()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.booleans()), max_size=30))
def test_the_index_of_pods_agrees_with_the_entries(steps: list[tuple[str, str, bool]]) -> None:
    book = Book()
    for name, pod, add in steps:
        if add:
            book.refer(key(name), UID, [GPU], PodUID(pod))
        elif (entry := book.get(key(name))) and pod in (entry.pods or ()):
            book.unrefer(key(name), PodUID(pod))
    expected = {pod: {k for k, entry in book if pod in (entry.pods or ())} for pod in "xyz"}
    assert {pod: set(book.claims_of(PodUID(pod))) for pod in "xyz"} == expected
    assert book.pods() == {pod for pod, claims in expected.items() if claims}
