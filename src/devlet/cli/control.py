"""`devlet control`: devlet's scheduler, and on request its controllers, for another cluster."""

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
        raise click.BadParameter(f"{value} is not a finite number of requests per second", ctx, param)
    return value


@click.command(cls=KubectlCommand, epilog=_EXAMPLE)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="Use the cluster and the credentials of this kubeconfig.",
)
@click.option(
    "--context", metavar="NAME", default="", help="Use this context of the kubeconfig. [default: its current context]"
)
@click.option(
    "--controllers",
    metavar="LIST",
    default=names.SCHEDULER,
    help="Run these: scheduler, resourceclaim, device-taint-eviction, '*' for all, or -NAME to exclude one."
    " [default: scheduler]",
)
@click.option(
    "--scheduler-name",
    "scheduler_names",
    metavar="NAME",
    multiple=True,
    default=("devlet",),
    help="Schedule pods with this schedulerName; may be repeated. [default: devlet]",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    help="Work only while holding a lease, so that several instances can run. [default: true]",
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    default="kube-system",
    help="Namespace of the leases devlet-scheduler and devlet-controllers. [default: kube-system]",
)
@click.option(
    "--leader-elect-lease-duration",
    "lease_duration",
    metavar="TIME",
    default="15s",
    callback=duration,
    help="Time that other instances wait before they take over an unrenewed lease. [default: 15s]",
)
@click.option(
    "--leader-elect-renew-deadline",
    "renew_deadline",
    metavar="TIME",
    default="10s",
    callback=duration,
    help="Time after which a leader that cannot renew its lease stops. [default: 10s]",
)
@click.option(
    "--leader-elect-retry-period",
    "retry_period",
    metavar="TIME",
    default="2s",
    callback=duration,
    help="Time between two attempts to acquire or renew a lease. [default: 2s]",
)
@click.option(
    "--identity", metavar="NAME", help="Prefix of this instance's name in leases and events. [default: the host name]"
)
@click.option(
    "--kube-api-qps",
    "qps",
    metavar="NUMBER",
    type=click.FloatRange(min=0),
    callback=_finite,
    default=0.0,
    help="Limit the requests per second to the API server. [default: 0, no limit]",
)
@click.option(
    "--metrics-address",
    metavar="IP:PORT",
    help="Serve /metrics and /healthz on this address, without TLS. [default: not served]",
)
@click.option(
    "--log-format",
    metavar="text|json",
    type=click.Choice(LOG_FORMATS),
    default="text",
    help="Format of log lines. [default: text]",
)
@click.option(
    "-v",
    "--verbosity",
    metavar="LEVEL",
    type=click.IntRange(0, MAX_VERBOSITY),
    default=0,
    help="Log level: 0 logs changes, 1 adds each step, 2 adds messages of libraries. [default: 0]",
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
    """Run devlet's scheduler and controllers for another cluster, until SIGINT or SIGTERM.

    By default this is the scheduler, for pods with schedulerName devlet. One line is printed to standard output once a
    leader is known; logs go to standard error."""
    _check("--scheduler-name", dns_subdomain, scheduler_names)
    _check("--lease-namespace", dns_label, [lease_namespace])
    if identity is not None and not identity.strip():
        raise InvalidInput("--identity: the name is empty: leave the flag out to use the host name")
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
            f"--controllers: the list is empty: expected some of {', '.join(names.CONTROL)}, or '*' for all"
        )
    try:
        found = names.parse(text, names.CONTROL)
    except ValueError as e:
        raise InvalidInput(f"--controllers: {e}") from e
    if not found:
        raise InvalidInput(f"--controllers: {text!r} selects nothing to run")
    return found


def _address(text: str | None) -> tuple[str, int] | None:
    try:
        return None if text is None else address_of(text)
    except ValueError as e:
        raise InvalidInput(f"--metrics-address: {e}") from e


def _ready(state: str) -> None:
    with suppress(BrokenPipeError):
        click.echo(f"devlet control is ready: {state}")
