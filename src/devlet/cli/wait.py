"""`devlet wait`."""

from collections.abc import Callable

import click

from devlet.cli import node_views, selection
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
from devlet.cli.session import Document, Session
from devlet.cli.watching import deadline_in, states
from devlet.errors import DevletError, InvalidInput, NotFound, Unavailable
from devlet.objects import json_path

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
@click.option("--for", "what", metavar="CONDITION", required=True, help=f"Condition to wait for: {_FOR}.")
@click.option(
    "--timeout",
    metavar="TIME",
    callback=duration,
    default="30s",
    show_default=True,
    help="Time to wait before giving up; 0 checks once.",
)
@selector_options
@all_namespaces_option
@file_options
@click.option("--all", "everything", is_flag=True, help="Wait for all objects of the type in the namespace.")
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
    """Wait until all given objects meet a condition.

    The exit code is 1 if one of them does not meet it in time."""
    condition = parse(what)
    selection.one_source(arguments, files)
    resources = Resources(session)
    deadline = deadline_in(timeout)
    if files:
        objects = selection.of_files(resources, session, files, recursive=recursive, namespace=namespace)
    else:
        scope = Scope(selection.place(session, namespace, everywhere=all_namespaces), selector, field_selector)
        wanted = node_views.resolved(session, selection.parse(resources, arguments))
        objects = selection.explicit(session, scope, wanted, everything=everything)
    absent = what.lower() in ("delete", "create")
    if not objects and not absent:
        raise NotFound("no matching resources found")
    errors: list[DevletError] = []
    for named in objects:
        try:
            _wait(session, named, condition, deadline, absent=absent)
            click.echo(f"{named.text} condition met")
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
    raise InvalidInput(f"--for={text}: expected {_FOR}")


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
    """Parse PATH=VALUE. A path in braces may contain `=`: its value begins after the closing brace."""
    if text.startswith("{"):
        inside, brace, rest = text.rpartition("}")
        path, equals, value = f"{inside}{brace}", rest[:1], rest[1:]
        if rest and equals != "=":
            raise InvalidInput(f"--for=jsonpath={text}: expected {{PATH}} or {{PATH}}=VALUE")
    else:
        path, equals, value = text.partition("=")
    if equals and not value:
        raise InvalidInput(f"--for=jsonpath={text}: there is no value after =")
    wanted = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    found_by = json_path.relaxed_path(path)

    def met(found: Document | None) -> bool:
        values = [] if found is None else found_by.find(found)
        return bool(values) and (not equals or all(json_path.text_of(v) == wanted for v in values))

    return met


def _wait(session: Session, named: Named, condition: Condition, deadline: float, *, absent: bool) -> None:
    """Wait for one object. A missing object is an error, unless with `absent` the condition is about its existence."""
    resource, name = named.resource, named.name
    for found in states(session, resource, named.namespace, name, deadline=deadline):
        if condition(found):
            return
        if found is None and not absent:
            raise NotFound(f'{resource.name} "{name}" not found', resource=resource.name, name=name)
    raise Unavailable(f"timed out waiting for the condition on {resource.plural}/{name}")
