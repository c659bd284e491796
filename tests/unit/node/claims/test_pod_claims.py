import pytest

from devlet.errors import InvalidInput, NotFound, NotPrepared
from devlet.node.claims import pod_claims
from devlet.node.claims.pod_claims import keys, of_pod, requests
from devlet.objects.documents import view
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.pod import Pod
from devlet.state.claim_entry import ClaimEntry
from tests.support.claim_specimens import GPU, NIC, device, key, pod

EXTENDED = {
    "extendedResourceClaimStatus": {
        "resourceClaimName": "ext",
        "requestMappings": [
            {"containerName": "main", "resourceName": "gpu.example.com/gpu", "requestName": "container-0-request-0"},
            {"containerName": "main", "resourceName": "zero.example.com/x", "requestName": "container-0-request-1"},
            {"containerName": "other", "resourceName": "gpu.example.com/gpu", "requestName": "container-1-request-0"},
            {
                "containerName": "main",
                "resourceName": "deviceclass.resource.kubernetes.io/big",
                "requestName": "container-0-request-2",
            },
            {"containerName": "main", "resourceName": "cpu", "requestName": "container-0-request-3"},
        ],
    }
}
ASKED = {
    "requests": {"gpu.example.com/gpu": "1", "zero.example.com/x": "0", "deviceclass.resource.kubernetes.io/big": "2"}
}


def from_template(statuses: list[dict[str, object]]) -> Pod:
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [], "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]},
        "status": {"resourceClaimStatuses": statuses},
    }
    return view(Pod, document)


@pytest.mark.spec("DN-3.2")
def test_a_claim_is_found_by_its_name_or_by_the_name_in_the_status() -> None:
    direct = of_pod(pod(claims={"gpu": "claim"}))
    assert [(one.entry, one.key, one.must_be_owned) for one in direct] == [("gpu", key("claim"), False)]
    made = of_pod(from_template([{"name": "a", "resourceClaimName": "p-a-x7"}]))
    assert [(one.entry, one.key, one.must_be_owned) for one in made] == [("a", key("p-a-x7"), True)]


@pytest.mark.spec("DN-3.2")
def test_an_entry_that_needs_no_claim_is_skipped() -> None:
    assert of_pod(from_template([{"name": "a"}])) == ()


@pytest.mark.spec("DN-3.2")
def test_a_claim_that_is_not_created_yet_and_an_entry_without_a_name_are_errors() -> None:
    with pytest.raises(NotFound, match="not created yet"):
        of_pod(from_template([]))
    bad = view(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [], "resourceClaims": [{"name": "a"}]}})
    with pytest.raises(InvalidInput, match="none of the supported fields are set"):
        of_pod(bad)


def test_keys_are_those_of_the_created_claims_each_once() -> None:
    assert keys(pod(claims={"a": "one", "b": "one", "c": "two"})) == (key("one"), key("two"))
    assert keys(from_template([])) == ()


@pytest.mark.spec("DN-3.6")
def test_the_claim_of_extended_resources_belongs_to_the_pod_if_the_gate_is_on() -> None:
    one = pod(claims={}, status=EXTENDED, resources=ASKED)
    assert [(each.entry, each.key) for each in of_pod(one)] == [("", key("ext"))]
    assert of_pod(one, extended=False) == ()


@pytest.mark.spec("DN-3.6")
def test_a_container_has_the_mapped_requests_of_its_extended_resources() -> None:
    one = pod(claims={}, status=EXTENDED, resources=ASKED)
    (claim,) = of_pod(one)
    assert requests(one, one.containers[0], claim) == ("container-0-request-0", "container-0-request-2")


@pytest.mark.spec("DN-3.5")
def test_a_container_has_the_requests_that_it_names_or_all_or_none() -> None:
    uses = [("a", "r1"), ("a", "r2"), ("a", "r1"), ("b", ""), ("b", "r1")]
    one = pod(claims={"a": "one", "b": "two", "c": "three"}, uses=uses)
    found = [requests(one, one.containers[0], each) for each in of_pod(one)]
    assert found == [("r1", "r2"), ("",), ()]


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
    return pod_claims.cdi_devices(pod_claims.container_claims(one, one.containers[0], of_pod(one), known.get))


@pytest.mark.spec("DN-3.5")
@pytest.mark.spec("DN-11.17")
def test_a_container_with_the_whole_claim_gets_all_devices_once_in_a_stable_order() -> None:
    assert devices(pod(), ENTRY) == ("g.com/c=a", "g.com/c=all", "g.com/c=b", "n.com/c=n")


@pytest.mark.spec("DN-3.5")
@pytest.mark.spec("DN-9.3.06")
def test_a_container_with_one_request_gets_only_the_devices_of_that_request() -> None:
    assert devices(pod(uses=[("gpu", "two")]), ENTRY) == ("g.com/c=b", "g.com/c=all")
    assert devices(pod(uses=[]), ENTRY) == ()


@pytest.mark.spec("DN-10.M24")
def test_a_device_of_two_requests_is_listed_once() -> None:
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
    assert pod_claims.is_for(PreparedDevice("p", "d", requests=requests), asked) is is_for
