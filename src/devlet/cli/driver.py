"""`devlet driver`: create projects for new drivers."""

import json
import os
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

from devlet.cli.driver_project import Kind, create, names_of

_EXAMPLES = """\b
Examples:
  devlet driver new led
  devlet driver new led.vendor.com --kind device-plugin --directory ~/src/led
"""


@click.group(invoke_without_command=True, epilog=_EXAMPLES)
@click.pass_context
def command(context: click.Context) -> None:
    """Create projects for new drivers."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command(epilog=_EXAMPLES)
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in Kind]),
    default=Kind.DRA.value,
    show_default=True,
    help="Create a DRA driver, whose devices are requested by claims, or a device plugin.",
)
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Create the project in DIR, which must not exist. [default: NAME up to its first dot]",
)
def new(name: str, kind: str, directory: Path | None) -> None:
    """Create a driver project in Python, with code, tests and manifests for a cluster.

    NAME is a name such as led, or led.vendor.com if you have a domain. The project works as it is: it serves two
    simulated devices, and its tests pass."""
    project = names_of(name, Kind(kind))
    place = (directory or Path(project.label)).expanduser()
    files = create(place, Kind(kind), project)
    what = f"DRA driver {project.driver}" if kind == Kind.DRA else f"device plugin for {project.resource}"
    click.echo(f"Created a project for the {what} in {place}:")
    for path in files:
        click.echo(f"  {path}")
    click.echo("\nInstall it and run its tests:")
    for line in _next_commands(place):
        click.echo(f"  {line}")


def _next_commands(place: Path) -> list[str]:
    return [
        f"cd {shlex.quote(str(place))}",
        f"{shlex.quote(_python())} -m venv .venv",
        ". .venv/bin/activate",
        " ".join(["pip install", *map(shlex.quote, _source()), "-e '.[test]'"]),
        "pytest",
    ]


def _python() -> str:
    """Return python3 if that is the Python of this program, which is new enough, and else its path."""
    found = shutil.which("python3")
    return "python3" if found and os.path.realpath(found) == os.path.realpath(sys.executable) else sys.executable


def _source() -> list[str]:
    """Return what pip has to install for the same devlet, if pip would not find it in a package index."""
    try:
        recorded = distribution("devlet").read_text("direct_url.json")
    except PackageNotFoundError:
        return []
    if not recorded:
        return []
    origin = json.loads(recorded)
    if vcs := origin.get("vcs_info"):
        return [f"devlet @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"]
    parts = urlsplit(origin["url"])
    if parts.scheme != "file":
        return [f"devlet @ {origin['url']}"]
    path = unquote(parts.path)
    return [path] if os.path.exists(path) else []
