"""`devlet simulate`."""

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO

import click
import msgspec

from devlet.alloc.features import Rules
from devlet.cli import allocation_files
from devlet.cli.allocation_input import Objects
from devlet.cli.options import KubectlCommand, duration, file_options, output_option
from devlet.cli.output import as_list, json_text
from devlet.cli.problem_answers import Answers
from devlet.errors import InvalidInput, NotFound
from devlet.objects.node import Node

FORMATS = "json, yaml or wide"

_EXAMPLES = """\b
Examples:
  devlet simulate -f slices.yaml -f classes.yaml -f pods.yaml
  kubectl get nodes,resourceslices,deviceclasses,resourceclaims,pods -A -o yaml | devlet simulate -f -
  devlet simulate -f cluster/ --node n1 -o yaml
  devlet simulate --problems problems.jsonl --bench
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@file_options
@click.option("--node", "node_name", metavar="NAME", default="", help="On this node only.")
@click.option("--improved", is_flag=True, help="Allocate as devlet does, not as Kubernetes.")
@click.option("--timeout", metavar="TIME", default="10s", callback=duration, help="For one search; 0 for no limit.")
@output_option(FORMATS)
@click.option("--no-headers", is_flag=True, help="The table without titles.")
@click.option("-n", "--namespace", metavar="NAME", default="default", help="Of objects that name none.")
@click.option("--problems", metavar="FILE", default="", help="Problems, one JSON document per line; - for stdin.")
@click.option("--bench", is_flag=True, help="With --problems: say how many seconds each took.")
def command(
    files: tuple[str, ...],
    recursive: bool,
    node_name: str,
    improved: bool,
    timeout: float,
    output: str,
    no_headers: bool,
    namespace: str,
    problems: str,
    bench: bool,
) -> int:
    """Allocate devices offline: which pods and claims fit where.

    Pods and claims take their devices one after the other, as the files have them; nothing is written anywhere."""
    if bool(files) == bool(problems):
        raise InvalidInput("say what to allocate: either -f FILES or --problems FILE")
    rules = Rules() if improved else Rules.reference()
    if problems:
        return _answer(problems, Answers(rules, timeout, bench=bench, report=_complain))
    if output not in ("", "wide", "json", "yaml"):
        raise InvalidInput(f'output format "{output}": expected {FORMATS}')
    if bench:
        raise InvalidInput("--bench is for --problems")
    objects = allocation_files.read(files, namespace, recursive=recursive)
    _simulate(objects, nodes_of(objects, node_name), rules, timeout, output, headers=not no_headers)
    return 0


def _answer(source: str, answers: Answers) -> int:
    origin = "standard input" if source == "-" else source
    with _opened(source) as lines:
        for answer in answers.of(lines, origin):
            sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
            sys.stdout.buffer.flush()
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


def nodes_of(objects: Objects, name: str) -> list[Node]:
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
        document = as_list(list(objects.documents.values()))
        click.echo(json_text(document) if output == "json" else _yaml(document))
        for each in placements:
            if each.cause:
                click.echo(f"{each.name}: {each.cause}", err=True)
        return
    if placements:
        click.echo("\n".join(placement.lines(placements, wide=output == "wide", headers=headers)))
    if simulation.settled or not placements:
        click.echo(f"Pods and claims that have their devices already: {simulation.settled}", err=True)


def _yaml(document: dict[str, object]) -> str:
    from devlet.cli.yaml_output import dump

    return dump(document).rstrip("\n")
