"""`devlet play`."""

from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import anyio
import click

from devlet.cassettes import library
from devlet.cassettes.cassette import Cassette
from devlet.cassettes.player import Place, play, published
from devlet.cli.cassette_source import several
from devlet.cli.node_socket import NAME as SOCKET
from devlet.cli.options import KubectlCommand
from devlet.cli.target import Target, checked_node, connect
from devlet.cli.target import node as node_socket
from devlet.cli.views.sheet import table
from devlet.cluster.client import Cluster
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.connection import Connection
from devlet.errors import InvalidInput
from devlet.kit import facts
from devlet.kit.parts import running
from devlet.kit.stopping import Stop
from devlet.objects.kinds import NODES

_PUBLISH_TIMEOUT = 10.0  # seconds until the ready line; what is not published by then follows
_STOP_TIMEOUT = 10.0  # seconds for calls in progress to finish

_EXAMPLES = """\b
Examples:
  devlet play --list
  devlet play a100-mig
  devlet play node1.yaml --root /tmp/node2
  devlet play gpu7.yaml --root /var/lib/kubelet --cdi-root /var/run/cdi --kubeconfig ~/.kube/config --node worker1
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@click.argument("file", metavar="FILE|NAME", default="")
@click.option("--list", "listed", is_flag=True, help="List the cassettes that are included in devlet.")
@click.option("--show", is_flag=True, help="Print the cassette instead of playing it.")
@click.option("--node", metavar="NAME", default="", help="Name of the node to play on, if there are several.")
@click.option(
    "--cdi-root", metavar="DIR", type=click.Path(path_type=Path), help="Write CDI specs to DIR. [default: ROOT/cdi]"
)
@click.option(
    "--strict", is_flag=True, help="Pass device nodes and files to containers even if this machine does not have them."
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Use the cluster of this kubeconfig. [default: ROOT/kubeconfig]",
)
@click.option("--context", metavar="NAME", default="", help="Use this context of the kubeconfig.")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Play on the devlet that runs on DIR, or on a kubelet with /var/lib/kubelet.",
)
@click.option(
    "-v",
    "--verbosity",
    metavar="LEVEL",
    type=click.IntRange(0, 2),
    default=0,
    help="Log level: 0 logs changes, 1 adds each call, 2 adds messages of libraries.",
)
def command(
    file: str,
    listed: bool,
    show: bool,
    node: str,
    cdi_root: Path | None,
    strict: bool,
    kubeconfig: Path | None,
    context: str,
    root: Path | None,
    verbosity: int,
) -> None:
    """Serve a cassette as virtual drivers on a node, until SIGINT or SIGTERM.

    FILE is a cassette, or the name of one that is included in devlet. Each recorded DRA driver gets sockets and slices,
    and each device plugin a socket and a device list. A claim or container gets what was recorded for its device, or
    else an environment variable that names it. Device nodes and files that this machine does not have are left out. One
    line is printed once everything is served."""
    if listed:
        click.echo("\n".join(table(["NAME", "DRIVERS", "DEVICES", "DESCRIPTION"], [_row(n) for n in library.names()])))
        return
    if not file:
        raise InvalidInput(f"no cassette given: name a file, or one of {', '.join(library.names())}")
    cassette = library.opened(file)
    if show:
        from devlet.cassettes.cassette_file import encode

        click.echo(encode(cassette), nl=False)
        return
    if not (cassette.drivers or cassette.plugins or cassette.cdi):
        raise InvalidInput(f"{file}: the cassette is empty: it has no driver, device plugin or CDI spec to play")
    _warn(cassette)
    found = (root or node_socket(None).root).absolute()
    connection = _connection(found, kubeconfig, context)
    facts.configure("text", verbosity)
    place = Place(_of_devlet(found, node), found, (cdi_root or found / "cdi").absolute(), strict)
    anyio.run(_play, cassette, place, connection)


def _connection(root: Path, kubeconfig: Path | None, context: str) -> Connection:
    """Use the devlet's own kubeconfig by default. A kubelet's credentials are not for drivers."""
    if kubeconfig is None and not (root / SOCKET).exists():
        hint = "start one with `devlet up`, or name the cluster of its kubelet with --kubeconfig"
        raise InvalidInput(f"no devlet runs on {root}: {hint}")
    path = kubeconfig or root / "kubeconfig"
    if not path.exists():
        raise InvalidInput(f"{path} does not exist: name the cluster of the node with --kubeconfig")
    return kubeconfigs.connection([path], context)


def _of_devlet(root: Path, node: str) -> str:
    """Return the devlet's own node if a devlet runs on the root and no node was named."""
    if not (root / SOCKET).exists():
        return node
    with closing(connect(Target(root=root))) as session:
        return checked_node(session, node, "run `devlet play` on its machine")


async def _play(cassette: Cassette, place: Place, connection: Connection) -> None:
    stop = Stop(_STOP_TIMEOUT)
    with stop.scope:
        async with running(stop.listen), connected(connection) as cluster:
            node = await _node(cluster, place.node)
            place = Place(node, place.root, place.cdi_root, place.strict)
            async with running(partial(play, cassette, place, cluster)):
                with anyio.move_on_after(_PUBLISH_TIMEOUT):
                    await published(cassette, node, cluster)
                _ready(cassette, node)
                await stop.asked()
    stop.check()


async def _node(cluster: Cluster, name: str) -> str:
    if name:
        return str((await cluster.get(NODES, name))["metadata"]["name"])
    names = [str(each["metadata"]["name"]) for each in (await cluster.list(NODES)).items]
    if len(names) == 1:
        return names[0]
    raise several(names)


def _row(name: str) -> list[object]:
    cassette = library.shipped(name)
    devices = sum(len(pool.devices) for driver in cassette.drivers for pool in driver.pools)
    devices += sum(len(plugin.devices) for plugin in cassette.plugins)
    return [name, len(cassette.drivers) + len(cassette.plugins), devices, cassette.metadata.description]


def _warn(cassette: Cassette) -> None:
    for driver in cassette.drivers:
        for pool in driver.pools:
            if pool.incomplete:
                what = f"pool {pool.name} of driver {driver.name} was incomplete when it was captured"
                click.echo(f"warning: {what}: devices may be missing; capture it again to get them", err=True)


def _ready(cassette: Cassette, node: str) -> None:
    names = [driver.name for driver in cassette.drivers] + [plugin.resource for plugin in cassette.plugins]
    with suppress(BrokenPipeError):
        click.echo(f"devlet play is ready: {', '.join(names) or 'nothing'} on node {node}")
