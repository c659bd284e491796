import tomllib
from pathlib import Path

from devlet.objects import release
from devlet.objects.values.semver import is_semver


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["version"] == release.DEVLET


def test_clients_can_read_the_version_of_kubernetes() -> None:
    assert is_semver(release.KUBERNETES.removeprefix("v"))
