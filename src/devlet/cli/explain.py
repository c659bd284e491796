"""`devlet explain`."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import click

from devlet.alloc.features import Rules
from devlet.cli.allocation_source import Source, source_options
from devlet.cli.explaining import Answer, Question, answer, objects_for
from devlet.cli.options import KubectlCommand, duration, output_option
from devlet.errors import InvalidInput

FORMATS = "json, yaml or wide"

_EXAMPLES = """\b
Examples:
  devlet explain pod/train
  devlet explain claim/train-gpu -n team -o wide
  devlet explain train --kubeconfig ~/.kube/config --all-nodes
  kubectl get nodes,resourceslices,deviceclasses,resourceclaims,pods -A -o yaml | devlet explain train -f -
  devlet explain train -f train.yaml --kubeconfig ~/.kube/config
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@click.argument("arguments", metavar="POD|CLAIM|pod/NAME|claim/NAME", nargs=-1)
@click.option("--node", "node_name", metavar="NAME", default="", help="On this node only.")
@click.option("--all-nodes", is_flag=True, help="Every node, not only the one that comes closest.")
@click.option(
    "--improved/--no-improved",
    default=None,
    help="As devlet allocates, or as Kubernetes; by default devlet's way for a devlet, Kubernetes' for the rest.",
)
@click.option("--timeout", metavar="TIME", default="10s", callback=duration, help="For all searches; 0 for no limit.")
@output_option(FORMATS)
@source_options
def command(
    arguments: tuple[str, ...],
    source: Callable[[], Source],
    node_name: str,
    all_nodes: bool,
    improved: bool | None,
    timeout: float,
    output: str,
) -> None:
    """Say why a pod or claim has its devices, or why it cannot have any.

    The first line is the verdict; then come the wishes that cannot hold together, each device with its reason, and what
    would help. The exit code is 0 whenever there is an answer."""
    if output not in ("", "wide", "json", "yaml"):
        raise InvalidInput(f'output format "{output}": expected {FORMATS}')
    found = source()
    question = replace(Question.parse(arguments, found.namespace), node=node_name, all_nodes=all_nodes, seconds=timeout)
    rules = Rules() if (found.is_devlet if improved is None else improved) else Rules.reference()
    _print(answer(question, objects_for(question, found), rules), output, all_nodes=all_nodes)


def _print(found: Answer, output: str, *, all_nodes: bool) -> None:
    if output == "json":
        from devlet.cli.output import json_text

        click.echo(json_text(found.document()))
    elif output == "yaml":
        from devlet.cli.yaml_output import dump

        click.echo(dump(found.document()).rstrip("\n"))
    else:
        click.echo("\n".join(found.lines(datetime.now(UTC), wide=output == "wide", all_nodes=all_nodes)))
