import pytest
from msgspec.structs import replace

from devlet.errors import NotPrepared
from devlet.node.claims.checks import MAX_DEVICES, MAX_TEXT, UsableClaim, check, check_answer
from devlet.node.claims.pod_claims import PodClaim, base_request
from devlet.objects.documents import view
from devlet.objects.identifiers import ShareID
from devlet.objects.types.claim import PreparedDevice, ResourceClaim
from devlet.plugins.dra import ClaimProblem
from tests.support.claim_specimens import GPU, NIC, claim, device, key, pod

DIRECT = PodClaim("gpu", key("claim"), must_be_owned=False)
MADE = PodClaim("gpu", key("claim"), must_be_owned=True)


@pytest.mark.spec("DN-10.C01")
def test_a_usable_claim_has_its_uid_its_requests_and_the_devices_of_each_driver() -> None:
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
def test_a_claim_from_a_template_must_be_created_for_the_pod() -> None:
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
    assert base_request("gpu/big") == base_request("gpu") == "gpu"


def usable(*requests: str, count: int = 1) -> UsableClaim:
    wanted = PodClaim("gpu", key("claim"), must_be_owned=False)
    return check(claim(requests=requests or ("req",), drivers=[GPU] * count), wanted, pod())


def problem(*devices: PreparedDevice, of: UsableClaim | None = None) -> str:
    found = check_answer(devices, GPU, of or usable())
    assert isinstance(found, ClaimProblem)
    return found.message


def test_a_valid_answer_is_kept_unchanged() -> None:
    devices = (device("dev-claim", "v.com/c=a", "v.com/c=b", requests=("req",)), device("dev-claim-1"))
    assert check_answer(devices, GPU, usable(count=2)) == devices
    assert check_answer((), GPU, usable()) == ()


@pytest.mark.spec("DN-11.20")
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (PreparedDevice("", "d"), "a device without pool"),
        (PreparedDevice("pool", ""), "a device without name"),
        (device("d", "not-cdi"), "'not-cdi' is not the name of a CDI device"),
        (device("d", "v.com/c="), "is not the name of a CDI device"),
        (device("d", "v.com/c=a", "v.com/c=a"), "names the CDI device v.com/c=a twice"),
        (device("dev-claim", requests=("other",)), "request 'other', for which the claim has no device of this driver"),
        (device("d"), "device pool/d, which is not allocated to the claim (allocated of this driver: pool/dev-claim)"),
        (PreparedDevice("other", "dev-claim"), "device other/dev-claim, which is not allocated to the claim"),
        (device("dev-claim", share="s"), "the share s, which is not allocated to the claim"),
    ],
)
def test_an_invalid_answer_is_a_problem_of_its_claim(wrong: PreparedDevice, text: str) -> None:
    assert text in problem(wrong)


def test_a_driver_may_not_name_a_request_of_another_driver() -> None:
    wanted = PodClaim("gpu", key("claim"), must_be_owned=False)
    both = check(claim(requests=("gpu", "nic"), drivers=(GPU, NIC)), wanted, pod())
    assert "request 'nic'" in problem(device("dev-claim", requests=("nic",)), of=both)


def test_a_driver_may_name_the_share_or_leave_it_out() -> None:
    shared = replace(usable(), results={GPU: (replace(usable().results[GPU][0], share_id=ShareID("s")),)})
    for share in ("s", None):
        assert isinstance(check_answer((device("dev-claim", share=share),), GPU, shared), tuple)
    assert "the share t" in problem(device("dev-claim", share="t"), of=shared)


def test_all_problems_of_an_answer_are_reported() -> None:
    text = problem(PreparedDevice("", "d"), device("e", "x"))
    assert "without pool" in text and "'x'" in text


@pytest.mark.spec("DN-3.5")
def test_a_subrequest_is_stored_as_its_request() -> None:
    (kept,) = check_answer((device("dev-claim", requests=("main/sub", "main/other")),), GPU, usable("main/sub"))  # type: ignore[misc]
    assert kept.requests == ("main",)


def test_the_same_cdi_device_may_stand_for_two_devices() -> None:
    assert isinstance(
        check_answer((device("dev-claim", "v.com/c=all"), device("dev-claim-1", "v.com/c=all")), GPU, usable(count=2)),
        tuple,
    )


def test_a_legacy_answer_is_completed_if_only_one_device_is_allocated() -> None:
    nameless = PreparedDevice("", "", cdi_devices=("v.com/c=a",))
    (found,) = check_answer((nameless,), GPU, usable(), legacy=True)  # type: ignore[misc]
    assert (found.pool, found.device, found.cdi_devices) == ("pool", "dev-claim", ("v.com/c=a",))
    assert check_answer((nameless,), GPU, usable(count=2), legacy=True) == (nameless,)


def test_the_number_of_devices_in_an_answer_is_limited() -> None:
    assert str(MAX_DEVICES) in problem(*[device(f"d{i}") for i in range(MAX_DEVICES + 1)])


def test_the_size_of_the_names_in_an_answer_is_limited() -> None:
    names = [f"v.com/c={'a' * 1000}{i}" for i in range(MAX_TEXT // 1000 + 1)]
    assert f"more than {MAX_TEXT}" in problem(device("d", *names))
