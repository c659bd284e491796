"""`devlet capture`."""

import os
from pathlib import Path

import click

from devlet.cassettes import cassette_file
from devlet.cassettes.cassette import Cassette
from devlet.cassettes.recording import recorded, renamed
from devlet.cli.cassette_options import origin_options
from devlet.cli.cassette_source import Origin, find
from devlet.cli.options import KubectlCommand, output_option
from devlet.errors import InvalidInput
from devlet.kit import atomic_file

FORMATS = "json or yaml"

_EXAMPLES = """\b
Examples:
  devlet capture node1.yaml
  devlet capture --root /tmp/node1 --rename laptop
  devlet capture gpu7.yaml --kubeconfig ~/.kube/config --node gpu7
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@click.argument("file", metavar="[FILE]", default="-")
@click.option("--name", metavar="NAME", default="", help="The name of the cassette. [default: that of the file]")
@click.option("--rename", metavar="NAME", default="", help="Call the node NAME, whatever its name is.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@output_option(f"{FORMATS}. [default: what FILE ends with, else yaml]")
@origin_options
def command(file: str, name: str, rename: str, force: bool, output: str, origin: Origin) -> None:
    """Write what the drivers of a node publish to one file, a cassette.

    Slices, device lists, options, what plugins granted, CDI specs; of a node of another cluster its slices and the
    numbers of its devices. Nothing is changed, and no credentials or UIDs of claims get into the file. Without FILE, or
    with -, it goes to standard output. `devlet play` serves it elsewhere, `devlet drift` compares."""
    if output not in ("", "json", "yaml"):
        raise InvalidInput(f'output format "{output}": expected {FORMATS}')
    path = None if file == "-" else Path(file)
    if path is not None:
        _check(path, force)
    cassette = _captured(origin, name or (path.stem if path else ""))
    content = cassette_file.encode(renamed(cassette, rename) if rename else cassette, as_json=_is_json(output, path))
    if path is None:
        click.echo(content, nl=False)
    else:
        _write(path, content)


def _check(path: Path, force: bool) -> None:
    """What is there is replaced only if that is wanted, and never a device, a pipe or a directory."""
    if not os.path.lexists(path):
        return
    if not force:
        raise InvalidInput(f"{path} exists: use another name, or --force")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a file that could be replaced: use another name")


def _captured(origin: Origin, name: str) -> Cassette:
    cassette = recorded(find(origin), name)
    if cassette.drivers or cassette.plugins or cassette.cdi:
        return cassette
    hint = "`devlet get drivers` and `devlet get plugins` show when there is one"
    raise InvalidInput(f"node {cassette.node} has no driver, no device plugin and no CDI spec to capture: {hint}")


def _is_json(output: str, path: Path | None) -> bool:
    return output == "json" or (not output and path is not None and path.suffix == ".json")


def _write(path: Path, content: bytes) -> None:
    try:
        atomic_file.write(path.resolve(), content, 0o644)
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror or e}") from e
