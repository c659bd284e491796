"""`devlet control`: our scheduler, and on request our controllers, for a cluster that somebody else runs."""

import math
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import click

from devlet.cli.options import KubectlCommand, duration
from devlet.control import leader_election as election
from devlet.daemon import controllers as names
from devlet.daemon.config import LOG_FORMATS, MAX_VERBOSITY, address_of
from devlet.daemon.control_process import ControlConfig, run
from devlet.errors import InvalidInput
from devlet.kit import facts
from devlet.objects.names import dns_label, dns_subdomain

_EXAMPLE = """\b
Examples:
  devlet control --kubeconfig /etc/devlet/control.kubeconfig
  devlet control --kubeconfig ~/.kube/config --context lab --controllers '*' --leader-elect=false"""


def _finite(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of requests", ctx, param)
    return value


@click.command(cls=KubectlCommand, epilog=_EXAMPLE)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The cluster, and who we are in it.",
)
@click.option(
    "--context", metavar="NAME", default="", help="Which context of the kubeconfig. [default: its current one]"
)
@click.option(
    "--controllers",
    metavar="LIST",
    default=names.SCHEDULER,
    help="What runs: scheduler, resourceclaim, device-taint-eviction; '*' all, -NAME all but that one."
    " [default: scheduler]",
)
@click.option(
    "--scheduler-name",
    "scheduler_names",
    metavar="NAME",
    multiple=True,
    default=("devlet",),
    help="Which pods are ours: those with this schedulerName; may be repeated. [default: devlet]",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    help="Work only while holding a lease, so that several can run. [default: true]",
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="kube-system",
    help="Where the leases devlet-scheduler and devlet-controllers are. [default: kube-system]",
)
@click.option(
    "--leader-elect-lease-duration",
    "lease_duration",
    metavar="TIME",
    default="15s",
    callback=duration,
    help="Others wait so long before they take over from one that is silent. [default: 15s]",
)
@click.option(
    "--leader-elect-renew-deadline",
    "renew_deadline",
    metavar="TIME",
    default="10s",
    callback=duration,
    help="A leader that cannot renew its lease for so long stops. [default: 10s]",
)
@click.option(
    "--leader-elect-retry-period",
    "retry_period",
    metavar="TIME",
    default="2s",
    callback=duration,
    help="Between two tries to get or renew a lease. [default: 2s]",
)
@click.option(
    "--identity", metavar="NAME", help="The beginning of our name in leases and events. [default: the host name]"
)
@click.option(
    "--kube-api-qps",
    "qps",
    metavar="NUMBER",
    type=click.FloatRange(min=0),
    callback=_finite,
    default=0.0,
    help="Send at most so many requests per second. [default: 0, no limit]",
)
@click.option(
    "--metrics-address",
    metavar="IP:PORT",
    help="Serve /metrics and /healthz there, without TLS. [default: nowhere]",
)
@click.option(
    "--log-format", metavar="text|json", type=click.Choice(LOG_FORMATS), default="text", help="How log lines look."
)
@click.option(
    "-v",
    "--verbosity",
    metavar="LEVEL",
    type=click.IntRange(0, MAX_VERBOSITY),
    default=0,
    help="0 logs what changed, 1 each step, 2 libraries too. [default: 0]",
)
def command(
    kubeconfig: Path,
    context: str,
    controllers: str,
    scheduler_names: tuple[str, ...],
    leader_elect: bool,
    lease_namespace: str,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    identity: str | None,
    qps: float,
    metrics_address: str | None,
    log_format: str,
    verbosity: int,
) -> None:
    """Run control loops for the cluster of a kubeconfig, until SIGINT or SIGTERM.

    By default that is the scheduler, for pods with schedulerName devlet. Prints one line on standard output once it is
    known who leads; logs go to standard error."""
    _check("--scheduler-name", dns_subdomain, scheduler_names)
    _check("--lease-namespace", dns_label, [lease_namespace])
    if identity is not None and not identity.strip():
        raise InvalidInput("--identity: the name is empty; leave the flag out for the host's name")
    config = ControlConfig(
        kubeconfig.expanduser(),
        identity or socket.gethostname().lower(),
        context,
        _chosen(controllers),
        frozenset(scheduler_names),
        leader_elect,
        election.Settings(lease_duration, renew_deadline, retry_period, namespace=lease_namespace),
        qps,
        _address(metrics_address),
    )
    facts.configure(log_format, verbosity)
    anyio.run(partial(run, config, _ready))


def _check(flag: str, errors_of: Callable[[str], Sequence[str]], values: Sequence[str]) -> None:
    for value in values:
        if errors := errors_of(value):
            raise InvalidInput(f"{flag}: {value!r}: {errors[0]}")


def _chosen(text: str) -> frozenset[str]:
    if not text.replace(",", "").strip():
        raise InvalidInput(
            f"--controllers: nothing is named; expected some of {', '.join(names.CONTROL)}, or '*' for all"
        )
    try:
        found = names.parse(text, names.CONTROL)
    except ValueError as e:
        raise InvalidInput(f"--controllers: {e}") from e
    if not found:
        raise InvalidInput(f"--controllers: {text!r} leaves nothing to run")
    return found


def _address(text: str | None) -> tuple[str, int] | None:
    try:
        return None if text is None else address_of(text)
    except ValueError as e:
        raise InvalidInput(f"--metrics-address: {e}") from e


def _ready(state: str) -> None:
    with suppress(BrokenPipeError):
        click.echo(f"devlet control is ready: {state}")
