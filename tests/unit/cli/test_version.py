import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from devlet.cli import main
from devlet.objects import release

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_the_version_is_that_of_the_package() -> None:
    assert tomllib.loads(PROJECT.read_text())["project"]["version"] == release.DEVLET


@pytest.mark.parametrize(("format", "parse"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_the_formats_say_the_same(
    format: str, parse: Callable[[str], dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["version", "-o", format]) == 0
    versions = parse(capsys.readouterr().out)
    assert set(versions) == {"devletVersion", "kubernetesVersion", "pythonVersion", "platform"}
    assert versions["kubernetesVersion"] == "v1.36.4"


def test_plain_text_names_devlet_and_kubernetes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"devlet {release.DEVLET}, following Kubernetes v1.36.4\n")


def test_the_flag_prints_the_version_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"devlet {release.DEVLET}\n"
