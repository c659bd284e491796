from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from devlet.cli.options import KubectlCommand, duration, server_options
from devlet.cli.target import Target


@click.command(cls=KubectlCommand)
@click.argument("words", nargs=-1)
@click.option("-o", "--output", default="")
@click.option("-A", "--all", "all_", is_flag=True)
@click.option("--wait/--no-wait", default=True)
@click.option("--timeout", callback=duration, default="1m")
def command(words: tuple[str, ...], output: str, all_: bool, wait: bool, timeout: float) -> None:
    click.echo(f"{','.join(words)} {output} {all_} {wait} {timeout}")


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["-o", "json", "x"], "x json False True 60.0"),
        (["-ojson", "-A"], " json True True 60.0"),
        (["-o=json", "--all=true"], " json True True 60.0"),
        (["-o="], "  False True 60.0"),
        (["--output=a=b"], " a=b False True 60.0"),
        (["--wait=false", "x", "--all=False"], "x  False False 60.0"),
        (["--wait=true", "--timeout=1.5s"], "  False True 1.5"),
        (["--", "-o=json", "--wait=false"], "-o=json,--wait=false  False True 60.0"),
    ],
)
def test_flags_are_read_as_kubectl_reads_them(arguments: list[str], printed: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert (result.output, result.exit_code) == (f"{printed}\n", 0)


@pytest.mark.parametrize("arguments", [["--wait=maybe"], ["--timeout=soon"], ["--timeout=-1s"]])
def test_what_cannot_be_read_is_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2


def test_a_server_is_named_and_not_asked_yet() -> None:
    @click.command()
    @server_options("Read from")
    def look(target: Target) -> None:
        click.echo(repr(target))

    arguments = ["--kubeconfig", "/k", "--context", "c", "--root", "/r"]
    for name, of_kubectl in (("devlet", False), ("kubectl devlet", True)):
        result = CliRunner().invoke(look, arguments, prog_name=name)
        assert result.output == f"{Target(Path('/k'), 'c', Path('/r'), of_kubectl)!r}\n"
    assert "Read from the devlet that runs on DIR." in CliRunner().invoke(look, ["--help"]).output
