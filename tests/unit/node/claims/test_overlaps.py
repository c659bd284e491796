import pytest

from devlet.node.claims.checks import UsableClaim, check, results_of
from devlet.node.claims.claim_info_cache import ClaimInfoCache
from devlet.node.claims.overlaps import cdi_overlap, overlaps, unknown_allocations
from devlet.node.claims.pod_claims import PodClaim
from devlet.node.claims.records import ClaimKey
from devlet.objects.identifiers import PodUID
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from tests.support.claim_specimens import GPU, NIC, claim, device, key, pod


def usable(*claims: ResourceClaim) -> dict[ClaimKey, UsableClaim]:
    return {key(each.name): check(each, PodClaim("gpu", key(each.name), must_be_owned=False), pod()) for each in claims}


def cache(
    *claims: ResourceClaim, restarted: bool = False, **answers: tuple[PreparedDevice, ...] | None
) -> ClaimInfoCache:
    """Return a cache with these claims, each used by a pod, and the answers of the GPU driver."""
    found = ClaimInfoCache()
    for each in claims:
        found.add_reference(key(each.name), each.uid, results_of(each), PodUID("pod"))
        found.allocate(key(each.name), results_of(each))
    for name, answer in answers.items():
        found.confirm(key(name), GPU, answer or (), ())
    if not restarted:
        return found
    after = ClaimInfoCache()
    after.restore([entry for _, entry in found])
    return after


def holders(found: ClaimInfoCache, *claims: ResourceClaim) -> list[str]:
    return [other.name for _, _, other in overlaps(usable(*claims), found)]


def test_a_device_of_another_claim_overlaps() -> None:
    found = cache(claim("a", device="d"))
    assert list(overlaps(usable(claim("b", device="d")), found)) == [(key("b"), f"{GPU}/pool/d", key("a"))]
    assert not holders(found, claim("a", device="d")) and not holders(found, claim("b"))
    assert not holders(found, claim("b", device="d", drivers=(NIC,)))


def test_claims_of_one_pod_can_overlap() -> None:
    assert holders(cache(), claim("a", device="d"), claim("b", device="d")) == ["a"]


@pytest.mark.parametrize(
    ("mine", "theirs", "overlap"),
    [
        ({"admin": True}, {}, False),
        ({}, {"admin": True}, False),
        ({"share": "s"}, {"share": "t"}, False),
        ({"share": "s"}, {"share": "s"}, True),
        ({"share": "s"}, {}, True),
        ({}, {"share": "t"}, True),
    ],
)
def test_admin_access_and_shares_do_not_overlap(mine: dict[str, str], theirs: dict[str, str], overlap: bool) -> None:
    found = cache(claim("a", device="d", **theirs))  # type: ignore[arg-type]
    assert bool(holders(found, claim("b", device="d", **mine))) is overlap  # type: ignore[arg-type]


def test_a_prepared_claim_keeps_its_devices() -> None:
    both = (claim("a", device="d"), claim("b", device="d"))
    assert not holders(cache(*both, a=(device("d"),), b=(device("d"),), restarted=True), both[1])


def test_allocations_that_are_unknown_after_a_restart_are_listed() -> None:
    answered = cache(claim("a", device="d"), a=(device("d"),), restarted=True)
    assert unknown_allocations(usable(claim("b", device="d")), answered) == [key("a")] and not unknown_allocations(
        usable(claim("b")), answered
    )
    silent = cache(claim("a", device="d"), restarted=True)
    assert unknown_allocations(usable(claim("b")), silent) == [key("a")] and holders(silent, claim("b")) == ["a"]
    silent.allocate(key("a"), results_of(claim("a", device="d")))
    assert not unknown_allocations(usable(claim("b", device="d")), silent)
    assert not holders(silent, claim("b")) and holders(silent, claim("b", device="d")) == ["a"]


def test_admin_access_never_waits() -> None:
    assert not holders(cache(claim("a", device="d"), restarted=True), claim("b", device="d", admin=True))


A, B = device("dev-a", "v.com/c=a"), device("dev-b", "v.com/c=b")
COMMON = "v.com/c=common"


@pytest.mark.parametrize(
    ("theirs", "mine", "foreign"),
    [
        (A, B, ""),
        (A, device("dev-b"), ""),
        (A, device("dev-b", "v.com/c=a"), "v.com/c=a"),
        (A, device("dev-b", "v.com/c=a", "v.com/c=b"), "v.com/c=a"),
        (device("dev-a", COMMON, "v.com/c=a"), device("dev-b", COMMON, "v.com/c=b"), ""),
        (device("dev-a", COMMON, "v.com/c=a"), device("dev-b", COMMON), COMMON),
        (device("dev-a", COMMON, "v.com/c=uid-a-0"), device("dev-b", "v.com/c=uid-a-0", "v.com/c=b"), "uid-a-0"),
        (device("dev-a", COMMON, "v.com/c=a"), device("dev-b", COMMON, "v.com/c=a", "v.com/c=b"), COMMON),
        (A, device("dev-a", "v.com/c=a"), ""),  # the same device, which is shared
    ],
)
def test_a_cdi_device_that_belongs_to_another_claim_is_found(
    theirs: PreparedDevice, mine: PreparedDevice, foreign: str
) -> None:
    found = cdi_overlap(key("b"), GPU, [mine], cache(claim("a"), claim("b"), a=(theirs,)))
    assert (foreign in found and "which belongs to ResourceClaim default/a" in found) if foreign else not found


def test_a_claim_does_not_overlap_with_its_own_cdi_devices() -> None:
    assert not cdi_overlap(key("a"), GPU, [A], cache(claim("a"), a=(A,)))
