"""What `devlet capture` finds: by asking a devlet on this machine, or a cluster, which is only read.

A devlet knows everything about its node. Of a node of another cluster there are the slices of its drivers, and how many
devices its plugins have.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from devlet.cassettes.cassette import CLUSTER, DeviceHealth, DeviceNode, Grant, Mount
from devlet.cassettes.recording import Found, SpecFile, incomplete, remarks
from devlet.cli.allocation_input import KINDS, stored
from devlet.cli.node_views import served
from devlet.cli.own_node import checked
from devlet.cli.resources import VIEWS, Resources
from devlet.cli.session import Document, Session
from devlet.cli.target import Target, connect
from devlet.cli.target import node as node_socket
from devlet.errors import DevletError, InvalidInput, NotFound, StateCorrupt
from devlet.plugins import grants
from devlet.runtime.cdi import spec_dir
from devlet.state import checkpoint_file, device_checkpoint, health_file
from devlet.state.checkpoint_file import CheckpointFile

__all__ = ["Origin", "find", "several"]

_CHECKPOINT = Path("device-plugins") / device_checkpoint.FILE_NAME
_HEALTH = "dra_health_state"
_CDI = "cdi"
_TOLD = 10  # names in one error
_LOOKS = 5  # for slices that are not there yet
_LOOK = 1.0  # seconds between two of them
_ELSEWHERE = "capture the other one where it runs, or with --kubeconfig what its cluster knows"


@dataclass(frozen=True, slots=True)
class Origin:
    """Which node. `cdi_roots` are instead of the usual directories."""

    target: Target
    node: str = ""
    cdi_roots: tuple[Path, ...] = ()


def find(origin: Origin, sleep: Callable[[float], object] = time.sleep) -> Found:
    """What would not get onto a cassette is told. `sleep` is for tests, which have no time."""
    session = connect(origin.target)
    try:
        node = _node(session, checked(session, origin.node, _ELSEWHERE))
        slices = _settled(session, node["metadata"]["name"], sleep)
        on_devlet = session.is_node
        found = (
            _on_devlet(session, origin, node["metadata"]["name"], slices) if on_devlet else _on_cluster(node, slices)
        )
    finally:
        session.close()
    for text in remarks(found):
        _warn(text)
    return found


def _node(session: Session, name: str) -> Document:
    if name:
        return session.get(Resources(session).find("nodes").item("", name))
    nodes = _all(session, Resources(session).find("nodes").collection(""))
    if len(nodes) == 1:
        return nodes[0]
    raise several(str(each["metadata"]["name"]) for each in nodes)


def several(names: Iterable[str]) -> InvalidInput:
    """Where one node was to be found."""
    found = sorted(names)
    if not found:
        return InvalidInput("there is no node: one is there as soon as a kubelet, or `devlet up`, runs")
    more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return InvalidInput(
        f"there are {len(found)} nodes, say which one with --node NAME: {', '.join(found[:_TOLD])}{more}"
    )


def _settled(session: Session, node: str, sleep: Callable[[float], object]) -> list[Document]:
    """A driver that is publishing a pool is given some time to end."""
    found = list(_slices(session, node))
    for _ in range(_LOOKS):
        if not incomplete(found):
            break
        sleep(_LOOK)
        found = list(_slices(session, node))
    return found


def _slices(session: Session, node: str) -> Iterator[Document]:
    """Those that are of this node alone, in the newest version of the API. None on a cluster that has no slices."""
    try:
        resource = Resources(session).find("resourceslices.resource.k8s.io")
    except NotFound:
        return
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    for found in _all(session, resource.collection(""), [("fieldSelector", f"spec.nodeName={node}")]):
        yield stored(head | found, KINDS["ResourceSlice"])


def _on_cluster(node: Document, slices: Sequence[Document]) -> Found:
    status = node.get("status") or {}
    return Found(
        node=node["metadata"]["name"],
        source=CLUSTER,
        slices=slices,
        capacity=status.get("capacity") or {},
        allocatable=status.get("allocatable") or {},
    )


def _on_devlet(session: Session, origin: Origin, node: str, slices: Sequence[Document]) -> Found:
    root = node_socket(origin.target.root).root
    views = {view.plural: view for view in VIEWS}
    shown: dict[str, list[Document]] = {}
    for plural in ("drivers", "plugins", "devices", "preparedclaims"):
        with served(views[plural]):
            shown[plural] = _all(session, views[plural].collection(""))
    return Found(
        node=node,
        source="devlet",
        slices=slices,
        drivers=shown["drivers"],
        plugins=shown["plugins"],
        devices=[device for device in shown["devices"] if "resource" in device["spec"]],
        prepared_claims=shown["preparedclaims"],
        health=_health(root / _HEALTH),
        answers=_answers(root / _CHECKPOINT),
        specs=list(_specs(origin.cdi_roots or (*spec_dir.DEFAULT_DIRECTORIES, root / _CDI))),
    )


def _health(path: Path) -> Mapping[str, list[DeviceHealth]]:
    """From the file that is for a restart of the node."""
    try:
        found = health_file.decode(checkpoint_file.read(path, health_file.MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (StateCorrupt, OSError) as e:
        _warn(f"what drivers said of the health of devices is not known: {path}: {e}")
        return {}
    return {
        driver: [DeviceHealth(each.pool, each.device, each.health, each.message) for each in devices]
        for driver, devices in found.items()
    }


def _answers(path: Path) -> Mapping[str, list[Grant]]:
    """From the checkpoint, where they are kept for the restart of a container."""
    try:
        blob = CheckpointFile(path).read()
        entries = device_checkpoint.decode(blob).entries or () if blob is not None else ()
    except StateCorrupt as e:
        _warn(f"what plugins granted is not known: {e}")
        return {}
    found: dict[str, list[Grant]] = {}
    for entry in entries:
        ids = tuple(sorted(id for each in (entry.devices or {}).values() for id in each or ()))
        if entry.response is not None:
            found.setdefault(entry.resource, []).append(_grant(ids, entry.response))
    return found


def _grant(ids: tuple[str, ...], response: bytes) -> Grant:
    given = grants.decode(response)
    return Grant(
        ids=ids,
        env=given.env,
        mounts=tuple(Mount(each.container_path, each.host_path, each.read_only) for each in given.mounts),
        devices=tuple(DeviceNode(each.container_path, each.host_path, each.permissions) for each in given.devices),
        annotations=given.annotations,
        cdi_devices=given.cdi_devices,
    )


def _specs(directories: Sequence[Path]) -> Iterator[SpecFile]:
    """A file that is damaged, or gone, is left out; who needs it finds out from the node."""
    for directory in directories:
        try:
            files = spec_dir.list_files(directory)
        except InvalidInput as e:
            _warn(str(e))
            continue
        for path in files:
            try:
                yield SpecFile(path.name, spec_dir.read(path)[1])
            except DevletError as e:
                _warn(f"left out: {e}")


def _all(session: Session, path: str, query: Sequence[tuple[str, str]] = ()) -> list[Document]:
    items: list[Any] = [item for page in session.pages(path, query) for item in page.get("items") or ()]
    return [item for item in items if isinstance(item, dict)]


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)
