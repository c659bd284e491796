"""`devlet drift`."""

from pathlib import Path

import click
import msgspec

from devlet.cassettes import library
from devlet.cassettes.cassette import Cassette
from devlet.cassettes.drift import Difference, differences
from devlet.cassettes.recording import recorded
from devlet.cli.cassette_source import Origin, find, origin_options
from devlet.cli.options import KubectlCommand, output_option
from devlet.cli.output import check_format, document_text
from devlet.cli.session import Document
from devlet.cli.views import differences as view
from devlet.errors import DevletError

FORMATS = "json or yaml"
LIVE = "live"
SAME, DIFFERENT, FAILED = 0, 1, 2

_EXAMPLES = """\b
Examples:
  devlet drift monday.yaml friday.yaml
  devlet drift monday.yaml live --root /tmp/node1
  devlet drift gpu7.yaml live --kubeconfig ~/.kube/config --node gpu7 -o json
"""


class _Command(KubectlCommand):
    """A command whose usage errors exit with 2: as in diff(1), 1 means that the two differ."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as e:
            click.echo(f"error: {e.format_message()}\nSee '{ctx.command_path} --help' for usage.", err=True)
            raise click.exceptions.Exit(FAILED) from e


@click.command(cls=_Command, epilog=_EXAMPLES)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B|live")
@output_option(FORMATS)
@origin_options
def command(before: str, after: str, output: str, origin: Origin) -> int:
    """Compare two cassettes, or a cassette with a running node.

    A and B are cassettes; `live` stands for the node as it is now. The differences are devices that were added or
    removed, changed attributes, capacities, taints and health, and versions of drivers. The exit code is 0 if there are
    no differences, 1 if there are some, and 2 if the comparison failed."""
    try:
        check_format(output, "json", "yaml")
        found = differences(_cassette(before, origin), _cassette(after, origin))
    except DevletError as e:
        click.echo(f"error: {e}", err=True)
        return FAILED
    _print(found, output)
    return DIFFERENT if found else SAME


def _cassette(text: str, origin: Origin) -> Cassette:
    if text == LIVE and not Path(text).exists():
        return recorded(find(origin))
    return library.opened(text)


def _print(found: list[Difference], output: str) -> None:
    document: Document = {"same": not found, "differences": msgspec.to_builtins(found)}
    if output:
        click.echo(document_text(document, output))
    else:
        click.echo("\n".join(view.lines(found)))
