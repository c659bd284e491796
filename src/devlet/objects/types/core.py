"""Views of the small objects around pods: namespaces, configuration, accounts, events, leases.

A lease expires `lease_duration_seconds` after `renew_time`, by the reader's clock.

Values in a secret's `data` and a config map's `binaryData` are base64 text, as on the wire.
"""

from msgspec import field

from devlet.objects.types.meta import LocalObjectReference, ObjectMeta, ObjectReference, View

__all__ = [
    "NODE_LEASES",
    "ConfigMap",
    "Event",
    "EventSeries",
    "EventSource",
    "Lease",
    "LeaseSpec",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "Secret",
    "ServiceAccount",
]


class NamespaceSpec(View, frozen=True, kw_only=True):
    finalizers: tuple[str, ...] = ()


class NamespaceCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NamespaceStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[NamespaceCondition, ...] = ()


class Namespace(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ConfigMap(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = field(default_factory=dict)
    binary_data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None


class Secret(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, str] = field(default_factory=dict)
    string_data: dict[str, str] = field(default_factory=dict)
    immutable: bool | None = None


class ServiceAccount(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    secrets: tuple[ObjectReference, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    automount_service_account_token: bool | None = None


class EventSource(View, frozen=True, kw_only=True):
    component: str = ""
    host: str = ""


class EventSeries(View, frozen=True, kw_only=True):
    count: int = 0
    last_observed_time: str | None = None


class Event(View, frozen=True, kw_only=True):
    """An event in the core shape, in which events are stored."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    reason: str = ""
    message: str = ""
    action: str = ""
    type: str = ""
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    count: int = 0
    series: EventSeries | None = None


NODE_LEASES = "kube-node-lease"  # the namespace of node leases


class LeaseSpec(View, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()
