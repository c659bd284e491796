"""Which node a command about cassettes looks at."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from devlet.cli.cassette_source import Origin
from devlet.cli.main import KUBECTL_PLUGIN
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
    @click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Read from the cluster of this kubeconfig.",
    )
    @click.option(
        "--context", metavar="NAME", default="", help="Which context of the kubeconfig (KUBECONFIG counts then)."
    )
    @click.option(
        "--root", metavar="DIR", type=click.Path(path_type=Path), help="Read from the devlet that runs on DIR."
    )
    @click.pass_context
    @functools.wraps(function)
    def command(
        ctx: click.Context,
        /,
        *args: Any,
        node: str,
        cdi_roots: tuple[Path, ...],
        kubeconfig: Path | None,
        context: str,
        root: Path | None,
        **rest: Any,
    ) -> Any:
        of_kubectl = ctx.find_root().info_name == KUBECTL_PLUGIN
        origin = Origin(Target(kubeconfig, context, root, of_kubectl), node, cdi_roots)
        return function(*args, origin=origin, **rest)

    return command
