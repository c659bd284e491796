"""Views of a node, and of the selectors that choose nodes by label or name.

`capacity` is the total of the node, `allocatable` the part that pods may use.
"""

from msgspec import field

from devlet.objects.identifiers import NodeName
from devlet.objects.types.meta import Nullable, ObjectMeta, QuantityText, View, empty_if_null

__all__ = [
    "Node",
    "NodeAddress",
    "NodeCondition",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "NodeSystemInfo",
    "Taint",
]


class NodeSelectorRequirement(View, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True, kw_only=True):
    """A term. All of its requirements must hold; a term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View, frozen=True, kw_only=True):
    """A node selector. One of its terms must match."""

    node_selector_terms: Nullable[NodeSelectorTerm] = ()

    def __post_init__(self) -> None:
        empty_if_null(self, "node_selector_terms")


class Taint(View, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(View, frozen=True, kw_only=True):
    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(View, frozen=True, kw_only=True):
    type: str = ""
    address: str = ""


class NodeSystemInfo(View, frozen=True, kw_only=True):
    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class NodeStatus(View, frozen=True, kw_only=True):
    capacity: dict[str, QuantityText] = field(default_factory=dict)
    allocatable: dict[str, QuantityText] = field(default_factory=dict)
    phase: str = ""
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    declared_features: tuple[str, ...] = ()


class Node(View, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> NodeName:
        return NodeName(self.metadata.name)
