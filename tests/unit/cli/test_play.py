from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cassettes import cassette_file, library
from devlet.cassettes.cassette import Cassette, Driver, Pool
from devlet.cli import main
from devlet.cli.play import _node
from devlet.cluster.client import Cluster
from devlet.cluster.store.store import open_store
from devlet.errors import InvalidInput, NotFound
from devlet.objects.kinds import NODES

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

KUBECONFIG = """
{clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: t}}],
 contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}
"""

anyio_test = pytest.mark.anyio


def test_what_is_shipped_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["play", "--list"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["NAME", *library.names()]
    assert rows[2].split()[:3] == ["led", "2", "4"]


def test_a_cassette_is_printed_to_be_changed_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["play", "led", "--show"]) == 0
    assert cassette_file.decode(capsys.readouterr().out.encode()) == library.shipped("led")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no cassette given: name a file, or one of a100-mig, led, sriov-nic, usb"),
        (["nowhere"], "nowhere: no such file; devlet ships the cassettes a100-mig"),
        (["led", "--root", "/nope"], "no devlet runs on /nope: start one with `devlet up`, or name the cluster of"),
        (["led", "--root", "/", "--kubeconfig", "/nope"], "/nope does not exist: name the cluster of the node"),
    ],
)
def test_what_is_missing_is_an_error(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["play", *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"error: {told}")


def test_a_cassette_with_a_path_for_a_name_is_not_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    text = cassette_file.encode(library.shipped("led")).decode()
    file.write_text(text.replace("name: led.example.com", "name: ../../../etc/cron.d/x"))
    assert main.run(["play", str(file), "--root", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {file}: drivers[0].name: '../../../etc/cron.d/x': ")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.yaml"]


def test_an_empty_cassette_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty.yaml"
    file.write_bytes(cassette_file.encode(Cassette("n1")))
    assert main.run(["play", str(file), "--root", str(tmp_path)]) == 1
    text = f"error: {file}: the cassette is empty: it has no driver, device plugin or CDI spec to play\n"
    assert capsys.readouterr().err == text


def test_an_incompletely_captured_pool_causes_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "half.yaml"
    driver = Driver("d.example.com", pools=(Pool("p", incomplete=True),))
    file.write_bytes(cassette_file.encode(Cassette("n1", drivers=(driver,))))
    main.run(["play", str(file), "--root", str(tmp_path)])
    said = capsys.readouterr().err
    assert said.startswith("warning: pool p of driver d.example.com was incomplete when it was captured: devices may")


def test_another_node_than_that_of_the_devlet_is_refused(api: "API", run: "Run") -> None:
    api.texts["/metrics"] = 'kubelet_node_name{node="n2"} 1\n'
    (api.root / "kubeconfig").write_text(KUBECONFIG)
    assert run("play", "led", "--node", "n1") == 1
    assert run.err == f"error: {api.root}/devlet.sock belongs to node n2, not n1: run `devlet play` on its machine\n"


@pytest.fixture
async def cluster(root: Path) -> AsyncIterator[Cluster]:
    async with open_store(root / "cluster.db") as store:
        yield store


@anyio_test
async def test_the_node_is_the_only_one_or_the_one_that_is_named(cluster: Cluster) -> None:
    with pytest.raises(InvalidInput, match="the cluster has no nodes"):
        await _node(cluster, "")
    for name in ("n1", "n2"):
        await cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        assert await _node(cluster, name) == name
        if name == "n1":
            assert await _node(cluster, "") == "n1"
    with pytest.raises(InvalidInput, match="the cluster has 2 nodes: choose one with --node: n1, n2"):
        await _node(cluster, "")
    with pytest.raises(NotFound):
        await _node(cluster, "n3")
