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
@output_option("json, yaml, name, jsonpath=TEMPLATE or custom-columns=…; else one line per object")
@click.option(
    "--dry-run", type=click.Choice(["none", "server"]), default="none", help="server: check all, change nothing."
)
@click.option("--field-manager", metavar="NAME", default=FIELD_MANAGER, show_default=True, help="Who owns the fields.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others own.")
@click.option("--server-side", is_flag=True, help="As always here; the lines are kubectl's for this flag.")
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
    """Create objects, or change them to what the files say.

    Fields that the files no longer have are removed if this field manager owned them; those of others stay."""
    if not files:
        raise InvalidInput("say what to apply: -f FILE, a directory, or -")
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
    """The object as it is now, and what happened: created, configured or unchanged."""
    if not manifest.name:
        raise InvalidInput(
            f"{manifest.origin}: metadata.generateName cannot be applied, every time would make a new one"
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
            raise Conflict(f"{name}: {e}; leave these fields out, or take them over with --force-conflicts") from e
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
    """A change has a new version, but not on a dry run: there the objects tell."""
    one, two = before.get("metadata") or {}, after.get("metadata") or {}
    if not dry_run:
        return bool(one.get("resourceVersion") == two.get("resourceVersion"))
    passing = dict.fromkeys(("managedFields", "resourceVersion"))
    return before | {"metadata": one | passing} == after | {"metadata": two | passing}
