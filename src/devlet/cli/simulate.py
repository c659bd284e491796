"""`devlet simulate`."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, BinaryIO

import click
import msgspec
from click.core import ParameterSource

from devlet.alloc.features import Rules
from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_source import Source, source_options
from devlet.cli.options import KubectlCommand, duration, output_option
from devlet.cli.output import as_list, json_text
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
@click.option("--node", "node_name", metavar="NAME", default="", help="On this node only.")
@click.option(
    "--improved/--no-improved",
    default=None,
    help="As devlet allocates, or as Kubernetes; by default devlet's way for a devlet, Kubernetes' for the rest.",
)
@click.option("--timeout", metavar="TIME", default="10s", callback=duration, help="For one search; 0 for no limit.")
@output_option(FORMATS)
@click.option("--no-headers", is_flag=True, help="The table without titles.")
@click.option("--problems", metavar="FILE", default="", help="Problems, one JSON document per line; - for stdin.")
@click.option("--bench", is_flag=True, help="With --problems: say how many seconds each took.")
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
    """Say which pods and claims would get which devices on which node.

    They take their devices one after the other, and nothing is written anywhere. Files alone are enough; with a server,
    what is in files comes on top of what it has."""
    if problems:
        _refuse_others(click.get_current_context())
        return _answer(problems, Answers(_rules(bool(improved)), timeout, bench=bench, report=_complain))
    if output not in ("", "wide", "json", "yaml"):
        raise InvalidInput(f'output format "{output}": expected {FORMATS}')
    if bench:
        raise InvalidInput("--bench is for --problems")
    found = source()
    objects = found.objects(pods=True)
    rules = _rules(found.is_devlet if improved is None else improved)
    _simulate(objects, _nodes(objects, node_name), rules, timeout, output, headers=not no_headers)
    return 0


def _refuse_others(context: click.Context) -> None:
    """Problems have their own objects: what says where others come from would be ignored."""
    for parameter in context.command.params:
        given = parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
        if given and parameter.name not in _WITH_PROBLEMS:
            raise InvalidInput(f"{parameter.opts[-1]} is not for --problems, which bring their own objects")


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
    """Those to look at. Says so where they had to be invented."""
    nodes = objects.node_list()
    if not nodes:
        raise InvalidInput("there are no nodes, and no slice names one: add the nodes, as in -f nodes.yaml")
    if not objects.nodes:
        names = ", ".join(node.name for node in nodes[:3]) + (", …" if len(nodes) > 3 else "")
        click.echo(f"There are no nodes: taken are those that slices name, without labels: {names}", err=True)
    if name and not (nodes := [node for node in nodes if node.name == name]):
        raise NotFound(f'node "{name}" not found')
    return nodes


def _simulate(objects: Objects, nodes: list[Node], rules: Rules, timeout: float, output: str, *, headers: bool) -> None:
    from devlet.cli.simulation import Simulation
    from devlet.cli.views import placement

    simulation = Simulation(objects, nodes, rules, timeout)
    placements = list(simulation.run())
    if output in ("json", "yaml"):
        click.echo(_text(as_list(list(objects.documents.values())), output))
        for each in placements:
            if each.cause:
                click.echo(f"{each.name}: {each.cause}", err=True)
        return
    if placements:
        click.echo("\n".join(placement.lines(placements, wide=output == "wide", headers=headers)))
    if simulation.settled or not placements:
        click.echo(f"Pods and claims that have their devices already: {simulation.settled}", err=True)


def _text(document: dict[str, Any], output: str) -> str:
    if output == "json":
        return json_text(document)
    from devlet.cli.yaml_output import dump

    return dump(document).rstrip("\n")
