from pathlib import Path
from typing import Any

import pytest

from devlet.errors import InvalidInput
from devlet.testing.grpc_faults import Call, Faults, matches
from devlet.wire.dra_v1 import api_pb2 as dra

PREPARE = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"


def made(path: str = PREPARE, *requests: bytes) -> Call:
    return Call(path, Path("/s"), list(requests))


def happened(faults: Faults, count: int, path: str = PREPARE, *, after: bool = False) -> list[bool]:
    """For each of so many calls, whether something does."""
    return [bool(faults.meeting(made(path), after=after)) for _ in range(count)]


@pytest.mark.parametrize(
    ("method", "does"),
    [
        (PREPARE, True),
        ("NodePrepareResources", True),
        ("*", True),
        ("/k8s.io.kubelet.pkg.apis.dra.*", True),
        ("*Prepare*", True),
        ("NodeUnprepareResources", False),
        ("/v1beta1.*", False),
        ("PrepareResources", False),
    ],
)
def test_a_method_is_named_by_its_last_part_its_path_or_a_pattern(method: str, does: bool) -> None:
    assert matches(method, PREPARE) is does


def test_a_fault_happens_so_many_times() -> None:
    faults = Faults()
    rule = faults.drop("*", times=2)
    assert happened(faults, 4) == [True, True, False, False]
    assert rule.hits == 2


def test_a_fault_spares_the_first_ones() -> None:
    faults = Faults()
    faults.drop("*", skip=1, times=1)
    assert happened(faults, 3) == [False, True, False]


def test_a_fault_happens_by_chance_and_the_same_with_the_same_seed() -> None:
    one, other = Faults(seed=4), Faults(seed=4)
    for faults in (one, other):
        faults.drop("*", probability=0.5)
    seen = happened(one, 50)
    assert happened(other, 50) == seen
    assert 5 < sum(seen) < 45


def test_a_predicate_sees_what_is_asked() -> None:
    faults = Faults()
    rule = faults.drop("NodePrepareResources", when=lambda call: call.request.claims[0].name == "gpu", skip=1)
    for name in ("gpu", "nic", "gpu"):
        message = dra.NodePrepareResourcesRequest(claims=[dra.Claim(name=name)])
        faults.meeting(made(PREPARE, message.SerializeToString()), after=False)
    assert rule.hits == 1


def test_a_fault_after_the_work_does_not_happen_before_it() -> None:
    faults = Faults()
    faults.error("*", after=True)
    assert happened(faults, 1) == [False]
    assert happened(faults, 1, after=True) == [True]


def test_several_faults_happen_in_their_order() -> None:
    faults, call = Faults(), made()
    faults.delay("*", 1.0)
    faults.error("*", "UNAVAILABLE")
    faults.meeting(call, after=False)
    assert call.faults == ["delay of 1 s", "error UNAVAILABLE"]


def test_what_has_ended_does_not_happen() -> None:
    faults = Faults()
    rule = faults.drop("*")
    rule.end()
    assert happened(faults, 1) == [False]
    faults.drop("*")
    faults.recover()
    assert happened(faults, 1) == [False]


def test_a_status_that_does_not_exist_is_an_error_at_once() -> None:
    with pytest.raises(InvalidInput, match="there is no gRPC status 'INTERNALL': did you mean 'INTERNAL'"):
        Faults().error("*", "INTERNALL")


def test_an_option_that_does_not_exist_is_an_error_at_once() -> None:
    faults = Faults()
    misspelt: Any = {"tiems": 1}
    for fault in (faults.drop, faults.hang, faults.error, faults.corrupt, faults.duplicate, faults.reorder):
        with pytest.raises(InvalidInput, match="no option of a fault 'tiems': did you mean 'times'"):
            fault("*", **misspelt)
    assert faults.meeting(made(), after=False) == []


def test_calls_are_found_by_method() -> None:
    faults = Faults()
    faults.calls += [made(), made("/v1beta1.DevicePlugin/Allocate")]
    faults.calls[1].status = "OK"
    assert [call.method for call in faults.asked()] == ["NodePrepareResources", "Allocate"]
    assert [call.method for call in faults.asked("Allocate")] == ["Allocate"]
    assert faults.over() == faults.wait_asked("Allocate") == [faults.calls[1]]
    faults.forget_calls()
    assert faults.asked() == []


def test_a_call_without_messages_has_no_meaning() -> None:
    assert (made().request, made().answer) == (None, None)
    answered = made()
    answered.answers.append(
        dra.NodePrepareResourcesResponse(claims={"uid": dra.NodePrepareResourceResponse()}).SerializeToString()
    )
    assert list(answered.answer.claims) == ["uid"]


def test_a_failed_wait_shows_the_calls() -> None:
    faults = Faults()
    rule = faults.drop("Allocate")
    call = made()
    faults.calls.append(call)
    with pytest.raises(AssertionError, match=r"0 of 1 calls of Allocate within 0 s\n.*NodePrepareResources: under way"):
        faults.wait_asked("Allocate", within=0)
    call.status, call.faults = "OK", ["hang"]
    with pytest.raises(AssertionError, match=r"drop of Allocate did not happen within 0 s\n.*: OK \(hang\)"):
        rule.wait_hit(within=0)


@pytest.mark.anyio
async def test_tasks_wait_for_calls_and_for_faults() -> None:
    faults = Faults()
    rule = faults.drop("*")
    faults.calls.append(made())
    faults.meeting(faults.calls[0], after=False)
    await rule.until_hit()
    rule.wait_hit()
    assert await faults.until_asked("NodePrepareResources") == faults.calls
    faults.calls[0].status = "OK"
    assert await faults.until_over("*") == faults.calls
