"""Decisions about one pod, without a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.control.reservations import FULL
from devlet.control.scheduler.decision import (
    UNSCHEDULABLE,
    Deallocate,
    GiveBack,
    Refusal,
    RemoveLeftOver,
    Search,
    Step,
    decide,
)
from devlet.control.scheduler.placing import Assignment
from devlet.control.scheduler.queue import Wake
from devlet.control.scheduler.subject import Subject, read_subject
from devlet.control.taints.device_taints import Taint, TaintsOf
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DeviceClassName, NodeName, ObjectKey, ResourceName
from devlet.objects.types.claim import ResourceClaim
from devlet.objects.types.pod import Pod
from devlet.objects.types.slice import DeviceTaint
from tests.support.workloads import DRIVER, claim, pod
from tests.unit.control.conftest import allocation_on

UID = "train-uid"
MINE = {"resource": "pods", "name": "train", "uid": UID}
OTHER = {"resource": "pods", "name": "other", "uid": "other-uid"}
GPU = ResourceName("example.com/gpu")
HERE = Assignment(NodeName("n1"))

Answer = Callable[[Search], Assignment | Refusal | None]


@dataclass
class FakeView:
    """A `View` with the names of the claims for which each answer is yes."""

    in_flight: Sequence[str] = ()
    failed: Sequence[str] = ()
    lost: Sequence[ResourceClaim] = ()
    overlapping: Sequence[str] = ()
    classes: Sequence[str] = (DRIVER,)
    tainted: Sequence[str] = ()  # devices
    left_over: ResourceClaim | None = None
    taints_of: TaintsOf = field(init=False)

    def __post_init__(self) -> None:
        taint = Taint(DeviceTaint(key="sick", effect="NoSchedule"))
        self.taints_of = lambda device: (taint,) if device.device in self.tainted else ()

    def is_in_flight(self, claim: ObjectKey) -> bool:
        return claim[1] in self.in_flight

    def has_class(self, name: DeviceClassName) -> bool:
        return name in self.classes

    def has_failed(self, claim: ResourceClaim) -> bool:
        return claim.name in self.failed

    def lost_claims(self, pod: Pod) -> Sequence[ResourceClaim]:
        return self.lost

    def overlap(self, claim: ResourceClaim) -> str:
        return f"device of {claim.name} is allocated twice" if claim.name in self.overlapping else ""

    def left_over_claim(self, pod: Pod) -> ResourceClaim | None:
        return self.left_over


def a_claim(name: str, *users: Document, allocated: bool = True) -> ResourceClaim:
    status = {"allocation": allocation_on("n1", f"device-{name}"), "reservedFor": list(users)} if allocated else {}
    document = claim(name)
    document["metadata"]["uid"] = f"{name}-uid"
    return view(ResourceClaim, {**document, "status": status})


def subject(*claims: ResourceClaim, requests: Document | None = None, **spec: Any) -> Subject:
    document = pod("train", requests=requests or {}, **spec)
    document["metadata"]["uid"] = UID
    document["spec"]["resourceClaims"] = [{"name": each.name, "resourceClaimName": each.name} for each in claims]
    known = {str(each.name): each for each in claims}
    found = read_subject(view(Pod, document), lambda _, name: known.get(name), {GPU: DeviceClassName(DRIVER)})
    assert isinstance(found, Subject), found
    return found


def nowhere(_: Search) -> None:
    return None


def decided(subject: Subject, view: FakeView, answer: Answer = nowhere) -> tuple[list[Step], Assignment | Refusal]:
    """Run a decision. Return its steps and its outcome."""
    decision, steps, reply = decide(subject, view), list[Step](), None
    while True:
        try:
            step = decision.send(reply)
        except StopIteration as end:
            return steps, end.value
        steps.append(step)
        reply = answer(step) if isinstance(step, Search) else None


FREE, WAITING = a_claim("free"), a_claim("waiting", allocated=False)
OWN, SHARED, OTHERS = a_claim("own", MINE), a_claim("shared", MINE, OTHER), a_claim("others", OTHER)
FULLY_USED = a_claim("full", *({"resource": "pods", "name": f"p{i}", "uid": f"u{i}"} for i in range(256)))
LEFT_OVER = a_claim("left-over", MINE)


@pytest.mark.parametrize(
    ("one", "known", "steps", "outcome"),
    [
        pytest.param(
            subject(WAITING),
            FakeView(in_flight=["waiting"]),
            [],
            Refusal(Wake.ITSELF, "resource claim default/waiting is in the process of being allocated", transient=True),
            id="a claim in flight",
        ),
        pytest.param(
            subject(WAITING),
            FakeView(classes=[]),
            [],
            Refusal(Wake.DEVICES, f"request gpu: device class {DRIVER} does not exist"),
            id="a missing class",
        ),
        pytest.param(
            subject(FULLY_USED), FakeView(), [], Refusal(Wake.ITSELF, FULL.format("full")), id="too many consumers"
        ),
        pytest.param(
            subject(FREE, OWN, OTHERS),
            FakeView(failed=["free", "own"]),
            [Deallocate(FREE), Deallocate(OWN)],
            Refusal(Wake.DEVICES),
            id="devices that could not be attached",
        ),
        pytest.param(
            subject(OWN, SHARED, OTHERS),
            FakeView(failed=["others"]),
            [GiveBack(OWN), GiveBack(SHARED)],
            Refusal(Wake.ITSELF, "resourceclaim others is not usable: "),
            id="devices of a shared claim that could not be attached",
        ),
        pytest.param(
            subject(OWN, nodeName="n1"),
            FakeView(lost=[OWN]),
            [Deallocate(OWN)],
            Refusal(Wake.DEVICES),
            id="a claim that no driver can prepare",
        ),
        pytest.param(
            subject(FREE, SHARED, OTHERS),
            FakeView(overlapping=["free", "shared", "others"]),
            [Deallocate(FREE), GiveBack(SHARED)],
            Refusal(Wake.DEVICES, "device of free is allocated twice", transient=True, overlapping=True),
            id="devices that are allocated twice",
        ),
        pytest.param(
            subject(FREE), FakeView(tainted=["device-free"]), [Deallocate(FREE)], Refusal(Wake.DEVICES), id="a taint"
        ),
        pytest.param(
            subject(OWN), FakeView(tainted=["device-own"]), [Search()], HERE, id="a taint after the reservation"
        ),
        pytest.param(
            subject(requests={GPU: "1"}),
            FakeView(left_over=LEFT_OVER),
            [RemoveLeftOver(LEFT_OVER), Search()],
            HERE,
            id="a claim that an interrupted attempt left over",
        ),
        pytest.param(subject(), FakeView(left_over=LEFT_OVER), [Search()], HERE, id="no extended resources"),
        pytest.param(
            subject(OWN, nodeName="n1"), FakeView(overlapping=["own"]), [Search()], HERE, id="a pod that has its node"
        ),
        pytest.param(subject(WAITING, FREE, OWN, SHARED), FakeView(), [Search()], HERE, id="no obstacle"),
    ],
)
def test_obstacles_are_removed_or_reported_before_nodes_are_searched(
    one: Subject, known: FakeView, steps: list[Step], outcome: Assignment | Refusal
) -> None:
    assert decided(one, known, lambda _: HERE) == (steps, outcome)


def test_a_taint_of_a_claim_that_another_pod_uses_keeps_further_pods_away() -> None:
    steps, outcome = decided(subject(OTHERS), FakeView(tainted=["device-others"]))
    assert isinstance(outcome, Refusal) and (steps, outcome.wake_on) == ([], Wake.DEVICES)
    assert outcome.reason.startswith("resourceclaim others cannot be shared: ") and "sick" in outcome.reason


def test_of_several_claims_the_first_whose_release_helps_is_deallocated() -> None:
    one = subject(FREE, OWN, SHARED, WAITING)
    helps: Answer = lambda search: HERE if search.freed == (OWN,) else None  # noqa: E731
    steps, outcome = decided(one, FakeView(), helps)
    assert steps == [Search(), Search((FREE,)), Search((OWN,)), Deallocate(OWN)]
    assert outcome == Refusal(Wake.DEVICES)


def test_all_are_deallocated_if_no_single_one_helps() -> None:
    helps: Answer = lambda search: HERE if len(search.freed) == 2 else None  # noqa: E731
    steps, _ = decided(subject(FREE, OWN), FakeView(), helps)
    assert steps[-3:] == [Search((FREE, OWN)), Deallocate(FREE), Deallocate(OWN)]


def test_a_pod_that_fits_nowhere_gives_up_its_reservations() -> None:
    steps, outcome = decided(subject(SHARED), FakeView())
    assert (steps, outcome) == ([Search(), GiveBack(SHARED)], Refusal(Wake.DEVICES))
    assert decided(subject(OTHERS), FakeView()) == ([Search()], UNSCHEDULABLE)


def test_a_search_may_be_answered_with_a_known_refusal() -> None:
    assert decided(subject(FREE), FakeView(), lambda _: UNSCHEDULABLE) == ([Search()], UNSCHEDULABLE)


CLAIMS = (FREE, WAITING, OWN, SHARED, OTHERS, FULLY_USED)
NAMES = [str(each.name) for each in CLAIMS]
names = st.lists(st.sampled_from(NAMES), unique=True)


@given(st.data(), st.lists(st.sampled_from(CLAIMS), unique_by=id), st.booleans())
def test_a_decision_frees_only_what_no_other_pod_uses(
    data: st.DataObject, claims: list[ResourceClaim], is_placed: bool
) -> None:
    one = subject(*claims, nodeName="n1" if is_placed else "")
    known = FakeView(
        in_flight=data.draw(names), failed=data.draw(names), overlapping=data.draw(names), tainted=data.draw(names)
    )
    known.tainted = [f"device-{name}" for name in known.tainted]
    answers = data.draw(st.lists(st.sampled_from([HERE, None, UNSCHEDULABLE])))
    given_answers: list[Assignment | Refusal | None] = []

    def answer(_: Search) -> Assignment | Refusal | None:
        given_answers.append(answers.pop() if answers else None)
        return given_answers[-1]

    steps, outcome = decided(one, known, answer)
    searches = [step for step in steps if isinstance(step, Search)]
    writes = [step for step in steps if not isinstance(step, Search)]
    for write in writes:
        users = {user.uid for user in write.claim.status.reserved_for}
        assert (isinstance(write, GiveBack) and UID in users) or users <= {UID}
    assert not (is_placed and writes)
    assert len({id(write.claim) for write in writes}) == len(writes)
    assert [search.freed for search in searches[:1]] == [()] * bool(searches)
    assert all(one.is_only_user(each) for search in searches for each in search.freed)
    if isinstance(outcome, Assignment):
        assert (len(searches), writes, given_answers) == (1, [], [HERE])
    elif writes:
        assert outcome.wake_on or outcome.reason
    elif outcome is not UNSCHEDULABLE:
        assert outcome.reason
