"""The kinds that a cluster stores, and the resources that serve them.

A `Kind` is stored once. A `Resource` is that kind in one API version. Most kinds have one version; those of
resource.k8s.io have several, and Event has two shapes in two groups with a common storage.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from devlet.errors import NotFound


@dataclass(frozen=True)
class Kind:
    kind: str
    plural: str
    api_versions: tuple[str, ...]  # served; the first one is preferred
    namespaced: bool = True
    storage: str = ""  # API version of the stored document; by default the preferred version
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    counts_generation: bool = False  # metadata.generation starts at 1 and grows with each change of the spec
    delete_returns_object: bool = False  # otherwise it returns a Status
    update_creates: bool = False  # PUT of a name that does not exist creates the object
    update_needs_version: bool = False  # PUT without resourceVersion is rejected
    list_kind: str = ""

    @cached_property
    def storage_version(self) -> str:
        return self.storage or self.api_versions[0]

    @cached_property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @cached_property
    def key(self) -> str:
        """Return the kind's name in storage: the plural with the group of its storage version."""
        return qualified(self.plural, self.storage_version)


@dataclass(frozen=True)
class Resource:
    """A kind in one of its API versions, as clients address it."""

    kind: Kind
    api_version: str

    @cached_property
    def group(self) -> str:
        return group_of(self.api_version)

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def plural(self) -> str:
        return self.kind.plural

    @property
    def namespaced(self) -> bool:
        return self.kind.namespaced

    @cached_property
    def name(self) -> str:
        """Return the name used in messages: `pods`, `resourceclaims.resource.k8s.io`."""
        return qualified(self.plural, self.api_version)

    @cached_property
    def kind_name(self) -> str:
        """Return the name used in messages about invalid objects: `Pod`, `ResourceClaim.resource.k8s.io`."""
        return qualified(self.kind.kind, self.api_version)

    @property
    def path(self) -> str:
        """Return the URL path below which the resource is served, without namespace."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}"


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def qualified(name: str, api_version: str) -> str:
    group = group_of(api_version)
    return f"{name}.{group}" if group else name


class Catalogue:
    """All kinds of one cluster. Kinds (custom resources) can be added at run time."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[str, Kind] = {}
        self._resources: dict[tuple[str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        # Return a copy: callers iterate across awaits, or in threads, while kinds are added and removed.
        return iter(tuple(self._kinds.values()))

    def add(self, kind: Kind) -> None:
        self._kinds[kind.key] = kind
        for api_version in kind.api_versions:
            resource = Resource(kind, api_version)
            self._resources[api_version, kind.plural] = resource
            self._by_kind[api_version, kind.kind] = resource

    def remove(self, kind: Kind) -> None:
        del self._kinds[kind.key]
        for api_version in kind.api_versions:
            self._resources.pop((api_version, kind.plural), None)
            self._by_kind.pop((api_version, kind.kind), None)

    def stored(self, key: str) -> Kind | None:
        """Return the kind with this storage key."""
        return self._kinds.get(key)

    def resource(self, api_version: str, plural: str) -> Resource:
        try:
            return self._resources[api_version, plural]
        except KeyError:
            raise NotFound("the server could not find the requested resource") from None

    def of_kind(self, api_version: str, kind: str) -> Resource:
        """Return the resource of an object with this `apiVersion` and `kind`."""
        try:
            return self._by_kind[api_version, kind]
        except KeyError:
            raise NotFound(f'no matches for kind "{kind}" in version "{api_version}"') from None


_RESOURCE = tuple(f"resource.k8s.io/{v}" for v in ("v1", "v1beta2", "v1beta1"))


def _workload(
    kind: str,
    plural: str,
    api_version: str,
    short_name: str,
    *,
    counts_generation: bool = False,
    delete_returns_object: bool = False,
) -> Kind:
    return Kind(
        kind,
        plural,
        (api_version,),
        short_names=(short_name,),
        categories=("all",),
        subresources=("status",),
        counts_generation=counts_generation,
        delete_returns_object=delete_returns_object,
    )


def _storage(
    kind: str,
    plural: str,
    api_version: str,
    *short_names: str,
    namespaced: bool = False,
    subresources: tuple[str, ...] = (),
) -> Kind:
    return Kind(
        kind,
        plural,
        (api_version,),
        namespaced=namespaced,
        short_names=short_names,
        subresources=subresources,
        delete_returns_object=True,
    )


BUILT_IN = (
    Kind(
        "Pod",
        "pods",
        ("v1",),
        short_names=("po",),
        categories=("all",),
        subresources=("status", "binding", "eviction"),
        counts_generation=True,
        delete_returns_object=True,
    ),
    Kind("Node", "nodes", ("v1",), namespaced=False, short_names=("no",), subresources=("status",)),
    Kind(
        "Namespace",
        "namespaces",
        ("v1",),
        namespaced=False,
        short_names=("ns",),
        subresources=("status", "finalize"),
        delete_returns_object=True,
    ),
    Kind("Event", "events", ("v1", "events.k8s.io/v1"), short_names=("ev",), update_creates=True),
    Kind("ConfigMap", "configmaps", ("v1",), short_names=("cm",)),
    Kind("Secret", "secrets", ("v1",)),
    Kind(
        "ServiceAccount",
        "serviceaccounts",
        ("v1",),
        short_names=("sa",),
        subresources=("token",),
        delete_returns_object=True,
    ),
    Kind("Lease", "leases", ("coordination.k8s.io/v1",), update_creates=True, update_needs_version=True),
    Kind(
        "DeviceClass",
        "deviceclasses",
        _RESOURCE,
        namespaced=False,
        counts_generation=True,
        delete_returns_object=True,
    ),
    Kind(
        "ResourceSlice",
        "resourceslices",
        _RESOURCE,
        namespaced=False,
        counts_generation=True,
        delete_returns_object=True,
    ),
    Kind(
        "ResourceClaim",
        "resourceclaims",
        _RESOURCE,
        subresources=("status",),
        delete_returns_object=True,
    ),
    Kind("ResourceClaimTemplate", "resourceclaimtemplates", _RESOURCE, delete_returns_object=True),
    Kind(
        "DeviceTaintRule",
        "devicetaintrules",
        ("resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3"),
        namespaced=False,
        subresources=("status",),
        counts_generation=True,
        delete_returns_object=True,
    ),
    Kind(
        "ResourcePoolStatusRequest",
        "resourcepoolstatusrequests",
        ("resource.k8s.io/v1alpha3",),
        namespaced=False,
        subresources=("status",),
        delete_returns_object=True,
    ),
    # Kinds that other programs list and watch: kube-scheduler starts only when all of them are served.
    _workload("Service", "services", "v1", "svc", delete_returns_object=True),
    _storage("PersistentVolume", "persistentvolumes", "v1", "pv", subresources=("status",)),
    _storage("PersistentVolumeClaim", "persistentvolumeclaims", "v1", "pvc", namespaced=True, subresources=("status",)),
    _workload("ReplicationController", "replicationcontrollers", "v1", "rc", counts_generation=True),
    _workload("ReplicaSet", "replicasets", "apps/v1", "rs", counts_generation=True),
    _workload("StatefulSet", "statefulsets", "apps/v1", "sts", counts_generation=True),
    _workload("DaemonSet", "daemonsets", "apps/v1", "ds", counts_generation=True),
    Kind(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        ("policy/v1",),
        short_names=("pdb",),
        subresources=("status",),
        counts_generation=True,
    ),
    _storage("StorageClass", "storageclasses", "storage.k8s.io/v1", "sc"),
    _storage("CSINode", "csinodes", "storage.k8s.io/v1"),
    _storage("CSIDriver", "csidrivers", "storage.k8s.io/v1"),
    Kind("CSIStorageCapacity", "csistoragecapacities", ("storage.k8s.io/v1",)),
    _storage("VolumeAttachment", "volumeattachments", "storage.k8s.io/v1", subresources=("status",)),
    Kind("PriorityClass", "priorityclasses", ("scheduling.k8s.io/v1",), namespaced=False, short_names=("pc",)),
    Kind("Role", "roles", ("rbac.authorization.k8s.io/v1",)),
    Kind("RoleBinding", "rolebindings", ("rbac.authorization.k8s.io/v1",)),
    Kind("ClusterRole", "clusterroles", ("rbac.authorization.k8s.io/v1",), namespaced=False),
    Kind("ClusterRoleBinding", "clusterrolebindings", ("rbac.authorization.k8s.io/v1",), namespaced=False),
)


VIEWS_GROUP = "devlet.dev"  # the API group of node views; nothing in it is stored
BUILT_IN_GROUPS = frozenset(group_of(version) for kind in BUILT_IN for version in kind.api_versions) | {VIEWS_GROUP}

_built_in = Catalogue(BUILT_IN)

PODS = _built_in.resource("v1", "pods")
NODES = _built_in.resource("v1", "nodes")
NAMESPACES = _built_in.resource("v1", "namespaces")
EVENTS = _built_in.resource("v1", "events")
CONFIG_MAPS = _built_in.resource("v1", "configmaps")
SECRETS = _built_in.resource("v1", "secrets")
SERVICE_ACCOUNTS = _built_in.resource("v1", "serviceaccounts")
LEASES = _built_in.resource("coordination.k8s.io/v1", "leases")
POD_DISRUPTION_BUDGETS = _built_in.resource("policy/v1", "poddisruptionbudgets")
PRIORITY_CLASSES = _built_in.resource("scheduling.k8s.io/v1", "priorityclasses")
RBAC = tuple(
    _built_in.resource("rbac.authorization.k8s.io/v1", plural)
    for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
)
DEVICE_CLASSES = _built_in.resource("resource.k8s.io/v1", "deviceclasses")
RESOURCE_SLICES = _built_in.resource("resource.k8s.io/v1", "resourceslices")
RESOURCE_CLAIMS = _built_in.resource("resource.k8s.io/v1", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = _built_in.resource("resource.k8s.io/v1", "resourceclaimtemplates")
DEVICE_TAINT_RULES = _built_in.resource("resource.k8s.io/v1beta2", "devicetaintrules")
RESOURCE_POOL_STATUS_REQUESTS = _built_in.resource("resource.k8s.io/v1alpha3", "resourcepoolstatusrequests")
