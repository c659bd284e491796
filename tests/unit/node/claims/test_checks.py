import pytest

from devlet.errors import NotPrepared
from devlet.node.claims.checks import check, main
from devlet.node.claims.wanted import Wanted
from devlet.objects.documents import view
from devlet.objects.types.claim import ResourceClaim
from tests.support.claim_specimens import GPU, NIC, claim, key, pod

DIRECT = Wanted("gpu", key("claim"), must_be_owned=False)
MADE = Wanted("gpu", key("claim"), must_be_owned=True)


@pytest.mark.spec("DN-10.C01")
def test_a_claim_says_who_it_is_and_which_devices_of_which_driver_it_has() -> None:
    usable = check(claim(drivers=(GPU, NIC, GPU), requests=("a", "b/sub")), DIRECT, pod())
    assert usable.uid == "uid-claim" and usable.requests == {"a", "b"}
    assert {name: [r.device for r in results] for name, results in usable.results.items()} == {
        GPU: ["dev-claim", "dev-claim-1"],
        NIC: ["dev-claim"],
    }
    assert check(claim(drivers=()), DIRECT, pod()).results == {}


@pytest.mark.spec("DN-10.C01")
@pytest.mark.spec("DN-9.3.03")
def test_a_claim_that_is_not_allocated_cannot_be_used() -> None:
    with pytest.raises(NotPrepared, match="ResourceClaim claim is not allocated"):
        check(claim(allocated=False), DIRECT, pod())


@pytest.mark.spec("DN-10.M06")
def test_a_claim_that_is_not_reserved_for_the_pod_may_not_be_used() -> None:
    with pytest.raises(NotPrepared, match="is not allowed to use ResourceClaim claim"):
        check(claim(pods=("other",)), DIRECT, pod())


@pytest.mark.spec("DN-3.2")
def test_a_claim_from_a_template_must_be_made_for_the_pod() -> None:
    assert check(claim(owner="pod-1"), MADE, pod()).uid
    with pytest.raises(NotPrepared, match="was not created for pod pod-1"):
        check(claim(owner="other"), MADE, pod())
    with pytest.raises(NotPrepared, match="was not created for pod"):
        check(claim(), MADE, pod())


@pytest.mark.spec("DN-10.M07")
def test_a_pod_group_counts_only_with_its_gate() -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "x"}
    document = {
        "metadata": {"name": "claim", "namespace": "default", "uid": "uid-claim"},
        "status": {"allocation": {"devices": {"results": []}}, "reservedFor": [group]},
    }
    reserved = view(ResourceClaim, document)
    member = pod(schedulingGroup={"podGroupName": "g"})
    with pytest.raises(NotPrepared, match="not reserved"):
        check(reserved, DIRECT, member)
    assert check(reserved, DIRECT, member, workloads=True).uid == "uid-claim"


def test_a_subrequest_belongs_to_its_request() -> None:
    assert main("gpu/big") == main("gpu") == "gpu"
