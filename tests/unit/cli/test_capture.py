import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devlet.cassettes import cassette_file

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run


@pytest.fixture(autouse=True)
def node(api: "API") -> None:
    api.put("/api/v1/nodes/n1", {})
    spec = {"driver": "d.e", "nodeName": "n1", "pool": {"name": "n1"}, "devices": [{"name": "a"}]}
    api.put("/apis/resource.k8s.io/v1/resourceslices/s", {"spec": spec})


def test_it_goes_to_standard_output_or_to_a_file(run: "Run", tmp_path: Path) -> None:
    assert run("capture") == 0
    printed = cassette_file.decode(run.out.encode())
    assert printed.node == "n1" and printed.drivers[0].pools[0].devices == ({"name": "a"},)
    file = tmp_path / "lab.yaml"
    assert run("capture", str(file)) == 0 and run.out == ""
    kept = cassette_file.read(file)
    assert kept.drivers == printed.drivers and kept.metadata.name == "lab"
    assert file.stat().st_mode & 0o777 == 0o644


def test_the_format_is_asked_for_or_what_the_file_ends_with(run: "Run", tmp_path: Path) -> None:
    assert run("capture", "-o=json") == 0 and json.loads(run.out)["kind"] == "Cassette"
    assert run("capture", str(tmp_path / "a.json")) == 0 and json.loads((tmp_path / "a.json").read_text())
    assert run("capture", str(tmp_path / "b.json"), "-o", "yaml") == 0
    assert (tmp_path / "b.json").read_text().startswith("apiVersion:")
    assert run("capture", "-o", "xml") == 1
    assert run.err == 'error: unknown output format "xml": expected json or yaml\n'


def test_a_node_may_have_another_name_there(run: "Run") -> None:
    assert run("capture", "--rename", "laptop", "--name", "mine") == 0
    found = cassette_file.decode(run.out.encode())
    assert (found.node, found.metadata.name) == ("laptop", "mine")
    assert "n1" not in run.out
    assert run("capture", "--rename", "../laptop") == 1
    assert run.err.startswith("error: node: ")


def test_a_file_is_replaced_only_if_that_is_wanted(run: "Run", tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text("mine")
    assert run("capture", str(file)) == 1
    assert run.err == f"error: {file} already exists: choose another name, or overwrite it with --force\n"
    assert file.read_text() == "mine"
    assert run("capture", str(file), "--force") == 0 and file.read_text() != "mine"
    assert run("capture", str(tmp_path / "no" / "such")) == 1 and "No such file or directory" in run.err


def test_the_node_is_only_read(run: "Run", api: "API") -> None:
    assert run("capture") == 0
    assert {method for method, _, _ in api.requests} == {"GET"}


def test_only_regular_files_are_replaced(run: "Run", tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, tmp_path):
        before = path.lstat().st_mode
        assert run("capture", str(path), "--force") == 1
        assert run.err == f"error: {path} is not a regular file and cannot be replaced: choose another name\n"
        assert path.lstat().st_mode == before


def test_a_link_stays_a_link(run: "Run", tmp_path: Path) -> None:
    link, file = tmp_path / "link.yaml", tmp_path / "file.yaml"
    link.symlink_to(file)
    assert run("capture", str(link)) == 1
    assert run.err == f"error: {link} already exists: choose another name, or overwrite it with --force\n"
    assert run("capture", str(link), "--force") == 0
    assert link.is_symlink() and cassette_file.read(file).node == "n1"


def test_an_unwritable_place_is_an_error(run: "Run", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "no" / "such.yaml"
    assert run("capture", str(missing)) == 1
    assert run.err == f"error: {missing}: No such file or directory\n"
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run("capture") == 1
    assert run.err == "error: standard output: No space left on device\n"


def test_a_node_without_drivers_is_an_error(run: "Run", api: "API", tmp_path: Path) -> None:
    api.remove("/apis/resource.k8s.io/v1/resourceslices/s")
    assert run("capture", str(tmp_path / "empty.yaml")) == 1
    assert run.err == (
        "error: node n1 has no driver, device plugin or CDI spec to capture:"
        " `devlet get drivers,plugins` lists them once they are registered\n"
    )
    assert not list(tmp_path.iterdir())
