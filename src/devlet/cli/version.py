"""`devlet version`."""

import json
import platform

import click

from devlet.objects.release import DEVLET, KUBERNETES


@click.command(epilog="\b\nExample:\n  devlet version -o json")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format. [default: plain text]")
def command(output: str | None) -> None:
    """Print the versions of devlet, of the Kubernetes whose behavior it follows, and of Python."""
    versions = {
        "devletVersion": DEVLET,
        "kubernetesVersion": KUBERNETES,
        "pythonVersion": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    match output:
        case "json":
            click.echo(json.dumps(versions, indent=2))
        case "yaml":
            click.echo("\n".join(f"{key}: {json.dumps(value)}" for key, value in versions.items()))
        case _:
            click.echo(f"devlet {DEVLET}, following Kubernetes {KUBERNETES}")
            click.echo(f"Python {versions['pythonVersion']} on {versions['platform']}")
