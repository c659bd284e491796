"""The input of `devlet capture`, read from a devlet on this machine or from a cluster.

A devlet knows everything about its node. For a node of another cluster there are only the slices of its drivers and the
number of devices of its plugins.
"""

import functools
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
from devlet.cli.options import server_options
from devlet.cli.resources import VIEWS, Resources
from devlet.cli.session import Document, Session
from devlet.cli.target import Target, checked_node, connect
from devlet.cli.target import node as node_socket
from devlet.errors import DevletError, InvalidInput, NotFound, StateCorrupt
from devlet.plugins import grants
from devlet.runtime.cdi import spec_dir
from devlet.state import checkpoint_file, device_checkpoint, health_file
from devlet.state.checkpoint_file import CheckpointFile

__all__ = ["Origin", "find", "origin_options", "several"]

Function = Callable[..., Any]

_CHECKPOINT = Path("device-plugins") / device_checkpoint.FILE_NAME
_HEALTH = "dra_health_state"
_CDI = "cdi"
_SHOWN = 10  # names in one error
_RETRIES = 5  # for slices that are not published yet
_INTERVAL = 1.0  # seconds between two retries
_ELSEWHERE = "run `devlet capture` on its machine, or use --kubeconfig to capture what its cluster knows"


@dataclass(frozen=True, slots=True)
class Origin:
    """The node to capture. `cdi_roots` replace the usual directories of CDI specs."""

    target: Target
    node: str = ""
    cdi_roots: tuple[Path, ...] = ()


def origin_options(function: Function) -> Function:
    """Pass the function an `origin`, without connecting to it."""

    @click.option("--node", metavar="NAME", default="", help="Name of the node, if there are several.")
    @click.option(
        "--cdi-root",
        "cdi_roots",
        metavar="DIR",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Read CDI specs from DIR instead of the usual directories; may be repeated.",
    )
    @server_options("Read from")
    @functools.wraps(function)
    def command(*args: Any, target: Target, node: str, cdi_roots: tuple[Path, ...], **rest: Any) -> Any:
        return function(*args, origin=Origin(target, node, cdi_roots), **rest)

    return command


def find(origin: Origin, sleep: Callable[[float], object] = time.sleep) -> Found:
    """Read the node, and print warnings about what a cassette cannot contain. Tests replace `sleep`."""
    session = connect(origin.target)
    try:
        node = _node(session, checked_node(session, origin.node, _ELSEWHERE))
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
    """Return the error for a cluster that does not have exactly one node."""
    found = sorted(names)
    if not found:
        return InvalidInput("the cluster has no nodes: start a kubelet, or run `devlet up`")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return InvalidInput(
        f"the cluster has {len(found)} nodes: choose one with --node: {', '.join(found[:_SHOWN])}{more}"
    )


def _settled(session: Session, node: str, sleep: Callable[[float], object]) -> list[Document]:
    """Return the slices of the node, after some retries if a driver is still publishing a pool."""
    found = list(_slices(session, node))
    for _ in range(_RETRIES):
        if not incomplete(found):
            break
        sleep(_INTERVAL)
        found = list(_slices(session, node))
    return found


def _slices(session: Session, node: str) -> Iterator[Document]:
    """Yield the slices of this node alone, in the newest API version; none if the cluster does not serve slices."""
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
    """Read the health of devices from the file in which the node keeps it over a restart."""
    try:
        found = health_file.decode(checkpoint_file.read(path, health_file.MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (StateCorrupt, OSError) as e:
        _warn(f"the health of devices is not captured: {path}: {e}")
        return {}
    return {
        driver: [DeviceHealth(each.pool, each.device, each.health, each.message) for each in devices]
        for driver, devices in found.items()
    }


def _answers(path: Path) -> Mapping[str, list[Grant]]:
    """Read the responses of plugins from the checkpoint, where they are kept for restarted containers."""
    try:
        blob = CheckpointFile(path).read()
        entries = device_checkpoint.decode(blob).entries or () if blob is not None else ()
    except StateCorrupt as e:
        _warn(f"the responses of plugins are not captured: {e}")
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
    """Yield the CDI specs, with a warning for each file that cannot be read."""
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
                _warn(f"a CDI spec is not captured: {e}")


def _all(session: Session, path: str, query: Sequence[tuple[str, str]] = ()) -> list[Document]:
    items: list[Any] = [item for page in session.pages(path, query) for item in page.get("items") or ()]
    return [item for item in items if isinstance(item, dict)]


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)
