"""The source of the objects of an allocation: files, a server, or both. Objects in files replace those of the server.

A server is used if the command line names one, or if there are no files: `-f` alone connects to no server.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from devlet.cli import allocation_files
from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_server import Server
from devlet.cli.options import file_options, namespace_option, server_options
from devlet.cli.session import Session
from devlet.cli.target import Target, connect

__all__ = ["Source", "improved_option", "source_options"]

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Files and a server. `namespace` is where to look, and the namespace of objects in files that name none."""

    files: tuple[str, ...]
    recursive: bool
    session: Session | None
    namespace: str

    @property
    def is_devlet(self) -> bool:
        """Return whether a devlet on this machine allocates for these objects, and not a kube-scheduler."""
        return self.session is not None and self.session.is_node

    @property
    def server(self) -> Server | None:
        return Server(self.session) if self.session else None

    def objects(self, *, pods: bool) -> Objects:
        """Read the objects; with `pods`, also all pods and claim templates of the server."""
        objects = Objects()
        if self.files:
            objects = allocation_files.read(
                self.files, self.namespace, recursive=self.recursive, is_all=self.session is None
            )
        if self.server:
            self.server.fill(objects, pods=pods)
        return objects


def improved_option(function: Function) -> Function:
    return click.option(
        "--improved/--no-improved",
        default=None,
        help="Allocate as devlet's scheduler does, or as Kubernetes does. [default: --improved for a devlet]",
    )(function)


def source_options(function: Function) -> Function:
    """Pass the function a `source` to call for connecting, because a command may not need to."""

    @server_options("Read from")
    @namespace_option
    @file_options
    @functools.wraps(function)
    def command(
        *args: Any, target: Target, namespace: str, files: tuple[str, ...], recursive: bool, **rest: Any
    ) -> Any:
        ctx = click.get_current_context()

        def source() -> Source:
            if files and not (target.kubeconfig or target.context or target.root):
                return Source(files, recursive, None, namespace or "default")
            session = connect(target)
            ctx.call_on_close(session.close)
            return Source(files, recursive, session, namespace or session.namespace)

        return function(*args, source=source, **rest)

    return command
