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
@click.option("--node-name", metavar="NAME", help="The name of this node. [default: the host name]")
@click.option("--log-format", metavar="text|json", help="How log lines look. [default: text]")
@click.option(
    "-v", "--verbosity", metavar="LEVEL", help="0 logs what changed, 1 each step, 2 libraries too. [default: 0]"
)
@click.option(
    "--api-address",
    metavar="IP[:PORT]",
    help="Where the Kubernetes API listens, with TLS. [default: 127.0.0.1 and a free port, which is then kept]",
)
@click.option(
    "--controllers",
    metavar="LIST",
    help="The embedded cluster's controllers: '*' all, NAME, -NAME all but that one. [default: *]",
)
@click.option(
    "--no-control",
    is_flag=True,
    default=None,
    help="Without our scheduler, resourceclaim and device-taint-eviction controllers: others do their work.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="Be a node of the cluster of this kubeconfig. [default: of an embedded cluster, in the root]",
)
@click.option("--context", metavar="NAME", help="Which context of the kubeconfig. [default: its current one]")
@click.option(
    "--node-ip", metavar="IP", help="How others reach this node. [default: 127.0.0.1, or in a cluster the machine's]"
)
@click.option("--static-pod-path", metavar="DIR", help="Run the pods whose manifests are in DIR. [default: none]")
@click.option("--cdi-root", metavar="DIR", help="Where CDI specs of devices are. [default: cdi in the root]")
@click.option(
    "--feature-gates",
    metavar="NAME=true|false,...",
    help="Kubernetes' feature gates: DRAExtendedResource, DRAWorkloadResourceClaims, ResourceHealthStatus,"
    " ResourceHealthStatusMessage. [default: as in 1.36]",
)
@click.option(
    "--topology-policy",
    metavar="POLICY",
    help="How devices are kept near each other: none, best-effort, restricted or single-numa-node. [default: none]",
)
@click.option(
    "--topology-scope", metavar="container|pod", help="What is kept on the same NUMA nodes. [default: container]"
)
@click.option(
    "--numa-nodes",
    metavar="COUNT",
    help="Act as if the machine had COUNT NUMA nodes; 0 for those it has. [default: 0]",
)
def command(config: Path | None, **flags: Any) -> None:
    """Run the daemon until SIGINT or SIGTERM.

    Prints one line on standard output once it is ready; logs go to standard error. Settings come from --config, then
    from environment variables, then from flags; the later one wins."""
    loaded = load(flags, file=config)
    facts.configure(loaded.log_format, loaded.verbosity)

    # Importing the daemon takes half a second; --help and configuration errors should not wait for it. Modules are not
    # garbage: looking for some while they load takes a twentieth of the time.
    gc.disable()
    from devlet.daemon.main import parts_of, run

    gc.enable()

    # As a client of an API server that goes away, uvloop loses count of its connections and ends the process.
    use_uvloop = loaded.kubeconfig is None and importlib.util.find_spec("uvloop") is not None
    daemon = partial(run, loaded, parts_of(loaded), on_ready=partial(_ready, loaded))
    anyio.run(daemon, backend_options={"use_uvloop": use_uvloop})


def _ready(config: Config) -> None:
    with suppress(BrokenPipeError):  # a daemon does not end because nobody reads this line
        click.echo(f"devlet is ready: node {config.node_name}, root {config.root}")
        click.echo(f"export KUBECONFIG={shlex.quote(str(config.kubeconfig or config.root / 'kubeconfig'))}")
