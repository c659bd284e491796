import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.node.claims.claim_info_cache import ClaimInfoCache, parts
from devlet.objects.identifiers import ClaimUID, DeviceIdentity, DeviceName, PodUID, PoolName
from devlet.state import claim_checkpoint
from devlet.state.claim_entry import ClaimEntry
from tests.support.claim_specimens import GPU, NIC, claim, device, key

A, B = PodUID("a"), PodUID("b")
UID = ClaimUID("u")
RESULTS = claim().results


@pytest.mark.spec("DN-10.C02")
@pytest.mark.spec("DN-10.C04")
def test_a_claim_is_cached_as_long_as_pods_refer_to_it() -> None:
    cache = ClaimInfoCache()
    assert cache.add_reference(key("c"), UID, [GPU], A) and not cache.add_reference(key("c"), UID, [GPU], A)
    assert cache.add_reference(key("c"), UID, [GPU], B)
    assert cache[key("c")].pods == frozenset({"a", "b"}) and cache.claims_of(A) == {key("c")}
    cache.delete_reference(key("c"), A)
    assert cache.pods() == {B} and len(cache) == 1
    cache.delete_reference(key("c"), B)
    assert len(cache) == 0 and cache.pods() == frozenset()


def test_a_driver_of_a_new_allocation_is_added() -> None:
    cache = ClaimInfoCache()
    cache.add_reference(key("c"), UID, [GPU], A)
    cache.confirm(key("c"), GPU, (device("d"),), RESULTS)
    assert cache.add_reference(key("c"), UID, [GPU, NIC], A)
    assert cache[key("c")].drivers == {GPU: (device("d"),), NIC: None}


def test_a_reference_that_could_not_be_saved_is_rolled_back() -> None:
    cache = ClaimInfoCache()
    cache.add_reference(key("c"), UID, [GPU], A)
    before = cache[key("c")]
    cache.add_reference(key("c"), UID, [GPU, NIC], B)
    cache.add_reference(key("new"), UID, [GPU], B)
    cache.roll_back(key("c"), before)
    cache.roll_back(key("new"), None)
    assert dict(cache) == {key("c"): before} and cache.pods() == {A}


def test_a_driver_is_confirmed_until_it_has_unprepared_the_claim() -> None:
    cache = ClaimInfoCache()
    cache.add_reference(key("c"), UID, [GPU, NIC], A)
    cache.confirm(key("c"), GPU, (), RESULTS)
    assert cache.is_confirmed(key("c"), GPU) and not cache.is_confirmed(key("c"), NIC)
    assert not cache.is_outdated(key("c"), {GPU: RESULTS})
    assert cache.is_outdated(key("c"), {GPU: claim(devices="other").results}) and cache.is_outdated(key("c"), {})
    cache.delete_driver(key("c"), GPU)
    assert not cache.is_confirmed(key("c"), GPU) and cache[key("c")].drivers == {NIC: None}


def test_a_driver_that_is_asked_to_unprepare_is_not_confirmed_but_its_answer_is_kept() -> None:
    cache = ClaimInfoCache()
    cache.add_reference(key("c"), UID, [GPU], A)
    cache.confirm(key("c"), GPU, (device("d"),), RESULTS)
    cache.unconfirm(key("c"), GPU)
    assert not cache.is_confirmed(key("c"), GPU) and cache[key("c")].drivers == {GPU: (device("d"),)}
    cache.unconfirm(key("unknown"), GPU)


def test_users_of_any_share_of_a_device_are_found() -> None:
    cache = ClaimInfoCache()
    for pod, name, share in ((A, "one", "s1"), (B, "two", "s2")):
        cache.add_reference(key(name), UID, [GPU], pod)
        cache.confirm(key(name), GPU, (device("d", share=share),), RESULTS)
    assert cache.users([DeviceIdentity(GPU, PoolName("pool"), DeviceName("d"))]) == {A, B}
    assert cache.users([DeviceIdentity(NIC, PoolName("pool"), DeviceName("d"))]) == frozenset()


def test_the_file_tells_an_empty_answer_from_no_answer() -> None:
    cache = ClaimInfoCache()
    assert claim_checkpoint.decode(cache.content()).claims is None
    cache.add_reference(key("c"), UID, [GPU, NIC], A)
    cache.confirm(key("c"), GPU, (), RESULTS)
    again = ClaimInfoCache()
    again.restore(claim_checkpoint.decode(cache.content()).claims)
    assert [(p.driver, p.devices) for p in parts(again[key("c")])] == [(GPU, ()), (NIC, None)]
    assert not again.is_confirmed(key("c"), GPU)
    cache.delete_reference(key("c"), A)
    assert claim_checkpoint.decode(cache.content()).claims == ()


def test_a_claim_without_pods_belongs_to_a_pod_that_does_not_exist() -> None:
    cache = ClaimInfoCache()
    entry = ClaimEntry("u", "c", "default", None, {GPU: None})
    cache.restore([entry])
    assert cache.claims_of(PodUID("")) == {key("c")}
    assert claim_checkpoint.decode(cache.content()).claims == (entry,)
    cache.delete_reference(key("c"), PodUID(""))
    assert len(cache) == 0 and cache.pods() == frozenset()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.booleans()), max_size=30))
def test_the_index_of_pods_agrees_with_the_entries(steps: list[tuple[str, str, bool]]) -> None:
    cache = ClaimInfoCache()
    for name, pod, add in steps:
        if add:
            cache.add_reference(key(name), UID, [GPU], PodUID(pod))
        elif (entry := cache.get(key(name))) and pod in (entry.pods or ()):
            cache.delete_reference(key(name), PodUID(pod))
    expected = {pod: {k for k, entry in cache if pod in (entry.pods or ())} for pod in "xyz"}
    assert {pod: set(cache.claims_of(PodUID(pod))) for pod in "xyz"} == expected
    assert cache.pods() == {pod for pod, claims in expected.items() if claims}
