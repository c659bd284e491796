"""What the store does differently for certain kinds.

Everything that is special about a kind in the store is in the table `STRATEGIES`. Custom resources and kinds that are
not in the table have the default strategy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from devlet.cluster.client import DeleteOptions
from devlet.cluster.store import claims, pods
from devlet.cluster.store.records import Newest
from devlet.objects.documents import Document
from devlet.objects.kinds import Kind


def _nothing(*_: object) -> None:
    """Change nothing."""


def _at_once(_document: Document, _options: DeleteOptions) -> int:
    return 0


def _without_content(_document: Document) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Deletion:
    """How an object is deleted. An object without finalizers, grace period and content is removed at once."""

    protected: frozenset[str] = frozenset()  # the names of objects that cannot be deleted
    grace: Callable[[Document, DeleteOptions], int] = _at_once  # seconds
    has_content: Callable[[Document], bool] = _without_content
    mark: Callable[[Document, bool], None] = _nothing  # the marked copy, and whether it is marked for the first time
    is_always_marked: bool = False  # an object that is removed at once is last seen with the time of its deletion


@dataclass(frozen=True, slots=True)
class Strategy:
    """The steps of a write that depend on the kind. Each function changes the document that it gets first."""

    accepts_status: bool = False  # a client may set the status when it creates the object
    before_defaults: Callable[[Document], None] = _nothing
    after_defaults: Callable[[Document, datetime], None] = _nothing
    admit: Callable[[Document, Newest], None] = _nothing  # fills in what other objects decide
    admitted_fields: frozenset[str] = frozenset()  # of spec; they have no manager unless the client sent them
    status_keeps: tuple[str, ...] = ("ownerReferences",)  # the metadata that an update of the status cannot change
    update_status: Callable[[Document, Document], None] = _nothing  # gets the new and the old object
    deletion: Deletion = Deletion()
    is_collected: bool = True  # by the garbage collector


_DEFAULT = Strategy()
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


def strategy_of(kind: Kind) -> Strategy:
    return STRATEGIES.get(kind.key, _DEFAULT)


def _namespace_has_content(namespace: Document) -> bool:
    return bool(namespace.get("spec", {}).get("finalizers"))


def _terminate(namespace: Document, _: bool) -> None:
    namespace["status"] = {**namespace.get("status", {}), "phase": "Terminating"}


# By the key of the kind.
STRATEGIES = {
    "pods": Strategy(
        before_defaults=pods.set_account,
        after_defaults=pods.report_gates,
        admit=pods.set_priority,
        admitted_fields=pods.ADMITTED_FIELDS,
        deletion=Deletion(grace=pods.grace, mark=pods.count_deletion, is_always_marked=True),
    ),
    # A node registers itself together with its status.
    "nodes": Strategy(accepts_status=True, status_keeps=()),
    "namespaces": Strategy(
        deletion=Deletion(
            protected=frozenset({"default", "kube-system", "kube-public"}),
            has_content=_namespace_has_content,
            mark=_terminate,
        )
    ),
    "events": Strategy(is_collected=False),  # they expire
    "resourceclaims.resource.k8s.io": Strategy(status_keeps=_METADATA, update_status=claims.drop_released_devices),
    "devicetaintrules.resource.k8s.io": Strategy(status_keeps=_METADATA),
    "resourcepoolstatusrequests.resource.k8s.io": Strategy(status_keeps=_METADATA),
}
