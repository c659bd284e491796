from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from devlet.cli.allocation_source import Source, source_options
from devlet.cli.options import KubectlCommand

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


def inside(use: Callable[[Source], None], *arguments: str) -> None:
    """Run a command that uses its source; it is closed afterwards."""
    used = False

    @click.command(cls=KubectlCommand)
    @source_options
    def command(source: Callable[[], Source]) -> None:
        nonlocal used
        use(source())
        used = True

    CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert used


def test_files_alone_connect_to_no_server(cluster: Path) -> None:
    def use(source: Source) -> None:
        assert source.session is None and source.namespace == "default" and not source.is_devlet
        assert len(source.objects(pods=True).pods) == 1

    inside(use, "-f", str(cluster))


def test_without_files_a_devlet_is_asked(api: "API", monkeypatch: pytest.MonkeyPatch) -> None:
    def use(source: Source) -> None:
        assert source.is_devlet and source.namespace == "team"
        assert [node.name for node in source.objects(pods=True).node_list()] == ["n7"]

    api.put("/api/v1/nodes/n7", {})
    monkeypatch.setenv("DEVLET_ROOT", str(api.root))
    inside(use, "-n", "team")


def test_files_come_on_top_of_what_a_server_has(api: "API", cluster: Path) -> None:
    def use(source: Source) -> None:
        assert [node.name for node in source.objects(pods=False).node_list()] == ["n1", "n2", "n7"]

    api.put("/api/v1/nodes/n7", {})
    inside(use, "-f", str(cluster), "--root", str(api.root))


def test_a_file_may_have_nodes_alone_where_the_rest_is_on_a_server(api: "API", tmp_path: Path) -> None:
    def use(source: Source) -> None:
        assert len(source.objects(pods=False).nodes) == 1

    file = tmp_path / "node.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}")
    inside(use, "-f", str(file), "--root", str(api.root))
