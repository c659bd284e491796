"""`devlet delete`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from devlet.cli import selection
from devlet.cli.options import (
    KubectlCommand,
    all_namespaces_option,
    arguments,
    duration,
    file_options,
    selector_options,
    target_options,
)
from devlet.cli.resources import Resources
from devlet.cli.selection import Named, Scope
from devlet.cli.session import METADATA, Document, Session
from devlet.cli.watching import deadline_in, gone
from devlet.errors import DevletError, InvalidInput, NotFound, Unavailable

_EXAMPLES = """\b
Examples:
  devlet delete pod train
  devlet delete resourceclaims -l app=train --wait=false
  devlet delete -f claim.yaml --ignore-not-found
"""
_FORCED = (
    "Immediate deletion does not wait for confirmation that the running resource has been terminated."
    " The resource may continue to run on the cluster indefinitely."
)
_POLICIES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


@dataclass(frozen=True, slots=True)
class Options:
    """`grace_period` in seconds; None leaves it to the object."""

    cascade: str = "background"
    grace_period: int | None = None
    force: bool = False
    dry_run: bool = False

    @property
    def body(self) -> Document:
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": _POLICIES[self.cascade]}
        if self.grace_period is not None:
            body["gracePeriodSeconds"] = self.grace_period
        return body | ({"dryRun": ["All"]} if self.dry_run else {})


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@arguments
@selector_options
@all_namespaces_option
@file_options
@click.option("--all", "everything", is_flag=True, help="Delete all objects of the type in the namespace.")
@click.option("--wait/--no-wait", default=True, help="Wait until the objects are gone. [default: wait]")
@click.option(
    "--timeout",
    metavar="TIME",
    callback=duration,
    default="0",
    help="Time to wait before giving up, as in 30s; 0 for no limit.",
)
@click.option(
    "--grace-period",
    metavar="SECONDS",
    type=int,
    default=-1,
    help="Time for a pod to terminate; negative for the pod's own.",
)
@click.option("--now", is_flag=True, help="Terminate pods quickly; the same as --grace-period=1.")
@click.option("--force", is_flag=True, help="Remove the objects immediately, without waiting for the node.")
@click.option(
    "--cascade",
    type=click.Choice(list(_POLICIES)),
    default="background",
    help="Choose how owned objects are deleted. [default: background]",
)
@click.option(
    "--dry-run",
    type=click.Choice(["none", "server"]),
    default="none",
    help="With server, validate the request on the server without deleting anything.",
)
@click.option("--ignore-not-found", is_flag=True, help="Treat objects that do not exist as deleted.")
@click.option("-o", "--output", type=click.Choice(["name"]), help="Print only the names of the deleted objects.")
@target_options
def command(
    arguments: tuple[str, ...],
    session: Session,
    namespace: str,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    files: tuple[str, ...],
    recursive: bool,
    everything: bool,
    wait: bool,
    timeout: float,
    grace_period: int,
    now: bool,
    force: bool,
    cascade: str,
    dry_run: str,
    ignore_not_found: bool,
    output: str | None,
) -> None:
    """Delete objects by name, by label or from files, and wait until they are gone."""
    selection.one_source(arguments, files)
    options = Options(cascade, _grace(grace_period, now, force), force, dry_run == "server")
    if force:
        click.echo(f"Warning: {_FORCED}", err=True)
    resources = Resources(session)
    errors: list[DevletError] = []
    if files:
        doomed = selection.of_files(resources, session, files, recursive=recursive, namespace=namespace)
    else:
        scope = Scope(selection.place(session, namespace, everywhere=all_namespaces), selector, field_selector)
        doomed = selection.explicit(session, scope, selection.parse(resources, arguments), everything=everything)
    if not doomed:
        click.echo("No resources found", err=True)
    deleted = list(_delete(session, doomed, options, output == "name", errors, ignore_not_found))
    if wait and not options.dry_run:
        deadline = deadline_in(timeout) if timeout else None
        late = [d for d, uid in deleted if not gone(session, d.resource, d.namespace, d.name, uid, deadline)]
        errors += [
            Unavailable(f"timed out waiting for {d.text} to be deleted: `devlet describe` shows its finalizers")
            for d in late
        ]
    if errors:
        raise ExceptionGroup("delete", errors)


def _grace(seconds: int, now: bool, force: bool) -> int | None:
    if now and seconds >= 0:
        raise InvalidInput("--now and --grace-period cannot be combined")
    if force and seconds > 0:
        raise InvalidInput("--force deletes immediately: leave out --grace-period or set it to 0")
    if force:
        return 0
    if now or seconds == 0:
        return 1  # 0 could leave a pod running that the API no longer shows, which takes --force
    return seconds if seconds > 0 else None


def _delete(
    session: Session,
    doomed: Sequence[Named],
    options: Options,
    names_only: bool,
    errors: list[DevletError],
    ignore_not_found: bool,
) -> Iterator[tuple[Named, str]]:
    """Delete the objects one by one, and yield each that existed with its UID."""
    for d in doomed:
        try:
            _, answer = session.send("DELETE", d.path, options.body, accept=METADATA)
        except DevletError as e:
            if not (ignore_not_found and isinstance(e, NotFound)):
                errors.append(e)
            continue
        click.echo(d.text if names_only else _line(d, options))
        yield d, _uid(answer)


def _line(deleted: Named, options: Options) -> str:
    where = f" from {deleted.namespace} namespace" if deleted.namespace else ""
    word = "force deleted" if options.force else "deleted"
    done = f'{deleted.resource.kind_name} "{deleted.name}" {word}{where}'
    return f"{done} (server dry run)" if options.dry_run else done


def _uid(answer: Document) -> str:
    """Return the UID from the response, which is the object or a Status about it."""
    about = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return str((about or {}).get("uid") or "")
