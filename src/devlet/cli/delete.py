"""`devlet delete`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from devlet.cli import selection
from devlet.cli.options import (
    Duration,
    KubectlCommand,
    all_namespaces_option,
    arguments,
    file_options,
    one_source,
    place,
    selector_options,
    target_options,
)
from devlet.cli.resources import Resource, Resources
from devlet.cli.selection import Scope, Wanted
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


@dataclass(frozen=True, slots=True)
class Doomed:
    resource: Resource
    namespace: str
    name: str

    @property
    def text(self) -> str:
        return f'{self.resource.kind_name} "{self.name}"'

    @property
    def where(self) -> str:
        return f" from {self.namespace} namespace" if self.resource.namespaced else ""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@arguments
@selector_options
@all_namespaces_option
@file_options
@click.option("--all", "everything", is_flag=True, help="All objects of the type.")
@click.option("--wait/--no-wait", default=True, help="Return when the objects are gone; --wait=false does not wait.")
@click.option("--timeout", type=Duration(), default=0.0, help="How long to wait, as in 30s; 0 for as long as it takes.")
@click.option("--grace-period", type=int, default=-1, help="Seconds that pods have to end; negative: their own.")
@click.option("--now", is_flag=True, help="The same as --grace-period=1.")
@click.option("--force", is_flag=True, help="Remove at once, without asking the node.")
@click.option("--cascade", type=click.Choice(list(_POLICIES)), default="background", help="What happens to owned objects.")
@click.option("--dry-run", type=click.Choice(["none", "server"]), default="none", help="server: check all, change nothing.")
@click.option("--ignore-not-found", is_flag=True, help="Objects that do not exist are no error.")
@click.option("-o", "--output", type=click.Choice(["name"]), help="Print names only.")
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
    one_source(arguments, files)
    options = Options(cascade, _grace(grace_period, now, force), force, dry_run == "server")
    if force:
        click.echo(f"Warning: {_FORCED}", err=True)
    resources = Resources(session)
    errors: list[DevletError] = []
    if files:
        doomed = _of_files(resources, files, recursive, namespace, session.namespace)
    else:
        scope = Scope(place(session, namespace, all_namespaces), selector, field_selector)
        doomed = _chosen(session, scope, selection.parse(resources, arguments), everything)
    if not doomed:
        click.echo("No resources found", err=True)
    deleted = list(_delete(session, doomed, options, output == "name", errors, ignore_not_found))
    if wait and not options.dry_run:
        deadline = deadline_in(timeout) if timeout else None
        late = [d for d, uid in deleted if not gone(session, d.resource, d.namespace, d.name, uid, deadline)]
        errors += [Unavailable(f"timed out waiting until {d.text} is gone; something still holds it") for d in late]
    if errors:
        raise ExceptionGroup("delete", errors)


def _grace(seconds: int, now: bool, force: bool) -> int | None:
    if now and seconds >= 0:
        raise InvalidInput("--now and --grace-period exclude each other")
    if force and seconds > 0:
        raise InvalidInput("--force deletes at once: leave out --grace-period or set it to 0")
    if force:
        return 0
    if now or seconds == 0:
        return 1  # 0 would leave a pod running that nobody knows of; that takes --force
    return seconds if seconds > 0 else None


def _chosen(session: Session, scope: Scope, wanted: Sequence[Wanted], everything: bool) -> list[Doomed]:
    scope.check(wanted)
    if not any(w.names for w in wanted) and not scope.query and not everything:
        raise InvalidInput("say which objects: by name, with -l LABELS, or --all of the type")
    if everything and (any(w.names for w in wanted) or scope.label_selector):
        raise InvalidInput("--all excludes names and selectors")
    return [doomed for want in wanted for doomed in _of_type(session, scope, want)]


def _of_type(session: Session, scope: Scope, want: Wanted) -> Iterator[Doomed]:
    namespace = scope.namespace if want.resource.namespaced else ""
    for name in want.names:
        yield Doomed(want.resource, namespace, name)
    if want.names:
        return
    for page in session.pages(want.resource.collection(scope.namespace), scope.query):
        for item in page.get("items") or ():
            metadata = item.get("metadata") or {}
            yield Doomed(want.resource, str(metadata.get("namespace") or ""), str(metadata.get("name")))


def _of_files(
    resources: Resources, files: Sequence[str], recursive: bool, namespace: str, default: str
) -> list[Doomed]:
    from devlet.cli import manifests

    found = []
    for manifest in manifests.read(files, recursive=recursive):
        resource, where = manifest.place(resources, namespace, default)
        found.append(Doomed(resource, where, manifest.name))
    return found


def _delete(
    session: Session,
    doomed: Sequence[Doomed],
    options: Options,
    names_only: bool,
    errors: list[DevletError],
    ignore_not_found: bool,
) -> Iterator[tuple[Doomed, str]]:
    """Those that were there, with their UID, as they are deleted."""
    for d in doomed:
        try:
            path = d.resource.item(d.namespace, d.name)
            _, answer = session.send("DELETE", path, options.body, accept=METADATA)
        except DevletError as e:
            if not (ignore_not_found and isinstance(e, NotFound)):
                errors.append(e)
            continue
        word = "force deleted" if options.force else "deleted"
        line = f"{d.text} {word}{d.where}{' (server dry run)' if options.dry_run else ''}"
        click.echo(f"{d.resource.kind_name}/{d.name}" if names_only else line)
        yield d, _uid(answer)


def _uid(answer: Document) -> str:
    """The server answers with the object, or with a Status about it."""
    about = answer.get("details") if answer.get("kind") == "Status" else answer.get("metadata")
    return str((about or {}).get("uid") or "")
