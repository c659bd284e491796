"""`devlet capture`."""

import os
from pathlib import Path

import click

from devlet.cassettes import cassette_file
from devlet.cassettes.cassette import Cassette
from devlet.cassettes.recording import recorded, renamed
from devlet.cli.cassette_source import Origin, find, origin_options
from devlet.cli.options import KubectlCommand, output_option
from devlet.cli.output import check_format
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
@click.option("--name", metavar="NAME", default="", help="Set the name of the cassette. [default: the file's name]")
@click.option("--rename", metavar="NAME", default="", help="Replace the node's name with NAME.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@output_option(f"{FORMATS}; by default from the suffix of FILE, or else yaml")
@origin_options
def command(file: str, name: str, rename: str, force: bool, output: str, origin: Origin) -> None:
    """Record what the drivers of a node publish in one file, a cassette.

    A cassette holds the node's slices, device lists, plugin options, granted devices and CDI specs. From a node of
    another cluster it holds the slices and the number of devices of each plugin. Nothing on the node is changed, and
    credentials and claim UIDs are never recorded. Without FILE, or with -, the cassette is written to standard output.
    Use `devlet play` to serve it on another node, and `devlet drift` to compare it."""
    check_format(output, "json", "yaml")
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
    """Refuse to replace an existing file without --force, and a device, pipe or directory in any case."""
    if not os.path.lexists(path):
        return
    if not force:
        raise InvalidInput(f"{path} already exists: choose another name, or overwrite it with --force")
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is not a regular file and cannot be replaced: choose another name")


def _captured(origin: Origin, name: str) -> Cassette:
    cassette = recorded(find(origin), name)
    if cassette.drivers or cassette.plugins or cassette.cdi:
        return cassette
    hint = "`devlet get drivers,plugins` lists them once they are registered"
    raise InvalidInput(f"node {cassette.node} has no driver, device plugin or CDI spec to capture: {hint}")


def _is_json(output: str, path: Path | None) -> bool:
    return output == "json" or (not output and path is not None and path.suffix == ".json")


def _write(path: Path, content: bytes) -> None:
    try:
        atomic_file.write(path.resolve(), content, 0o644)
    except OSError as e:
        raise InvalidInput(f"{path}: {e.strerror or e}") from e
