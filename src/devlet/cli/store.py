"""`devlet store`: check and repair the database of an embedded cluster that is stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from devlet.errors import InUse, InvalidInput, StateCorrupt

if TYPE_CHECKING:
    from devlet.cluster.store.repair import Checked, Repaired

_LINES = 20  # of what is lost

_EXAMPLES = """\b
Examples:
  devlet store check --root /tmp/node1
  devlet store repair --root /tmp/node1"""


@click.group(invoke_without_command=True, epilog=_EXAMPLES)
@click.pass_context
def command(context: click.Context) -> None:
    """Check and repair the database of an embedded cluster.

    Stop the devlet first."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_root = click.option("--root", metavar="DIR", help="Use the root DIR. [default: as for `devlet up`]")


@command.command(epilog=_EXAMPLES)
@_root
def check(root: str | None) -> None:
    """Check that the database is intact, or report what is lost.

    The database is only read, except that an interrupted repair is finished first. A write that a crash cut off before
    it was acknowledged does not count as damage. The exit code is 1 if the database is damaged."""
    from devlet.cluster.store import repair

    with _database(root) as path:
        _print_checked(path, repair.check(path))


@command.command(epilog=_EXAMPLES)
@_root
def repair(root: str | None) -> None:
    """Repair a damaged database, so that devlet can start on the root again.

    Every object that can be read is kept, and losses are reported. The damaged files are kept beside the new one.
    Resource versions continue above all earlier ones, so clients list again before they watch. An intact database is
    left as it is."""
    from devlet.cluster.store.repair import check, repair

    with _database(root) as path:
        try:
            _print_checked(path, check(path))
            click.echo("There is nothing to repair.")
        except StateCorrupt:
            _print_repaired(path, repair(path, datetime.now(UTC)))


@contextmanager
def _database(root: str | None) -> Iterator[Path]:
    """Yield the database of the root, and keep a devlet from starting on it meanwhile."""
    from devlet.daemon import root_format
    from devlet.daemon.config import load
    from devlet.daemon.root import DATABASE, LOCK_FILE
    from devlet.kit import file_lock

    place = load({"root": root}).root
    path = place / DATABASE
    if not path.exists():
        raise InvalidInput(f"{place} has no embedded cluster: there is no {path}")
    root_format.check(place)
    try:
        with file_lock.held(place / LOCK_FILE):
            yield path
    except InUse as e:
        raise InUse(f"{e}: stop it first") from e


def _print_checked(path: Path, found: "Checked") -> None:
    click.echo(f"{path}: intact, {found.objects} objects, version {found.version}")
    if found.tail.ignored:
        click.echo(f"The write-ahead log ends with {found.tail.ignored} pages of a write that was never acknowledged.")
    if not found.marked:
        click.echo("There is no high-water mark yet: a loss of the latest writes would not be noticed.")


def _print_repaired(path: Path, done: "Repaired") -> None:
    click.echo(f"{path}: repaired with {done.objects} objects; versions continue above {done.version}")
    for lost in done.lost[:_LINES] or ("nothing that was acknowledged",):
        click.echo(f"lost: {lost}")
    if len(done.lost) > _LINES:
        click.echo(f"lost: {len(done.lost) - _LINES} more versions or parts")
    for copy in done.copies:
        click.echo(f"kept: {copy}")
