"""The rules for CDI specs besides the types. All violations are reported, with their places in the document."""

from collections.abc import Iterator, Mapping, Sequence

from devlet.errors import InvalidInput
from devlet.runtime.cdi import names, versions
from devlet.runtime.cdi.spec import ContainerEdits, Device, DeviceNode, Hook, IntelRdt, Mount, NetDevice, Spec

__all__ = ["HOOKS", "NO_PERMISSIONS", "problems"]

HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
NO_PERMISSIONS = "none"

_TYPES = ("", "b", "c", "u", "p")
_MAX_ANNOTATIONS = 256 * 1024  # bytes of keys and values together
_MAX_CLOS = 4096

Problems = Iterator[str]


def problems(spec: Spec) -> Problems:
    """Yield problems such as `devices[0].name: …`, or nothing if the spec is valid."""
    yield from (f"cdiVersion: {text}" for text in versions.problems(spec))
    yield from _kind(spec.kind)
    yield from _annotations("annotations", spec.annotations)
    yield from _devices(spec.devices)
    for path, edits in spec.edits():
        yield from _edits(path, edits)


def _kind(kind: str) -> Problems:
    try:
        names.split_kind(kind)
    except InvalidInput as e:
        yield f"kind: {e}"


def _devices(devices: Sequence[Device]) -> Problems:
    if not devices:
        yield "devices: must have at least one"
    seen: dict[str, int] = {}
    for i, device in enumerate(devices):
        path = f"devices[{i}]"
        if problem := names.device_problem(device.name):
            yield f"{path}.name: {problem}"
        if (first := seen.setdefault(device.name, i)) != i:
            yield f"{path}.name: {device.name!r} is also the name of devices[{first}]"
        if not device.container_edits:
            yield f"{path}.containerEdits: must not be empty"
        yield from _annotations(f"{path}.annotations", device.annotations)


def _annotations(path: str, annotations: Mapping[str, str]) -> Problems:
    # Keys are not checked: no runtime does so, although that was intended.
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS:
        yield f"{path}: {size} bytes are more than the limit of {_MAX_ANNOTATIONS}"


def _edits(path: str, edits: ContainerEdits) -> Problems:
    yield from _env(f"{path}.env", edits.env)
    for i, node in enumerate(edits.device_nodes):
        yield from _device_node(f"{path}.deviceNodes[{i}]", node)
    for i, hook in enumerate(edits.hooks):
        yield from _hook(f"{path}.hooks[{i}]", hook)
    for i, mount in enumerate(edits.mounts):
        yield from _mount(f"{path}.mounts[{i}]", mount)
    if edits.intel_rdt is not None:
        yield from _intel_rdt(f"{path}.intelRdt", edits.intel_rdt)
    yield from _net_devices(f"{path}.netDevices", edits.net_devices)


def _env(path: str, env: Sequence[str]) -> Problems:
    # The value is not shown, because it may be secret.
    yield from (f"{path}[{i}]: must be NAME=value" for i, each in enumerate(env) if each.find("=") <= 0)


def _device_node(path: str, node: DeviceNode) -> Problems:
    if not node.path:
        yield f"{path}.path: must not be empty"
    if node.type not in _TYPES:
        yield f"{path}.type: {node.type!r} must be b, c, u or p"
    if node.permissions != NO_PERMISSIONS and node.permissions.strip("rwm"):
        yield f"{path}.permissions: {node.permissions!r} must be some of r, w and m, or {NO_PERMISSIONS}"


def _hook(path: str, hook: Hook) -> Problems:
    if hook.hook_name not in HOOKS:
        yield f"{path}.hookName: {hook.hook_name!r} must be one of {', '.join(HOOKS)}"
    if not hook.path:
        yield f"{path}.path: must not be empty"
    if hook.timeout is not None and hook.timeout <= 0:
        yield f"{path}.timeout: must be greater than 0"
    yield from _env(f"{path}.env", hook.env)


def _mount(path: str, mount: Mount) -> Problems:
    if not mount.host_path:
        yield f"{path}.hostPath: must not be empty"
    if not mount.container_path:
        yield f"{path}.containerPath: must not be empty"


def _intel_rdt(path: str, rdt: IntelRdt) -> Problems:
    """Check the class, which is a directory in the resctrl file system; `/` is its root."""
    clos = rdt.clos_id
    if clos != "/" and (clos in (".", "..") or "/" in clos or "\n" in clos or len(clos.encode()) >= _MAX_CLOS):
        yield f"{path}.closID: must be the name of a directory, or /"


def _net_devices(path: str, devices: Sequence[NetDevice]) -> Problems:
    yield from _unique(path, "hostInterfaceName", [device.host_interface_name for device in devices])
    yield from _unique(path, "name", [device.name for device in devices])


def _unique(path: str, member: str, values: Sequence[str]) -> Problems:
    seen: dict[str, int] = {}
    for i, value in enumerate(values):
        if not value:
            yield f"{path}[{i}].{member}: must not be empty"
        elif (first := seen.setdefault(value, i)) != i:
            yield f"{path}[{i}].{member}: {value!r} is also that of {path}[{first}]"
