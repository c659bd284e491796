"""`devlet explain`."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import click

from devlet.alloc.features import Rules
from devlet.cli.allocation_source import Source, improved_option, source_options
from devlet.cli.explaining import Question, answer, objects_for
from devlet.cli.options import KubectlCommand, duration, output_option
from devlet.cli.output import check_format, document_text

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
@click.option("--node", "node_name", metavar="NAME", default="", help="Look only at this node.")
@click.option("--all-nodes", is_flag=True, help="Report on every node, not only on the one that comes closest.")
@improved_option
@click.option(
    "--timeout", metavar="TIME", default="10s", callback=duration, help="Time limit for all searches; 0 for none."
)
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
    """Explain why a pod or claim has its devices, or why it cannot get any.

    The first line is the verdict. It is followed by the requests and constraints that conflict, the reason for each
    device, and changes that would help. The exit code is 0 whenever there is an explanation, whatever the verdict."""
    check_format(output, "json", "yaml", "wide")
    found = source()
    parsed = Question.parse(arguments, found.namespace)
    question = replace(parsed, node=node_name, all_nodes=all_nodes, seconds=timeout)
    rules = Rules() if (found.is_devlet if improved is None else improved) else Rules.reference()
    explained = answer(question, objects_for(question, found), rules)
    if output in ("json", "yaml"):
        click.echo(document_text(explained.document(), output))
    else:
        click.echo("\n".join(explained.lines(datetime.now(UTC), wide=output == "wide", all_nodes=all_nodes)))
