import pytest

from devlet.errors import NotPrepared
from devlet.node.claims import reading
from devlet.node.claims.wanted import wanted
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.pod import Pod
from devlet.state.claim_entry import ClaimEntry
from tests.support.claim_specimens import GPU, NIC, device, key, pod

ENTRY = ClaimEntry(
    "u",
    "claim",
    "default",
    frozenset({"pod-1"}),
    {
        NIC: (device("n", "n.com/c=n", requests=("net",)),),
        GPU: (
            device("a", "g.com/c=a", "g.com/c=all", requests=("one",)),
            device("b", "g.com/c=b", "g.com/c=all", requests=("two",)),
            device("c", requests=None),
        ),
    },
)


def devices(one: Pod, *entries: ClaimEntry) -> tuple[str, ...]:
    known = {key(entry.name): entry for entry in entries}
    return reading.cdi_devices(reading.container_claims(one, one.containers[0], wanted(one), known.get))


@pytest.mark.spec("DN-3.5")
@pytest.mark.spec("DN-11.17")
def test_a_container_with_the_whole_claim_gets_all_devices_each_once_in_a_stable_order() -> None:
    assert devices(pod(), ENTRY) == ("g.com/c=a", "g.com/c=all", "g.com/c=b", "n.com/c=n")


@pytest.mark.spec("DN-3.5")
@pytest.mark.spec("DN-9.3.06")
def test_a_container_with_one_request_gets_its_devices_alone() -> None:
    assert devices(pod(uses=[("gpu", "two")]), ENTRY) == ("g.com/c=b", "g.com/c=all")
    assert devices(pod(uses=[]), ENTRY) == ()


@pytest.mark.spec("DN-10.M24")
def test_a_device_of_two_requests_is_given_once() -> None:
    shared = ClaimEntry(
        "u", "claim", "default", frozenset({"pod-1"}), {GPU: (device("a", "g.com/c=a", requests=("x", "y")),)}
    )
    assert devices(pod(uses=[("gpu", "x"), ("gpu", "y")]), shared) == ("g.com/c=a",)


@pytest.mark.spec("DN-10.M22")
def test_a_claim_that_is_not_prepared_for_the_pod_is_an_error() -> None:
    with pytest.raises(NotPrepared, match="ResourceClaim claim is not prepared for this pod"):
        devices(pod())
    with pytest.raises(NotPrepared, match="not prepared for this pod"):
        devices(pod("other"), ENTRY)
    half = ClaimEntry("u", "claim", "default", frozenset({"pod-1"}), {GPU: None})
    with pytest.raises(NotPrepared, match=f"driver {GPU} has not prepared it"):
        devices(pod(), half)


@pytest.mark.parametrize(
    ("requests", "asked", "is_for"),
    [
        (None, "x", True),
        ((), "x", True),
        (("x",), "", True),
        (("x",), "x", True),
        (("x",), "y", False),
        (("x/sub",), "x", True),
        (("x",), "x/sub", True),
    ],
)
def test_a_device_is_for_a_request(requests: tuple[str, ...] | None, asked: str, is_for: bool) -> None:
    assert reading.is_for(PreparedDevice("p", "d", requests=requests), asked) is is_for
