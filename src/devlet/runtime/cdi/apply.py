"""Apply the edits of CDI devices to an OCI runtime spec, as container engines do.

The document is not modified; the result is a copy. Edits replace existing entries: a variable of the same name, and a
device node or mount at the same path. Fields of the document that are not known here are kept.
"""

import posixpath
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from msgspec import structs

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi.host_nodes import HostNode, Look, look
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount, NetDevice
from devlet.runtime.cdi.validation import NO_PERMISSIONS

__all__ = ["Document", "apply", "completed"]

Document = dict[str, Any]

_RDT = {
    "clos_id": "closID",
    "l3_cache_schema": "l3CacheSchema",
    "mem_bw_schema": "memBwSchema",
    "schemata": "schemata",
    "enable_monitoring": "enableMonitoring",
    "enable_cmt": "enableCMT",
    "enable_mbm": "enableMBM",
}


def apply(document: Mapping[str, Any], edits: ContainerEdits, *, look: Look = look) -> Document:
    """Return the document with the edits. Incomplete device nodes are completed from the host. Raise NotFound if the
    host does not have such a node."""
    result: Document = deepcopy(dict(document))
    if edits.env:
        _add_env(_object(result, "process"), edits.env)
    for node in edits.device_nodes:
        _add_device(result, completed(node, look))
    for device in edits.net_devices:
        _add_net_device(result, device)
    if edits.mounts:
        _add_mounts(result, edits.mounts)
    for hook in edits.hooks:
        _list(_object(result, "hooks"), hook.hook_name).append(_hook(hook))
    if edits.intel_rdt is not None:
        _object(result, "linux")["intelRdt"] = _intel_rdt(edits.intel_rdt)
    if any(edits.additional_gids):
        _add_groups(result, edits.additional_gids)
    return result


def completed(node: DeviceNode, look: Look = look) -> DeviceNode:
    """Return the node with missing values taken from the host. If type and number are specified, only the mode is
    taken, and the host need not have the node."""
    is_whole = bool(node.type) and (node.major != 0 or node.type == "p")
    try:
        found = look(node.host_path or node.path)
    except NotFound as e:
        if is_whole:
            return node
        raise NotFound(f"device node {node.path} has no type or number, and the host cannot tell: {e}") from e
    mode = found.mode if node.file_mode is None else node.file_mode
    return structs.replace(node if is_whole else _with_numbers(node, found), file_mode=mode)


def _with_numbers(node: DeviceNode, found: HostNode) -> DeviceNode:
    if node.type not in ("", found.type):
        raise NotFound(f"device node {node.host_path or node.path} is of type {found.type}, expected {node.type}")
    if found.type == "p" or node.major != 0:
        return structs.replace(node, type=found.type)
    return structs.replace(node, type=found.type, major=found.major, minor=found.minor)


def _add_env(process: Document, env: Sequence[str]) -> None:
    present = _list(process, "env")
    places = {str(each).partition("=")[0]: i for i, each in enumerate(present)}
    for each in env:
        name = each.partition("=")[0]
        if (place := places.setdefault(name, len(present))) < len(present):
            present[place] = each
        else:
            present.append(each)


def _add_device(document: Document, node: DeviceNode) -> None:
    linux = _object(document, "linux")
    devices = [each for each in _list(linux, "devices") if each.get("path") != node.path]
    linux["devices"] = [*devices, _device(node, _user(document))]
    # Engines add no rule for a node of type u, although that is a synonym of c.
    if node.type in ("b", "c"):
        _list(_object(linux, "resources"), "devices").append(_rule(node))


def _user(document: Document) -> Mapping[str, Any]:
    return (document.get("process") or {}).get("user") or {}


def _device(node: DeviceNode, user: Mapping[str, Any]) -> Document:
    owner = {
        "uid": node.uid if node.uid is not None else user.get("uid") or None,
        "gid": node.gid if node.gid is not None else user.get("gid") or None,
    }
    numbers = {"path": node.path, "type": node.type, "major": node.major, "minor": node.minor}
    return numbers | _given(fileMode=node.file_mode, **owner)


def _rule(node: DeviceNode) -> Document:
    access = "" if node.permissions == NO_PERMISSIONS else node.permissions or "rwm"
    rule: Document = {"allow": True, "type": node.type, "major": node.major, "minor": node.minor}
    return rule | ({"access": access} if access else {})


def _add_net_device(document: Document, device: NetDevice) -> None:
    _object(_object(document, "linux"), "netDevices")[device.host_interface_name] = {"name": device.name}


def _add_mounts(document: Document, mounts: Sequence[Mount]) -> None:
    """Add the mounts, sorted by depth: otherwise a mount would hide an earlier one below it."""
    mapped = _has_user_namespace(document)
    present = list(_list(document, "mounts"))
    for mount in mounts:
        present = [each for each in present if each.get("destination") != mount.container_path]
        present.append(_mount(mount, mapped))
    document["mounts"] = sorted(present, key=lambda each: _depth(str(each.get("destination", ""))))


def _mount(mount: Mount, mapped: bool) -> Document:
    options = [*mount.options, *_mapping(mount)] if mapped else list(mount.options)
    made: Document = {"destination": mount.container_path, "source": mount.host_path}
    return made | {key: value for key, value in (("type", mount.type), ("options", options)) if value}


def _mapping(mount: Mount) -> list[str]:
    """Return the option with which, in a user namespace, the files of a bind mount belong to the container's users."""
    if {"idmap", "ridmap"} & set(mount.options):
        return []
    binds = [option for option in mount.options if option in ("bind", "rbind")]
    if binds:
        return ["idmap" if binds[-1] == "bind" else "ridmap"]
    return ["idmap"] if mount.type == "bind" else []


def _has_user_namespace(document: Document) -> bool:
    namespaces = (document.get("linux") or {}).get("namespaces") or []
    return any(each.get("type") == "user" for each in namespaces)


def _depth(path: str) -> int:
    clean = posixpath.normpath(path)
    return clean.removeprefix("/").count("/") if clean.startswith("//") else clean.count("/")


def _hook(hook: Hook) -> Document:
    lists = {key: list(value) for key, value in (("args", hook.args), ("env", hook.env)) if value}
    return {"path": hook.path} | lists | _given(timeout=hook.timeout)


def _intel_rdt(rdt: IntelRdt) -> Document:
    values = {name: getattr(rdt, member) for member, name in _RDT.items()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value}


def _add_groups(document: Document, groups: Sequence[int]) -> None:
    """Add the groups except 0: a device must not put a container into root's group."""
    present = _list(_object(_object(document, "process"), "user"), "additionalGids")
    present += [group for group in dict.fromkeys(groups) if group and group not in present]


def _given(**values: int | None) -> Document:
    return {key: value for key, value in values.items() if value is not None}


def _object(parent: Document, key: str) -> Document:
    if parent.get(key) is None:
        parent[key] = {}
    if not isinstance(parent[key], dict):
        raise InvalidInput(f"OCI spec: {key} must be an object")
    found: Document = parent[key]
    return found


def _list(parent: Document, key: str) -> list[Any]:
    if parent.get(key) is None:
        parent[key] = []
    if not isinstance(parent[key], list):
        raise InvalidInput(f"OCI spec: {key} must be a list")
    found: list[Any] = parent[key]
    return found
