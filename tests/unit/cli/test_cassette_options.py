from pathlib import Path
from typing import Any

import click

from devlet.cli.cassette_options import origin_options
from devlet.cli.cassette_source import Origin
from devlet.cli.target import Target


def parsed(*arguments: str, name: str = "devlet") -> Origin:
    found: list[Any] = []

    @click.command()
    @origin_options
    def command(origin: Origin) -> None:
        found.append(origin)

    command.main(list(arguments), prog_name=name, standalone_mode=False)
    (origin,) = found
    assert isinstance(origin, Origin)
    return origin


def test_nothing_is_asked_and_everything_is_passed_on() -> None:
    given = parsed("--node", "n1", "--root", "/r", "--cdi-root", "/a", "--cdi-root", "/b")
    assert given == Origin(Target(root=Path("/r")), "n1", (Path("/a"), Path("/b")))
    given = parsed("--kubeconfig", "/k", "--context", "c", name="kubectl devlet")
    assert given.target == Target(Path("/k"), "c", None, of_kubectl=True)
