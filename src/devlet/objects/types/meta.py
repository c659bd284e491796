"""Common parts of all Kubernetes objects, as typed views for reading.

A view is decoded from a document (`documents.view`) and holds only the fields that devlet uses. To change an object,
change its document. Times and quantities stay strings as on the wire (`objects.values` parses them). Optional fields
that distinguish "unset" from zero are None if they are not set.
"""

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

__all__ = [
    "Condition",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "LocalObjectReference",
    "Nullable",
    "ObjectMeta",
    "ObjectReference",
    "OwnerReference",
    "QuantityText",
    "Raw",
    "View",
    "empty_if_null",
]

T = TypeVar("T")

Raw = dict[str, Any]  # a part that devlet passes on without looking inside
QuantityText = str | int | float  # JSON numbers are also valid quantities

# Some lists are written as null when they are empty. They are accepted as null, and are never None afterwards.
if TYPE_CHECKING:
    Nullable = tuple[T, ...]
else:
    Nullable = tuple[T, ...] | None


class View(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Base of all views. Unknown keys are dropped."""


def empty_if_null(view: View, *fields: str) -> None:
    """Replace null lists with empty ones. For `__post_init__` of views with nullable lists."""
    for name in fields:
        force_setattr(view, name, getattr(view, name) or ())


class OwnerReference(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(View, frozen=True, kw_only=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that manages this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    @property
    def is_deleting(self) -> bool:
        return self.deletion_timestamp is not None


class ListMeta(View, frozen=True, kw_only=True):
    self_link: str = ""
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None


class Condition(View, frozen=True, kw_only=True):
    """A condition in the form that newer kinds use; pods, nodes and namespaces have their own variants."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class LabelSelectorRequirement(View, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(View, frozen=True, kw_only=True):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ObjectReference(View, frozen=True, kw_only=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class LocalObjectReference(View, frozen=True, kw_only=True):
    name: str = ""
