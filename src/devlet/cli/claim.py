"""`devlet claim`: release claims that are prepared on a node."""

from urllib.parse import quote

import click

from devlet.cli.options import target_options
from devlet.cli.session import METADATA, Document, Session
from devlet.errors import InvalidInput

_EXAMPLES = """\b
Examples:
  devlet claim release default/train
  devlet claim release default/train --force"""
_PATH = "/apis/devlet.dev/v1alpha1/namespaces/{}/preparedclaims/{}"
_FORCED = (
    "the drivers may still have the claim prepared. Its devices can now be prepared for other claims: make sure that"
    " nothing uses them."
)


@click.group(epilog=_EXAMPLES)
def command() -> None:
    """Release claims that their drivers do not unprepare."""


@command.command(epilog=_EXAMPLES)
@click.argument("claim", metavar="[NAMESPACE/]NAME")
@click.option("--force", is_flag=True, help="Forget the claim even if its drivers cannot unprepare it.")
@target_options
def release(claim: str, session: Session, namespace: str, force: bool) -> None:
    """Unprepare a claim on this node whose pods have ended.

    The node calls the drivers once more to unprepare the claim. If they fail, the claim stays prepared, and no other
    claim gets its devices on this node. With --force the node forgets the claim all the same, logs a warning and
    reports an event."""
    place, _, name = claim.rpartition("/")
    if not name or "/" in place or (place and namespace and place != namespace):
        raise InvalidInput(f"invalid claim {claim!r}: expected NAME or NAMESPACE/NAME, with no other namespace in -n")
    place = place or namespace or session.namespace
    options: Document = {"apiVersion": "v1", "kind": "DeleteOptions"} | ({"gracePeriodSeconds": 0} if force else {})
    if force:
        click.echo(f"Warning: {_FORCED}", err=True)
    session.send("DELETE", _PATH.format(quote(place, safe=""), quote(name, safe="")), options, accept=METADATA)
    click.echo(f"claim {place}/{name} released")
