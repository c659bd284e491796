"""`devlet up`: the daemon, in the foreground."""

import gc
import importlib.util
import shlex
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from devlet.daemon.config import Config, load
from devlet.kit import facts

_EXAMPLE = """\b
Examples:
  devlet up
  devlet up --root /tmp/node1 --node-name node1 --log-format json
  devlet up --config /etc/devlet/config.yaml -v 1
  devlet up --kubeconfig /etc/devlet/kubeconfig --node-name node1"""


@click.command(epilog=_EXAMPLE)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Read the configuration from FILE.")
@click.option(
    "--root",
    metavar="DIR",
    help="Keep state and sockets in DIR. [default: /var/lib/devlet for root, else $XDG_STATE_HOME/devlet]",
)
@click.option("--node-name", metavar="NAME", help="Name of this node. [default: the host name]")
@click.option("--log-format", metavar="text|json", help="Format of log lines. [default: text]")
@click.option(
    "-v",
    "--verbosity",
    metavar="LEVEL",
    help="Log level: 0 logs changes, 1 adds each step, 2 adds messages of libraries. [default: 0]",
)
@click.option(
    "--api-address",
    metavar="IP[:PORT]",
    help="Serve the Kubernetes API on this address, with TLS. [default: 127.0.0.1, with a free port that is then kept]",
)
@click.option(
    "--controllers",
    metavar="LIST",
    help="Run these controllers of the embedded cluster: '*' for all, NAME, or -NAME to exclude one. [default: *]",
)
@click.option(
    "--no-control",
    is_flag=True,
    default=None,
    help="Don't run the scheduler and the resourceclaim and device-taint-eviction controllers.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="Join the cluster of this kubeconfig as a node. [default: run an embedded cluster in the root]",
)
@click.option("--context", metavar="NAME", help="Use this context of the kubeconfig. [default: its current context]")
@click.option(
    "--node-ip",
    metavar="IP",
    help="Address of this node. [default: 127.0.0.1, or the machine's address in another cluster]",
)
@click.option("--static-pod-path", metavar="DIR", help="Run the pods whose manifests are in DIR. [default: none]")
@click.option("--cdi-root", metavar="DIR", help="Directory of CDI specs. [default: cdi in the root]")
@click.option(
    "--feature-gates",
    metavar="NAME=true|false,...",
    help="Set feature gates of Kubernetes: DRAExtendedResource, DRAWorkloadResourceClaims, ResourceHealthStatus,"
    " ResourceHealthStatusMessage. [default: as in 1.36]",
)
@click.option(
    "--topology-policy",
    metavar="POLICY",
    help="Align devices to NUMA nodes: none, best-effort, restricted or single-numa-node. [default: none]",
)
@click.option(
    "--topology-scope",
    metavar="container|pod",
    help="Align the devices of each container or of each pod. [default: container]",
)
@click.option(
    "--numa-nodes",
    metavar="COUNT",
    help="Pretend that the machine has COUNT NUMA nodes; 0 for the real number. [default: 0]",
)
def command(config: Path | None, **flags: Any) -> None:
    """Run the devlet daemon until SIGINT or SIGTERM.

    One line is printed to standard output once the daemon is ready; logs go to standard error. Settings are read from
    --config, from environment variables and from flags; flags override variables, and variables override the file."""
    loaded = load(flags, file=config)
    facts.configure(loaded.log_format, loaded.verbosity)

    # Importing the daemon takes half a second, which --help and configuration errors should not wait for. Garbage
    # collection during the import finds nothing and takes a twentieth of that time.
    gc.disable()
    from devlet.daemon.main import parts_of, run

    gc.enable()

    # As a client of an API server that goes away, uvloop loses count of its connections and ends the process.
    use_uvloop = loaded.kubeconfig is None and importlib.util.find_spec("uvloop") is not None
    daemon = partial(run, loaded, parts_of(loaded), on_ready=partial(_ready, loaded))
    anyio.run(daemon, backend_options={"use_uvloop": use_uvloop})


def _ready(config: Config) -> None:
    with suppress(BrokenPipeError):  # the daemon keeps running even if its standard output is closed
        click.echo(f"devlet is ready: node {config.node_name}, root {config.root}")
        click.echo(f"export KUBECONFIG={shlex.quote(str(config.kubeconfig or config.root / 'kubeconfig'))}")
