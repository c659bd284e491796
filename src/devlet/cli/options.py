"""Flags that several commands share, and the few places where kubectl and click parse flags differently.

kubectl also accepts `-o=json` and `--wait=false`; click reads the first as `=json` and rejects the second.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from devlet.cli.main import KUBECTL_PLUGIN
from devlet.cli.target import Target, connect
from devlet.kit import durations

_SHORT = re.compile(r"-([A-Za-z])=(.*)", re.DOTALL)
_TRUE, _FALSE = ("true", "1", "t"), ("false", "0", "f")

Function = Callable[..., Any]


class KubectlCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(self._rewritten(args)))

    def _rewritten(self, args: Sequence[str]) -> Iterator[str]:
        flags = {name: p for p in self.params if isinstance(p, click.Option) and p.is_flag for name in p.opts}
        for index, argument in enumerate(args):
            if argument == "--":
                yield from args[index:]
                return
            name, equals, value = argument.partition("=")
            if equals and name in flags and value.lower() in (*_TRUE, *_FALSE):
                yield from _switched(flags[name], name, value.lower() in _TRUE)
            elif match := _SHORT.fullmatch(argument):
                yield f"-{match[1]}"
                yield match[2]
            else:
                yield argument


def _switched(option: click.Option, name: str, on: bool) -> list[str]:
    if on:
        return [name]
    return option.secondary_opts[:1]


def duration(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Convert the value of a flag to seconds: `30s`, `1m30s` or a bare number."""
    try:
        return durations.parse(value)
    except ValueError as e:
        raise click.BadParameter(str(e), ctx, param) from e


def server_options(doing: str) -> Callable[[Function], Function]:
    """Pass the function a `target`, without connecting to it. `doing` begins the help texts, as in "Read from"."""

    def decorated(function: Function) -> Function:
        @click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help=f"{doing} the cluster of this kubeconfig.",
        )
        @click.option(
            "--context", metavar="NAME", default="", help="Use this context of --kubeconfig, or else of KUBECONFIG."
        )
        @click.option(
            "--root", metavar="DIR", type=click.Path(path_type=Path), help=f"{doing} the devlet that runs on DIR."
        )
        @click.pass_context
        @functools.wraps(function)
        def command(
            ctx: click.Context, /, *args: Any, kubeconfig: Path | None, context: str, root: Path | None, **rest: Any
        ) -> Any:
            of_kubectl = ctx.find_root().info_name == KUBECTL_PLUGIN
            return function(*args, target=Target(kubeconfig, context, root, of_kubectl), **rest)

        return command

    return decorated


def target_options(function: Function) -> Function:
    """Pass the function a `session`, and the `namespace` of the command line, which is empty if none was given."""

    @server_options("Use")
    @namespace_option
    @functools.wraps(function)
    def command(*args: Any, target: Target, **rest: Any) -> Any:
        session = connect(target)
        click.get_current_context().call_on_close(session.close)
        return function(*args, session=session, **rest)

    return command


def namespace_option(function: Function) -> Function:
    return click.option("-n", "--namespace", metavar="NAME", default="", help="Namespace to use.")(function)


def selector_options(function: Function) -> Function:
    selector = click.option(
        "-l", "--selector", metavar="LABELS", default="", help="Select objects by label, as in a=b,c!=d."
    )
    field = click.option(
        "--field-selector", metavar="FIELDS", default="", help="Select objects by field, as in spec.nodeName=n1."
    )
    return selector(field(function))


def all_namespaces_option(function: Function) -> Function:
    return click.option("-A", "--all-namespaces", is_flag=True, help="Use all namespaces.")(function)


def file_options(function: Function) -> Function:
    files = click.option(
        "-f",
        "--filename",
        "files",
        metavar="FILE",
        multiple=True,
        help="Read objects from a file, a directory or - (standard input); may be repeated.",
    )
    recursive = click.option(
        "-R", "--recursive", is_flag=True, help="Process the directories given with -f recursively."
    )
    return files(recursive(function))


def arguments(function: Function) -> Function:
    return click.argument("arguments", metavar="[TYPE[/NAME] [NAME]...]", nargs=-1)(function)


def output_option(formats: str) -> Callable[[Function], Function]:
    return click.option("-o", "--output", metavar="FORMAT", default="", help=f"Output format: {formats}.")


def no_headers_option(function: Function) -> Function:
    return click.option("--no-headers", is_flag=True, help="Don't print column headers.")(function)
