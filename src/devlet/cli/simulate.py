"""`devlet simulate`."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO

import click
import msgspec
from click.core import ParameterSource

from devlet.alloc.features import Rules
from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_source import Source, improved_option, source_options
from devlet.cli.options import KubectlCommand, duration, no_headers_option, output_option
from devlet.cli.output import as_list, check_format, document_text
from devlet.cli.problem_answers import Answers
from devlet.errors import InvalidInput, NotFound
from devlet.objects.types.node import Node

FORMATS = "json, yaml or wide"

_EXAMPLES = """\b
Examples:
  devlet simulate -f slices.yaml -f classes.yaml -f pods.yaml
  kubectl get nodes,resourceslices,deviceclasses,resourceclaims,pods -A -o yaml | devlet simulate -f -
  devlet simulate -f pods.yaml --kubeconfig ~/.kube/config
  devlet simulate -f cluster/ --node n1 -o yaml
  devlet simulate --problems problems.jsonl --bench
"""

_WITH_PROBLEMS = ("problems", "bench", "improved", "timeout")


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@click.option("--node", "node_name", metavar="NAME", default="", help="Allocate only on this node.")
@improved_option
@click.option(
    "--timeout", metavar="TIME", default="10s", callback=duration, help="Time limit for one search; 0 for none."
)
@output_option(FORMATS)
@no_headers_option
@click.option(
    "--problems",
    metavar="FILE",
    default="",
    help="Solve problems from a file, one JSON document per line; - for stdin.",
)
@click.option("--bench", is_flag=True, help="With --problems, report how many seconds each one took.")
@source_options
def command(
    source: Callable[[], Source],
    node_name: str,
    improved: bool | None,
    timeout: float,
    output: str,
    no_headers: bool,
    problems: str,
    bench: bool,
) -> int:
    """Show which pods and claims would get which devices on which node.

    Pods and claims are allocated one after the other, and nothing is changed. Objects come from files, from a server,
    or from both: then the files add to what the server has, or replace it."""
    if problems:
        _refuse_others(click.get_current_context())
        return _answer(problems, Answers(_rules(bool(improved)), timeout, bench=bench, report=_complain))
    check_format(output, "json", "yaml", "wide")
    if bench:
        raise InvalidInput("--bench can be used only with --problems")
    found = source()
    objects = found.objects(pods=True)
    rules = _rules(found.is_devlet if improved is None else improved)
    _simulate(objects, _nodes(objects, node_name), rules, timeout, output, headers=not no_headers)
    return 0


def _refuse_others(context: click.Context) -> None:
    """Reject flags that --problems would ignore, because problems contain their own objects."""
    for parameter in context.command.params:
        given = parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        if given and parameter.name not in _WITH_PROBLEMS:
            raise InvalidInput(f"{parameter.opts[-1]} cannot be combined with --problems, which has its own objects")


def _rules(improved: bool) -> Rules:
    return Rules() if improved else Rules.reference()


def _answer(source: str, answers: Answers) -> int:
    with _opened(source) as lines:
        for answer in answers.of(lines, "standard input" if source == "-" else source):
            sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
            sys.stdout.flush()
    return 1 if answers.failed else 0


def _opened(source: str) -> AbstractContextManager[BinaryIO]:
    if source == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return open(source, "rb")
    except OSError as e:
        raise InvalidInput(f"{source}: {e.strerror or e}") from e


def _complain(text: str) -> None:
    click.echo(f"error: {text}", err=True)


def _nodes(objects: Objects, name: str) -> list[Node]:
    """Return the nodes to allocate on, with a warning if they are known only from slices."""
    nodes = objects.node_list()
    if not nodes:
        raise InvalidInput("there are no nodes, and no slice names one: add nodes, as in -f nodes.yaml")
    if not objects.nodes:
        names = ", ".join(node.name for node in nodes[:3]) + (", …" if len(nodes) > 3 else "")
        click.echo(f"No nodes given: using the nodes that slices name, without labels: {names}", err=True)
    if name and not (nodes := [node for node in nodes if node.name == name]):
        raise NotFound(f'node "{name}" not found')
    return nodes


def _simulate(objects: Objects, nodes: list[Node], rules: Rules, timeout: float, output: str, *, headers: bool) -> None:
    from devlet.cli.simulation import Simulation
    from devlet.cli.views import placement

    simulation = Simulation(objects, nodes, rules, timeout)
    placements = list(simulation.run())
    if output in ("json", "yaml"):
        click.echo(document_text(as_list(list(objects.documents.values())), output))
        for each in placements:
            if each.cause:
                click.echo(f"{each.name}: {each.cause}", err=True)
        return
    if placements:
        click.echo("\n".join(placement.lines(placements, wide=output == "wide", headers=headers)))
    if simulation.settled or not placements:
        click.echo(f"Pods and claims that already have their devices: {simulation.settled}", err=True)
