"""What a container gets with its devices: variables, mounts, device nodes, CDI devices and more.

The OCI spec of the container has it all. If the node does not provide one, the options of the plugins are shown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from devlet.cli.session import Document
from devlet.cli.views.sheet import section, table, tree
from devlet.objects.subdocuments import at, mappings, number, text, texts

_READ_ONLY = {True: "ro", False: "rw"}

Lines = Iterable[str]
Sections = Iterator[tuple[str, Lines]]


def lines(container: Document) -> Iterator[str]:
    """Describe a container of a holder, with a section for each kind of option that it got."""
    options, spec = (at(container, key) for key in ("options", "oci"))
    options = options if isinstance(options, dict) else {}
    if isinstance(spec, dict):
        yield from _shown(_sections(spec, options, container))
    else:
        claimed = {"cdiDevices": _cdi_devices(container, options)}
        yield from _plugin_lines({**options, **claimed})
    yield from _shown([("Notes", _texts(texts(container, "notes")))])


def _sections(spec: Document, options: Document, container: Document) -> Sections:
    yield "Environment", _texts(texts(spec, "process", "env"))
    yield "Mounts", table(["PATH", "HOST PATH", "OPTIONS"], [_mount(m) for m in mappings(spec, "mounts")])
    yield "Device nodes", table(["PATH", "DEVICE", "MODE"], [*_nodes(spec), *_left_out(spec, options)])
    yield "Network interfaces", table(["NAME", "HOST NAME"], [*_interfaces(at(spec, "linux", "netDevices"))])
    yield "Groups", _groups(at(spec, "process", "user", "additionalGids"))
    yield "Hooks", table(["WHEN", "PROGRAM", "ARGUMENTS", "TIMEOUT"], [*_hooks(at(spec, "hooks"))])
    yield "Intel RDT", tree(at(spec, "linux", "intelRdt") or {})
    yield "CDI devices", _texts(_cdi_devices(container, options))
    yield "Annotations", _texts(_pairs(at(spec, "annotations")))
    yield "Conflicts", _texts(texts(options, "conflicts"))


def _shown(sections: Iterable[tuple[str, Lines]]) -> Iterator[str]:
    for title, found in sections:
        if inner := list(found):
            yield from section(title, inner)


def _texts(values: Iterable[str]) -> Iterator[str]:
    for each in values:
        yield from tree(each)


def _mount(mount: Document) -> list[str]:
    return [text(mount, "destination"), text(mount, "source"), ",".join(texts(mount, "options"))]


def _nodes(spec: Document) -> Iterator[list[str]]:
    rules = mappings(spec, "linux", "resources", "devices")
    for node in mappings(spec, "linux", "devices"):
        type_, *numbers = device = (text(node, "type"), number(node, "major"), number(node, "minor"))
        access = [text(rule, "access") for rule in rules if _device_of(rule) == device]
        yield [text(node, "path"), f"{type_} {numbers[0]}:{numbers[1]}", access[-1] if access else ""]


def _device_of(rule: Document) -> tuple[str, int, int]:
    return text(rule, "type"), number(rule, "major"), number(rule, "minor")


def _left_out(spec: Document, options: Document) -> Iterator[list[str]]:
    """Yield the device nodes that a plugin named and the host does not have."""
    present = [text(node, "path") for node in mappings(spec, "linux", "devices")]
    for node in mappings(options, "devices"):
        path = text(node, "containerPath")
        if not any(each == path or each.startswith(f"{path}/") for each in present):
            yield [path, "not on this host", text(node, "permissions")]


def _interfaces(devices: Any) -> Iterator[list[str]]:
    for host, device in devices.items() if isinstance(devices, dict) else ():
        yield [text(device, "name"), host]


def _groups(groups: Any) -> list[str]:
    return [", ".join(map(str, groups))] if isinstance(groups, list) and groups else []


def _hooks(hooks: Any) -> Iterator[list[str]]:
    """Yield the hooks, without their first argument, which is the name of the program."""
    for when in hooks if isinstance(hooks, dict) else ():
        for hook in mappings(hooks, when):
            timeout = number(hook, "timeout")
            yield [when, text(hook, "path"), " ".join(texts(hook, "args")[1:]), f"{timeout}s" if timeout else ""]


def _cdi_devices(container: Document, options: Document) -> list[str]:
    claimed = [name for claim in mappings(container, "claims") for name in texts(claim, "cdiDevices")]
    return list(dict.fromkeys([*claimed, *texts(options, "cdiDevices")]))


def _pairs(values: Any) -> Sequence[str]:
    return [f"{key}={values[key]}" for key in sorted(values)] if isinstance(values, dict) else []


def _plugin_lines(options: Document) -> Iterator[str]:
    """Yield a section for each kind of option, as plugins returned them."""
    mounts = [
        [text(m, "containerPath"), text(m, "hostPath"), _READ_ONLY[bool(at(m, "readOnly"))]]
        for m in mappings(options, "mounts")
    ]
    nodes = [
        [text(d, "containerPath"), text(d, "hostPath"), text(d, "permissions")] for d in mappings(options, "devices")
    ]
    sections = (
        ("Environment", _named_values(at(options, "env"))),
        ("Mounts", table(["PATH", "HOST PATH", "MODE"], mounts)),
        ("Device nodes", table(["PATH", "HOST PATH", "MODE"], nodes)),
        ("CDI devices", texts(options, "cdiDevices")),
        ("Annotations", _named_values(at(options, "annotations"))),
        ("Conflicts", texts(options, "conflicts")),
    )
    for title, found in sections:
        if inner := [line for each in found for line in tree(each)]:
            yield from section(title, inner)


def _named_values(values: Any) -> list[str]:
    if isinstance(values, dict):
        return [f"{key}={values[key]}" for key in sorted(values)]
    if isinstance(values, list):
        return [f"{text(each, 'name')}={text(each, 'value')}" for each in values if isinstance(each, dict)]
    return []
