"""What a container got with its devices: variables, mounts, device nodes, CDI devices, annotations."""

from collections.abc import Iterator
from typing import Any

from devlet.cli.session import Document
from devlet.cli.views.sheet import section, table, tree
from devlet.objects.subdocuments import at, mappings, text, texts

_READ_ONLY = {True: "ro", False: "rw"}


def lines(options: Document) -> Iterator[str]:
    """A section for each kind of thing that there is."""
    mounts = [
        [text(m, "containerPath"), text(m, "hostPath"), _READ_ONLY[bool(at(m, "readOnly"))]]
        for m in mappings(options, "mounts")
    ]
    nodes = [
        [text(d, "containerPath"), text(d, "hostPath"), text(d, "permissions")] for d in mappings(options, "devices")
    ]
    sections = (
        ("Environment", _pairs(at(options, "env"))),
        ("Mounts", table(["PATH", "HOST PATH", "MODE"], mounts)),
        ("Device nodes", table(["PATH", "HOST PATH", "MODE"], nodes)),
        ("CDI devices", texts(options, "cdiDevices")),
        ("Annotations", _pairs(at(options, "annotations"))),
        ("Conflicts", texts(options, "conflicts")),
    )
    for title, found in sections:
        if inner := [line for each in found for line in tree(each)]:
            yield from section(title, inner)


def _pairs(values: Any) -> list[str]:
    if isinstance(values, dict):
        return [f"{key}={values[key]}" for key in sorted(values)]
    if isinstance(values, list):
        return [f"{text(each, 'name')}={text(each, 'value')}" for each in values if isinstance(each, dict)]
    return []
