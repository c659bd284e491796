"""`devlet apply`: server-side apply, object by object in the order of the files."""

from dataclasses import dataclass

import click

from devlet.cli import manifests
from devlet.cli.manifests import Manifest
from devlet.cli.options import KubectlCommand, file_options, output_option, target_options
from devlet.cli.output import Found, emit, printer
from devlet.cli.resources import Resource, Resources
from devlet.cli.session import APPLY, JSON, METADATA, Document, Query, Session
from devlet.errors import Conflict, DevletError, InvalidInput, NotFound

FIELD_MANAGER = "devlet"

_EXAMPLES = """\b
Examples:
  devlet apply -f claim.yaml
  devlet apply -f manifests/ -R --dry-run=server
"""


@dataclass(frozen=True, slots=True)
class Options:
    field_manager: str = FIELD_MANAGER
    force_conflicts: bool = False
    dry_run: bool = False

    @property
    def query(self) -> Query:
        asked = [("fieldManager", self.field_manager), ("fieldValidation", "Strict")]
        asked += [("force", "true")] * self.force_conflicts
        return asked + [("dryRun", "All")] * self.dry_run


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@file_options
@output_option("json, yaml, name, jsonpath=TEMPLATE or custom-columns=…; by default one line per object")
@click.option(
    "--dry-run",
    type=click.Choice(["none", "server"]),
    default="none",
    help="With server, validate the request on the server without saving anything.",
)
@click.option(
    "--field-manager",
    metavar="NAME",
    default=FIELD_MANAGER,
    show_default=True,
    help="Name of the manager that owns the applied fields.",
)
@click.option("--force-conflicts", is_flag=True, help="Take over fields that other managers own.")
@click.option(
    "--server-side",
    is_flag=True,
    help="Print `serverside-applied` as kubectl does; devlet always applies on the server.",
)
@target_options
def command(
    session: Session,
    namespace: str,
    files: tuple[str, ...],
    recursive: bool,
    output: str,
    dry_run: str,
    field_manager: str,
    force_conflicts: bool,
    server_side: bool,
) -> None:
    """Create or update objects from files, by server-side apply.

    Fields that are no longer in the files are removed if this field manager owned them. Fields that other managers own
    are left alone."""
    if not files:
        raise InvalidInput("no files given: name a file, a directory or - with -f")
    printing = printer(output) if output not in ("", "wide") else None
    options = Options(field_manager, force_conflicts, dry_run == "server")
    resources = Resources(session)
    errors: list[DevletError] = []
    found: list[Found] = []
    for manifest in manifests.read(files, recursive=recursive):
        try:
            resource, where = manifest.place(resources, namespace, session.namespace)
            applied, word = apply(session, manifest, resource, where, options)
        except DevletError as e:
            errors.append(e)
            continue
        found.append(Found(resource, applied))
        if printing is None:
            word = "serverside-applied" if server_side else word
            click.echo(f"{resource.kind_name}/{manifest.name} {word}{' (server dry run)' if options.dry_run else ''}")
    if printing is not None and found:
        emit(printing, printing.all(found, single=len(found) == 1))
    if errors:
        raise ExceptionGroup("apply", errors)


def apply(
    session: Session, manifest: Manifest, resource: Resource, namespace: str, options: Options
) -> tuple[Document, str]:
    """Return the applied object and what happened to it: created, configured or unchanged."""
    if not manifest.name:
        raise InvalidInput(
            f"{manifest.origin}: cannot apply an object with metadata.generateName: set metadata.name instead"
        )
    path = resource.item(namespace, manifest.name)
    before = _present(session, path, METADATA if not options.dry_run else JSON)
    body = manifest.document
    if resource.namespaced:
        body = body | {"metadata": body["metadata"] | {"namespace": namespace}}
    try:
        code, applied = session.send("PATCH", path, body, query=options.query, content_type=APPLY)
    except Conflict as e:
        if any(cause.reason == "FieldManagerConflict" for cause in e.causes):
            name = f"{resource.kind_name}/{manifest.name}"
            raise Conflict(f"{name}: {e}; remove these fields from the file, or use --force-conflicts") from e
        raise
    if before is None or code == 201:
        return applied, "created"
    return applied, "unchanged" if _same(before, applied, options.dry_run) else "configured"


def _present(session: Session, path: str, accept: str) -> Document | None:
    try:
        return session.get(path, accept=accept)
    except NotFound:
        return None


def _same(before: Document, after: Document, dry_run: bool) -> bool:
    """Compare the resource versions, or the objects themselves after a dry run, which assigns no new version."""
    one, two = before.get("metadata") or {}, after.get("metadata") or {}
    if not dry_run:
        return bool(one.get("resourceVersion") == two.get("resourceVersion"))
    ignored = dict.fromkeys(("managedFields", "resourceVersion"))
    return before | {"metadata": one | ignored} == after | {"metadata": two | ignored}
