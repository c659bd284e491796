import pytest
from msgspec.structs import replace

from devlet.node.claims.answers import MAX_DEVICES, MAX_TEXT, checked
from devlet.node.claims.checks import Usable, check
from devlet.node.claims.wanted import Wanted
from devlet.objects.identifiers import ShareID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem
from tests.support.claim_specimens import GPU, NIC, claim, device, key, pod


def usable(*requests: str, count: int = 1) -> Usable:
    wanted = Wanted("gpu", key("claim"), must_be_owned=False)
    return check(claim(requests=requests or ("req",), drivers=[GPU] * count), wanted, pod())


def problem(*devices: PreparedDevice, of: Usable | None = None) -> str:
    found = checked(devices, GPU, of or usable())
    assert isinstance(found, ClaimProblem)
    return found.message


def test_what_a_driver_answers_is_kept_as_it_is() -> None:
    devices = (device("dev-claim", "v.com/c=a", "v.com/c=b", requests=("req",)), device("dev-claim-1"))
    assert checked(devices, GPU, usable(count=2)) == devices
    assert checked((), GPU, usable()) == ()


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
def test_an_answer_that_makes_no_sense_is_a_problem_of_its_claim(wrong: PreparedDevice, text: str) -> None:
    assert text in problem(wrong)


def test_a_request_of_the_claim_is_refused_if_another_driver_has_its_devices() -> None:
    wanted = Wanted("gpu", key("claim"), must_be_owned=False)
    both = check(claim(requests=("gpu", "nic"), drivers=(GPU, NIC)), wanted, pod())
    assert "request 'nic'" in problem(device("dev-claim", requests=("nic",)), of=both)


def test_a_driver_may_answer_with_its_share_or_leave_it_out() -> None:
    shared = replace(usable(), results={GPU: (replace(usable().results[GPU][0], share_id=ShareID("s")),)})
    for share in ("s", None):
        assert isinstance(checked((device("dev-claim", share=share),), GPU, shared), tuple)
    assert "the share t" in problem(device("dev-claim", share="t"), of=shared)


def test_all_problems_are_told() -> None:
    text = problem(PreparedDevice("", "d"), device("e", "x"))
    assert "without pool" in text and "'x'" in text


@pytest.mark.spec("DN-3.5")
def test_a_subrequest_is_cut_to_its_request() -> None:
    (kept,) = checked((device("dev-claim", requests=("main/sub", "main/other")),), GPU, usable("main/sub"))  # type: ignore[misc]
    assert kept.requests == ("main",)


def test_the_same_cdi_device_may_stand_for_two_devices() -> None:
    assert isinstance(
        checked((device("dev-claim", "v.com/c=all"), device("dev-claim-1", "v.com/c=all")), GPU, usable(count=2)), tuple
    )


def test_a_device_of_an_old_api_is_named_if_it_can_be_only_one() -> None:
    nameless = PreparedDevice("", "", cdi_devices=("v.com/c=a",))
    (found,) = checked((nameless,), GPU, usable(), legacy=True)  # type: ignore[misc]
    assert (found.pool, found.device, found.cdi_devices) == ("pool", "dev-claim", ("v.com/c=a",))
    assert checked((nameless,), GPU, usable(count=2), legacy=True) == (nameless,)


def test_there_is_a_limit_on_devices() -> None:
    assert str(MAX_DEVICES) in problem(*[device(f"d{i}") for i in range(MAX_DEVICES + 1)])


def test_there_is_a_limit_on_the_names_of_an_answer() -> None:
    names = [f"v.com/c={'a' * 1000}{i}" for i in range(MAX_TEXT // 1000 + 1)]
    assert f"more than {MAX_TEXT}" in problem(device("d", *names))
