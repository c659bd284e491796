"""Where the objects of an allocation come from: files, a server, or both, where files go before what the server has.

A server counts if the command line names one or if there are no files: `-f` alone asks nobody.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from devlet.cli import allocation_files
from devlet.cli.allocation_input import Objects
from devlet.cli.allocation_server import Server
from devlet.cli.options import file_options, server_options
from devlet.cli.session import Session
from devlet.cli.target import Target, connect

__all__ = ["Source", "source_options"]

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Source:
    """`namespace` is where to look, and that of objects in files which name none."""

    files: tuple[str, ...]
    recursive: bool
    session: Session | None
    namespace: str

    @property
    def is_devlet(self) -> bool:
        """A devlet on this machine decides about these objects, not a kube-scheduler."""
        return self.session is not None and self.session.is_node

    @property
    def server(self) -> Server | None:
        return Server(self.session) if self.session else None

    def objects(self, *, pods: bool) -> Objects:
        """`pods`: also all pods and claim templates of the server."""
        objects = Objects()
        if self.files:
            objects = allocation_files.read(
                self.files, self.namespace, recursive=self.recursive, is_all=self.session is None
            )
        if self.server:
            self.server.fill(objects, pods=pods)
        return objects


def source_options(function: Function) -> Function:
    """The function gets `source`, which is called to connect: a command may need none."""

    @server_options("Read from")
    @click.option("-n", "--namespace", metavar="NAME", default="", help="In this namespace.")
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
