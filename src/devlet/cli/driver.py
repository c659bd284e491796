"""`devlet driver`: for people who write drivers."""

from pathlib import Path

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
    """Write drivers."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command(epilog=_EXAMPLES)
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in Kind]),
    default=Kind.DRA.value,
    show_default=True,
    help="What claims ask for (dra), or what containers ask for as a resource.",
)
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where the project goes; must not be there yet. [default: NAME up to its first dot]",
)
def new(name: str, kind: str, directory: Path | None) -> None:
    """Make a project for a driver in Python: code, tests, and manifests for a cluster.

    NAME is such as led, or led.vendor.com if you have a domain. It works as it is; its tests pass, with two devices
    that do not exist."""
    project = names_of(name, Kind(kind))
    place = (directory or Path(project.label)).expanduser()
    files = create(place, Kind(kind), project)
    what = f"DRA driver {project.driver}" if kind == Kind.DRA else f"device plugin of {project.resource}"
    click.echo(f"{place} has a project for the {what}:")
    for path in files:
        click.echo(f"  {path}")
    click.echo(f"Next: cd {place} && pip install -e '.[test]' && pytest")
