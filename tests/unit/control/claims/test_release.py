from itertools import product

import pytest

from devlet.control.claims.pod_outcomes import PodOutcome
from devlet.control.claims.release import Release, is_pod, owning_pod, plan
from devlet.objects.claims.from_template import DELETE_PROTECTION
from devlet.objects.types.claim import AllocationResult, ConsumerReference, ResourceClaim, ResourceClaimStatus
from devlet.objects.types.meta import ObjectMeta, OwnerReference

OWNER = OwnerReference(api_version="v1", kind="Pod", name="owner", uid="owner", controller=True)
MINE = (DELETE_PROTECTION,)


def pod(uid: str) -> ConsumerReference:
    return ConsumerReference(resource="pods", name=uid, uid=uid)


GROUP = ConsumerReference(api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="g")


def claim(
    *consumers: ConsumerReference,
    allocated: bool = True,
    finalizers: tuple[str, ...] = MINE,
    deleting: bool = False,
    owner: OwnerReference | None = None,
) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(
            name="c",
            finalizers=finalizers,
            deletion_timestamp="2025-01-01T00:00:00Z" if deleting else None,
            owner_references=(owner,) if owner else (),
        ),
        status=ResourceClaimStatus(reserved_for=consumers, allocation=AllocationResult() if allocated else None),
    )


@pytest.mark.spec("DA-6.2a")
def test_consumers_that_are_done_are_removed_and_all_others_kept() -> None:
    outcomes = {
        "done": PodOutcome.FINISHED,
        "gone": PodOutcome.GONE,
        "lives": PodOutcome.ALIVE,
        "maybe": PodOutcome.UNKNOWN,
        "g": PodOutcome.GONE,
    }
    found = plan(claim(pod("done"), pod("lives"), pod("gone"), pod("maybe"), GROUP), outcomes)
    assert found == Release((pod("lives"), pod("maybe"), GROUP))
    assert not is_pod(GROUP)


def test_a_claim_in_use_stays_as_it_is_even_if_it_is_being_deleted() -> None:
    for deleting in (True, False):
        assert (
            plan(claim(pod("a"), deleting=deleting, owner=OWNER), {"a": PodOutcome.ALIVE, "owner": PodOutcome.GONE})
            is None
        )


@pytest.mark.spec("DA-6.2b")
def test_a_claim_is_deallocated_with_its_last_consumer() -> None:
    gone = {"a": PodOutcome.GONE}
    assert plan(claim(pod("a")), gone) == Release((), deallocate=True, unprotect=True)
    assert plan(claim(pod("a"), finalizers=()), gone) == Release(())
    assert plan(claim(pod("a"), finalizers=("x",)), gone) == Release(())


@pytest.mark.spec("DA-6.2b")
def test_a_claim_that_was_not_in_use_is_left_alone() -> None:
    for allocated, finalizers in product((True, False), ((), MINE)):
        assert plan(claim(allocated=allocated, finalizers=finalizers), {}) is None


@pytest.mark.spec("DA-6.2c")
def test_a_deleted_claim_takes_one_write_unless_it_has_another_finalizer() -> None:
    for consumers, allocated in product(((), (pod("a"),)), (True, False)):
        found = plan(claim(*consumers, allocated=allocated, deleting=True), {"a": PodOutcome.GONE})
        assert found == Release(unprotect=True)
    held = (*MINE, "x")
    assert plan(claim(deleting=True, finalizers=held), {}) == Release((), deallocate=True, unprotect=True)
    assert plan(claim(deleting=True, finalizers=held, allocated=False), {}) == Release(unprotect=True)
    assert plan(claim(deleting=True, finalizers=("x",)), {}) is None


@pytest.mark.spec("DA-6.2d")
@pytest.mark.parametrize("outcome", [PodOutcome.FINISHED, PodOutcome.GONE])
def test_a_claim_whose_owner_is_done_is_deleted(outcome: PodOutcome) -> None:
    outcomes = {"owner": outcome}
    assert plan(claim(pod("owner"), owner=OWNER), outcomes) == Release(delete=True, unprotect=True)
    assert plan(claim(owner=OWNER, finalizers=()), outcomes) == Release(delete=True)
    assert plan(claim(owner=OWNER, deleting=True), outcomes) == Release(unprotect=True)
    held = plan(claim(pod("owner"), owner=OWNER, finalizers=(*MINE, "x")), outcomes)
    assert held == Release((), deallocate=True, delete=True, unprotect=True)


@pytest.mark.spec("DA-6.2d")
@pytest.mark.parametrize("outcomes", [{"owner": PodOutcome.ALIVE}, {"owner": PodOutcome.UNKNOWN}, {}])
def test_a_claim_whose_owner_is_alive_or_unknown_is_kept(outcomes: dict[str, PodOutcome]) -> None:
    assert plan(claim(owner=OWNER, allocated=False), outcomes) is None
    released = plan(claim(pod("a"), owner=OWNER), outcomes | {"a": PodOutcome.GONE})
    assert released == Release((), deallocate=True, unprotect=True)


def test_a_surplus_claim_is_deleted_unless_it_is_allocated() -> None:
    lives = {"owner": PodOutcome.ALIVE}
    assert plan(claim(owner=OWNER, allocated=False), lives, surplus=True) == Release(delete=True, unprotect=True)
    assert plan(claim(owner=OWNER), lives, surplus=True) is None


@pytest.mark.parametrize(
    "change", [{"kind": "PodGroup"}, {"api_version": "scheduling.k8s.io/v1"}, {"controller": False}]
)
def test_only_the_controlling_pod_is_an_owner(change: dict[str, object]) -> None:
    fields = {"api_version": "v1", "kind": "Pod", "name": "owner", "uid": "owner", "controller": True} | change
    other = OwnerReference(**fields)  # type: ignore[arg-type]
    assert owning_pod(claim(owner=other)) is None and owning_pod(claim(owner=OWNER)) == OWNER
    assert plan(claim(owner=other), {"owner": PodOutcome.GONE}) is None


def test_a_release_that_was_done_is_not_planned_again() -> None:
    """Carrying out a plan step by step ends in a state without a plan."""
    for finalizers, deleting, allocated in product(((), MINE, ("x",), (*MINE, "x")), (True, False), (True, False)):
        for consumers, outcome in product(((), (pod("a"),)), (PodOutcome.ALIVE, PodOutcome.FINISHED)):
            state = claim(*consumers, allocated=allocated, finalizers=finalizers, deleting=deleting, owner=OWNER)
            outcomes = {"a": PodOutcome.GONE, "owner": outcome}
            if (found := plan(state, outcomes)) is None:
                continue
            left = tuple(f for f in finalizers if not (found.unprotect and f == DELETE_PROTECTION))
            ends = deleting or found.delete
            if ends and not left:
                continue
            after = claim(
                *(consumers if found.kept is None else found.kept),
                allocated=allocated and not found.deallocate,
                finalizers=left,
                deleting=ends,
                owner=OWNER,
            )
            assert plan(after, outcomes) is None
