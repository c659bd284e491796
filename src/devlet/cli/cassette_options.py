"""Which node a command about cassettes looks at."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from devlet.cli.cassette_source import Origin
from devlet.cli.options import server_options
from devlet.cli.target import Target

__all__ = ["origin_options"]

Function = Callable[..., Any]


def origin_options(function: Function) -> Function:
    """The function gets `origin`; nobody is asked yet."""

    @click.option("--node", metavar="NAME", default="", help="The node, if there are several.")
    @click.option(
        "--cdi-root",
        "cdi_roots",
        metavar="DIR",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Where the CDI specs are, if they are not where a devlet has them; may be repeated.",
    )
    @server_options("Read from")
    @functools.wraps(function)
    def command(*args: Any, target: Target, node: str, cdi_roots: tuple[Path, ...], **rest: Any) -> Any:
        return function(*args, origin=Origin(target, node, cdi_roots), **rest)

    return command
