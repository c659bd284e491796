"""Views of a pod.

A pod names its claims twice: `spec.resourceClaims` names the claim or template of an entry, and
`status.resourceClaimStatuses` the claims that were made from templates. `objects.pods.claims` combines the two.
"""

from msgspec import field

from devlet.objects.identifiers import PodName, PodUID
from devlet.objects.types.container import Container, ContainerStatus, ResourceRequirements
from devlet.objects.types.meta import (
    LocalObjectReference,
    Nullable,
    ObjectMeta,
    ObjectReference,
    QuantityText,
    Raw,
    View,
    empty_if_null,
)
from devlet.objects.types.node import NodeSelector, NodeSelectorTerm

__all__ = [
    "Affinity",
    "ExtendedResourceClaimStatus",
    "ExtendedResourceMapping",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodIP",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "Toleration",
]


class Toleration(View, frozen=True, kw_only=True):
    """A toleration. An empty key means all keys, an empty effect all effects, an empty operator Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PreferredSchedulingTerm(View, frozen=True, kw_only=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(View, frozen=True, kw_only=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(View, frozen=True, kw_only=True):
    """A term of pod affinity. It covers pods in the listed or selected namespaces, or in the pod's own namespace if
    neither is given."""

    label_selector: Raw | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Raw | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodAffinity(View, frozen=True, kw_only=True):
    """Affinity and anti-affinity to pods."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(View, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodResourceClaim(View, frozen=True, kw_only=True):
    """An entry of `resourceClaims`. One of the two names is set."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(View, frozen=True, kw_only=True):
    name: str = ""


class PodReadinessGate(View, frozen=True, kw_only=True):
    condition_type: str = ""


class PodSchedulingGroup(View, frozen=True, kw_only=True):
    pod_group_name: str | None = None


class PodSpec(View, frozen=True, kw_only=True):
    containers: Nullable[Container] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    volumes: tuple[Raw, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    dns_policy: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    share_process_namespace: bool | None = None
    security_context: Raw | None = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    overhead: dict[str, QuantityText] = field(default_factory=dict)
    topology_spread_constraints: tuple[Raw, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None

    def __post_init__(self) -> None:
        empty_if_null(self, "containers")


class PodCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class PodIP(View, frozen=True, kw_only=True):
    ip: str = ""


class PodResourceClaimStatus(View, frozen=True, kw_only=True):
    """The claim of an entry. Without a claim name, no claim was necessary."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceMapping(View, frozen=True, kw_only=True):
    """The request of a claim that provides a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(View, frozen=True, kw_only=True):
    resource_claim_name: str = ""
    request_mappings: Nullable[ExtendedResourceMapping] = ()

    def __post_init__(self) -> None:
        empty_if_null(self, "request_mappings")


class NodeAllocatableResourceClaimStatus(View, frozen=True, kw_only=True):
    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    resources: dict[str, QuantityText] | None = None


class PodStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    host_ip: str = field(default="", name="hostIP")
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    nominated_node_name: str = ""
    observed_generation: int = 0
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> PodName:
        return PodName(self.metadata.name)

    @property
    def has_started(self) -> bool:
        """Return whether one of its containers runs, or has run."""
        statuses = (*self.status.init_container_statuses, *self.status.container_statuses)
        return any(each.state.running or each.state.terminated or each.restart_count for each in statuses)

    @property
    def uid(self) -> PodUID:
        return PodUID(self.metadata.uid)

    @property
    def containers(self) -> tuple[Container, ...]:
        """Return the containers, init containers first, as they are started; ephemeral containers are left out."""
        return self.spec.init_containers + self.spec.containers

    @property
    def reference(self) -> ObjectReference:
        """Return the reference for events about the pod."""
        metadata = self.metadata
        return ObjectReference(
            kind="Pod", api_version="v1", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
        )

    @property
    def is_finished(self) -> bool:
        """Return whether all containers have ended and will not be restarted."""
        return self.status.phase in ("Succeeded", "Failed")
