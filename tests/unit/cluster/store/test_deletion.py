from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.cluster.client import DeleteOptions, Preconditions, Propagation
from devlet.cluster.store.deletion import FOREGROUND, ORPHAN, Outcome, decide
from devlet.errors import Conflict, Forbidden
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, NAMESPACES, PODS, Resource

NOW = datetime(2025, 1, 1, 12, 0, 0, tzinfo=UTC)
AT_ONCE, IN_5, IN_30 = "2025-01-01T12:00:00Z", "2025-01-01T12:00:05Z", "2025-01-01T12:00:30Z"


def document(
    kind: str = "ConfigMap", *, spec: Document | None = None, status: Document | None = None, **metadata: Any
) -> Document:
    members: Document = {"kind": kind, "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", **metadata}}
    return members | ({"spec": spec} if spec else {}) | ({"status": status} if status else {})


def pod(*, node: str = "n1", phase: str = "Running", grace: int | None = 30, **metadata: Any) -> Document:
    spec: Document = {"nodeName": node} if node else {}
    spec |= {} if grace is None else {"terminationGracePeriodSeconds": grace}
    return document("Pod", spec=spec, status={"phase": phase}, **metadata)


def outcome(resource: Resource, document: Document, **options: Any) -> Outcome:
    return decide(resource, document, DeleteOptions(**options), NOW)


@pytest.mark.parametrize(
    ("have", "propagation", "left"),
    [
        ([], None, []),
        ([], Propagation.BACKGROUND, []),
        ([], Propagation.FOREGROUND, [FOREGROUND]),
        ([], Propagation.ORPHAN, [ORPHAN]),
        (["a/b"], None, ["a/b"]),
        (["a/b"], Propagation.FOREGROUND, ["a/b", FOREGROUND]),
        ([FOREGROUND], None, [FOREGROUND]),
        ([FOREGROUND], Propagation.FOREGROUND, [FOREGROUND]),
        ([FOREGROUND], Propagation.BACKGROUND, []),
        ([FOREGROUND, "a/b"], Propagation.ORPHAN, ["a/b", ORPHAN]),
        ([ORPHAN], Propagation.FOREGROUND, [FOREGROUND]),
    ],
)
def test_finalizers_decide_whether_the_object_waits(
    have: list[str], propagation: Propagation | None, left: list[str]
) -> None:
    found = outcome(CONFIG_MAPS, document(finalizers=have) if have else document(), propagation=propagation)
    assert found.remove is (not left)
    if left:
        assert found.document is not None
        metadata = found.document["metadata"]
        assert (metadata["finalizers"], metadata["deletionTimestamp"]) == (left, AT_ONCE)
        assert metadata["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("have", "asked", "grace"),
    [
        (pod(), None, 30),
        (pod(grace=5), None, 5),
        (pod(grace=None), None, 0),
        (pod(), 5, 5),
        (pod(), 60, 60),
        (pod(), 0, 0),
        (pod(), -3, 1),
        (pod(grace=-3), None, 1),
        (pod(node=""), 30, 0),
        (pod(phase="Succeeded"), 30, 0),
        (pod(phase="Failed"), None, 0),
        (pod(deletionTimestamp=IN_30, deletionGracePeriodSeconds=30), 5, 5),
        (pod(deletionTimestamp=IN_5, deletionGracePeriodSeconds=5), 50, None),
        (pod(deletionTimestamp=IN_5, deletionGracePeriodSeconds=5), None, None),
        (pod(deletionTimestamp=IN_5, deletionGracePeriodSeconds=5), 0, 0),
        (pod(deletionTimestamp=AT_ONCE, deletionGracePeriodSeconds=0), 9, 0),
    ],
)
def test_a_pod_takes_its_time(have: Document, asked: int | None, grace: int | None) -> None:
    """None: it stays just as it is."""
    found = outcome(PODS, have, grace_period=asked)
    assert found.remove is (grace == 0)
    if grace is None:
        assert found.document is None
    else:
        assert found.document is not None
        assert found.document["metadata"]["deletionGracePeriodSeconds"] == grace


def test_a_pod_that_goes_at_once_is_last_seen_with_the_time_of_its_deletion() -> None:
    found = outcome(PODS, pod(node="", generation=1)).document
    assert found is not None
    assert (found["metadata"]["deletionTimestamp"], found["metadata"]["generation"]) == (AT_ONCE, 2)


def test_a_pods_generation_counts_the_beginning_of_its_end_once() -> None:
    first = outcome(PODS, pod(generation=3)).document
    assert first is not None and first["metadata"]["generation"] == 4
    second = outcome(PODS, first, grace_period=5).document
    assert second is not None and second["metadata"]["generation"] == 4
    assert second["metadata"]["deletionTimestamp"] == IN_5


def test_a_marked_object_stays_as_it_is() -> None:
    once = outcome(CONFIG_MAPS, document(finalizers=["a/b"])).document
    assert once is not None
    assert outcome(CONFIG_MAPS, once) == Outcome(remove=False, document=None)


def test_the_object_that_was_given_is_not_changed() -> None:
    given = pod(finalizers=["a/b"])
    outcome(PODS, given, propagation=Propagation.FOREGROUND)
    assert given == pod(finalizers=["a/b"])


def test_a_namespace_with_content_terminates() -> None:
    found = outcome(NAMESPACES, document("Namespace", spec={"finalizers": ["kubernetes"]}, status={"phase": "Active"}))
    assert found.document is not None
    assert (found.remove, found.document["status"]) == (False, {"phase": "Terminating"})
    assert outcome(NAMESPACES, document("Namespace")).remove


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_a_protected_namespace_stays(name: str) -> None:
    with pytest.raises(Forbidden, match=f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
        outcome(NAMESPACES, {"kind": "Namespace", "metadata": {"name": name, "uid": "u", "resourceVersion": "7"}})


@pytest.mark.parametrize(
    ("wanted", "label"),
    [(Preconditions("other"), "UID"), (Preconditions("u", "6"), "ResourceVersion"), (Preconditions(""), "UID")],
)
def test_a_precondition_that_does_not_hold_is_a_conflict(wanted: Preconditions, label: str) -> None:
    with pytest.raises(Conflict, match=f"the {label} in the precondition"):
        outcome(CONFIG_MAPS, document(), preconditions=wanted)


def test_preconditions_that_hold_change_nothing() -> None:
    assert outcome(CONFIG_MAPS, document(), preconditions=Preconditions("u", "7")) == Outcome(remove=True)


def test_a_grace_period_beyond_all_times_ends_with_the_last_one() -> None:
    found = outcome(PODS, pod(), grace_period=2**63 - 1).document
    assert found is not None and found["metadata"]["deletionTimestamp"] == "9999-12-31T23:59:59Z"
