"""`devlet wait`."""

from collections.abc import Callable, Sequence

import click

from devlet.cli import jsonpath, selection
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
from devlet.cli.session import Document, Session
from devlet.cli.watching import deadline_in, states
from devlet.errors import DevletError, InvalidInput, NotFound, Unavailable

Condition = Callable[[Document | None], bool]  # None: there is no such object

_EXAMPLES = """\b
Examples:
  devlet wait --for=condition=Ready pod/train --timeout=60s
  devlet wait --for=jsonpath='{.status.allocation}' resourceclaim/gpu
  devlet wait --for=delete pod -l app=train
"""
_FOR = "delete, create, condition=NAME[=VALUE] or jsonpath={PATH}[=VALUE]"


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@arguments
@click.option("--for", "what", metavar="CONDITION", required=True, help=f"{_FOR}.")
@click.option("--timeout", type=Duration(), default="30s", show_default=True, help="0 looks once.")
@selector_options
@all_namespaces_option
@file_options
@click.option("--all", "everything", is_flag=True, help="All objects of the type.")
@target_options
def command(
    arguments: tuple[str, ...],
    session: Session,
    namespace: str,
    what: str,
    timeout: float,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    files: tuple[str, ...],
    recursive: bool,
    everything: bool,
) -> None:
    """Wait until every object named meets a condition."""
    condition = parse(what)
    one_source(arguments, files)
    resources = Resources(session)
    deadline = deadline_in(timeout)
    if files:
        objects = _of_files(resources, files, recursive, namespace, session.namespace)
    else:
        scope = Scope(place(session, namespace, all_namespaces), selector, field_selector)
        wanted = selection.parse(resources, arguments)
        objects = _chosen(session, scope, wanted, everything, absent=what.lower() in ("delete", "create"))
    errors: list[DevletError] = []
    for resource, where, name in objects:
        try:
            _wait(session, resource, where, name, condition, deadline, absent=what.lower() in ("delete", "create"))
            click.echo(f"{resource.kind_name}/{name} condition met")
        except DevletError as e:
            errors.append(e)
    if errors:
        raise ExceptionGroup("wait", errors)


def parse(text: str) -> Condition:
    kind, equals, rest = text.partition("=")
    match kind.lower(), bool(equals and rest):
        case "delete", False:
            return lambda found: found is None
        case "create", False:
            return lambda found: found is not None
        case "condition", True:
            name, _, value = rest.partition("=")
            return _condition(name, value or "True")
        case "jsonpath", True:
            return _path(rest)
    raise InvalidInput(f'--for={text}: expected {_FOR}')


def _condition(name: str, value: str) -> Condition:
    def met(found: Document | None) -> bool:
        if found is None:
            return False
        generation = (found.get("metadata") or {}).get("generation") or 0
        status = found.get("status")
        for condition in (status.get("conditions") if isinstance(status, dict) else None) or ():
            if str(condition.get("type", "")).lower() == name.lower():
                seen = condition.get("observedGeneration", (status or {}).get("observedGeneration", generation))
                return bool(seen >= generation) and str(condition.get("status", "")).lower() == value.lower()
        return False

    return met


def _path(text: str) -> Condition:
    """The path may hold `=` as well, so the value begins after the brace that ends it, where there is one."""
    if text.startswith("{"):
        inside, brace, rest = text.rpartition("}")
        path, equals, value = f"{inside}{brace}", rest[:1], rest[1:]
        if rest and equals != "=":
            raise InvalidInput(f"--for=jsonpath={text}: expected {{PATH}} or {{PATH}}=VALUE")
    else:
        path, equals, value = text.partition("=")
    if equals and not value:
        raise InvalidInput(f"--for=jsonpath={text}: the value after = is missing")
    wanted = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    found_by = jsonpath.path(path)

    def met(found: Document | None) -> bool:
        values = [] if found is None else found_by.find(found)
        return bool(values) and (not equals or all(jsonpath.text_of(v) == wanted for v in values))

    return met


def _wait(
    session: Session,
    resource: Resource,
    namespace: str,
    name: str,
    condition: Condition,
    deadline: float,
    *,
    absent: bool,
) -> None:
    """`absent`: that there is no such object is part of the question, else an error."""
    for found in states(session, resource, namespace, name, deadline=deadline):
        if condition(found):
            return
        if found is None and not absent:
            raise NotFound(f'{resource.name} "{name}" not found', resource=resource.name, name=name)
    raise Unavailable(f"timed out waiting for the condition on {resource.plural}/{name}")


def _chosen(
    session: Session, scope: Scope, wanted: Sequence[Wanted], everything: bool, *, absent: bool
) -> list[tuple[Resource, str, str]]:
    scope.check(wanted)
    found = []
    for want in wanted:
        namespace = scope.namespace if want.resource.namespaced else ""
        found += [(want.resource, namespace, name) for name in want.names]
        if want.names:
            continue
        if not scope.query and not everything:
            raise InvalidInput("say which objects: by name, with -l LABELS, or --all of the type")
        for page in session.pages(want.resource.collection(scope.namespace), scope.query):
            for item in page.get("items") or ():
                metadata = item.get("metadata") or {}
                found.append((want.resource, str(metadata.get("namespace") or ""), str(metadata.get("name"))))
    if not found and not absent:
        raise NotFound("no matching resources found")
    return found


def _of_files(
    resources: Resources, files: Sequence[str], recursive: bool, namespace: str, default: str
) -> list[tuple[Resource, str, str]]:
    from devlet.cli import manifests

    return [(*m.place(resources, namespace, default), m.name) for m in manifests.read(files, recursive=recursive)]
