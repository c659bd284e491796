"""A parser for `devlet get` with its most common flags, without click.

Importing click takes longer than the rest of such a command. Whatever this parser does not recognise, errors included,
is left to click, which must interpret everything recognised here in the same way.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from devlet.cli.getting import Request, get
from devlet.cli.main import KUBECTL_PLUGIN
from devlet.cli.target import Target, connect

_VALUES = {
    "-n": "namespace",
    "--namespace": "namespace",
    "-o": "output",
    "--output": "output",
    "-l": "selector",
    "--selector": "selector",
    "--field-selector": "field_selector",
    "--kubeconfig": "kubeconfig",
    "--context": "context",
    "--root": "root",
}
_SWITCHES = {
    "-A": "all_namespaces",
    "--all-namespaces": "all_namespaces",
    "--no-headers": "no_headers",
    "--show-labels": "show_labels",
}
# These may stand before the verb as well.
_SHARED = ("namespace", "kubeconfig", "context", "root")


class Command(NamedTuple):
    target: Target
    namespace: str
    request: Request

    def run(self) -> None:
        session = connect(self.target)
        try:
            get(session, self.namespace, self.request)
        finally:
            session.close()


def parse(arguments: Sequence[str], program: str) -> Command | None:
    """Return the command, or None if click must parse it."""
    values: dict[str, str] = {}
    switches: set[str] = set()
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            words.append(argument)
        elif argument in _SWITCHES and words:
            switches.add(_SWITCHES[argument])
        else:
            flag, value = _split(argument)
            name = _VALUES.get(flag)
            value = next(rest, "") if value is None else value
            if name is None or name in values or not value or value.startswith("-"):
                return None
            if not words and name not in _SHARED:
                return None
            values[name] = value
    if words[:1] != ["get"] or not all(words):
        return None
    return _command(words[1:], values, switches, program)


def _command(words: Sequence[str], values: dict[str, str], switches: set[str], program: str) -> Command:
    kubeconfig, root = (Path(values[name]) if name in values else None for name in ("kubeconfig", "root"))
    target = Target(kubeconfig, values.get("context", ""), root, program == KUBECTL_PLUGIN)
    request = Request(
        arguments=tuple(words),
        output=values.get("output", ""),
        selector=values.get("selector", ""),
        field_selector=values.get("field_selector", ""),
        all_namespaces="all_namespaces" in switches,
        no_headers="no_headers" in switches,
        show_labels="show_labels" in switches,
    )
    return Command(target, values.get("namespace", ""), request)


def _split(argument: str) -> tuple[str, str | None]:
    """Split an argument into flag and value, as in `--output=json`, `-o=json` and `-ojson`; None if it has no value."""
    if argument.startswith("--"):
        flag, equals, value = argument.partition("=")
        return flag, value if equals else None
    return argument[:2], argument[2:].removeprefix("=") if len(argument) > 2 else None
