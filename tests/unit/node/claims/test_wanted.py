import pytest

from devlet.errors import InvalidInput, NotFound
from devlet.node.claims.wanted import keys, requests, wanted
from devlet.objects.documents import view
from devlet.objects.types.pod import Pod
from tests.support.claim_specimens import key, pod

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
    direct = wanted(pod(claims={"gpu": "claim"}))
    assert [(one.entry, one.key, one.must_be_owned) for one in direct] == [("gpu", key("claim"), False)]
    made = wanted(from_template([{"name": "a", "resourceClaimName": "p-a-x7"}]))
    assert [(one.entry, one.key, one.must_be_owned) for one in made] == [("a", key("p-a-x7"), True)]


@pytest.mark.spec("DN-3.2")
def test_an_entry_for_which_no_claim_was_needed_is_passed_over() -> None:
    assert wanted(from_template([{"name": "a"}])) == ()


@pytest.mark.spec("DN-3.2")
def test_a_claim_that_is_not_made_yet_and_an_entry_without_a_name_are_errors() -> None:
    with pytest.raises(NotFound, match="not created yet"):
        wanted(from_template([]))
    bad = view(Pod, {"metadata": {"name": "p"}, "spec": {"containers": [], "resourceClaims": [{"name": "a"}]}})
    with pytest.raises(InvalidInput, match="none of the supported fields are set"):
        wanted(bad)


def test_keys_are_those_that_are_known_by_now_each_once() -> None:
    assert keys(pod(claims={"a": "one", "b": "one", "c": "two"})) == (key("one"), key("two"))
    assert keys(from_template([])) == ()


@pytest.mark.spec("DN-3.6")
def test_the_claim_behind_extended_resources_is_one_of_the_pods_claims_if_the_gate_is_on() -> None:
    one = pod(claims={}, status=EXTENDED, resources=ASKED)
    assert [(each.entry, each.key) for each in wanted(one)] == [("", key("ext"))]
    assert wanted(one, extended=False) == ()


@pytest.mark.spec("DN-3.6")
def test_a_container_has_the_mapped_requests_of_extended_resources_that_it_asks_for() -> None:
    one = pod(claims={}, status=EXTENDED, resources=ASKED)
    (claim,) = wanted(one)
    assert requests(one, one.containers[0], claim) == ("container-0-request-0", "container-0-request-2")


@pytest.mark.spec("DN-3.5")
def test_a_container_has_the_requests_that_it_names_or_all_or_nothing() -> None:
    uses = [("a", "r1"), ("a", "r2"), ("a", "r1"), ("b", ""), ("b", "r1")]
    one = pod(claims={"a": "one", "b": "two", "c": "three"}, uses=uses)
    found = [requests(one, one.containers[0], each) for each in wanted(one)]
    assert found == [("r1", "r2"), ("",), ()]
