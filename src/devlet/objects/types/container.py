"""Views of a pod's containers: their requests and their state.

Init containers have the same shape; one with restart policy Always is a sidecar, which keeps running beside the
others.
"""

from msgspec import field

from devlet.objects.identifiers import ContainerName
from devlet.objects.types.meta import QuantityText, Raw, View

__all__ = [
    "Container",
    "ContainerClaim",
    "ContainerPort",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "EnvVar",
    "ResourceHealth",
    "ResourceRequirements",
    "ResourceStatus",
    "VolumeMount",
]


class ContainerClaim(View, frozen=True, kw_only=True):
    """Devices of an entry in the pod's resourceClaims; without `request`, all devices of that claim."""

    name: str = ""
    request: str = ""


class ResourceRequirements(View, frozen=True, kw_only=True):
    limits: dict[str, QuantityText] = field(default_factory=dict)
    requests: dict[str, QuantityText] = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()


class EnvVar(View, frozen=True, kw_only=True):
    name: str = ""
    value: str = ""
    value_from: Raw | None = None


class VolumeMount(View, frozen=True, kw_only=True):
    name: str = ""
    mount_path: str = ""
    read_only: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""
    mount_propagation: str | None = None
    recursive_read_only: str | None = None


class ContainerPort(View, frozen=True, kw_only=True):
    name: str = ""
    host_port: int = 0
    container_port: int = 0
    protocol: str = ""
    host_ip: str = field(default="", name="hostIP")


class ContainerRestartRuleOnExitCodes(View, frozen=True, kw_only=True):
    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(View, frozen=True, kw_only=True):
    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class Container(View, frozen=True, kw_only=True):
    name: ContainerName = ContainerName("")
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[Raw, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[Raw, ...] = ()
    liveness_probe: Raw | None = None
    readiness_probe: Raw | None = None
    startup_probe: Raw | None = None
    lifecycle: Raw | None = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: Raw | None = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    target_container_name: str = ""  # ephemeral containers only

    @property
    def is_sidecar(self) -> bool:
        """Return whether an init container keeps running after the other containers have started."""
        return self.restart_policy == "Always"


class ContainerStateWaiting(View, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(View, frozen=True, kw_only=True):
    started_at: str | None = None


class ContainerStateTerminated(View, frozen=True, kw_only=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(View, frozen=True, kw_only=True):
    """The state of a container. At most one field is set; none means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ResourceHealth(View, frozen=True, kw_only=True):
    resource_id: str = field(default="", name="resourceID")
    health: str = ""
    message: str | None = None


class ResourceStatus(View, frozen=True, kw_only=True):
    """Health of the devices of a resource, or of `claim:NAME[/REQUEST]`."""

    name: str = ""
    resources: tuple[ResourceHealth, ...] = ()


class ContainerStatus(View, frozen=True, kw_only=True):
    name: ContainerName = ContainerName("")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = field(default="", name="imageID")
    container_id: str = field(default="", name="containerID")
    started: bool | None = None
    allocated_resources: dict[str, QuantityText] = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    allocated_resources_status: tuple[ResourceStatus, ...] = ()
