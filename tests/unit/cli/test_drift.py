import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from devlet.cassettes import library
from devlet.cassettes.cassette_file import encode
from devlet.cli import main

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run


def test_the_exit_code_says_whether_they_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["drift", "led", "led"]) == 0
    assert capsys.readouterr().out == "no differences\n"
    assert main.run(["drift", "led", "usb"]) == 1
    assert (
        capsys.readouterr().out.splitlines()[1].split()
        == "removed driver led.example.com <none> 2 devices <none>".split()
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["led", "nowhere"], "error: nowhere: no such file"),
        (["led"], "error: Missing argument 'B|live'"),
        (["led", "led", "--colour"], "error: No such option '--colour'"),
        (["led", "led", "-o", "xml"], 'error: unknown output format "xml"'),
        (["led", "live", "--root", "/nope"], "error: no devlet runs on /nope"),
    ],
)
def test_an_error_is_not_taken_for_a_difference(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["drift", *arguments]) == 2
    assert capsys.readouterr().err.startswith(told)


def test_programs_get_the_same_as_json_and_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["drift", "led", "usb", "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["same"] is False
    assert found["differences"][1] == {"change": "added", "object": "driver usb.example.com", "after": "5 devices"}
    assert main.run(["drift", "led", "usb", "-o=yaml"]) == 1
    assert yaml.safe_load(capsys.readouterr().out) == found
    assert main.run(["drift", "led", "led", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"same": True, "differences": []}


def test_a_node_is_compared_as_it_is_now(api: "API", run: "Run") -> None:
    api.put("/api/v1/nodes/n1", {})
    devices = [
        {"name": "red", "attributes": {"color": {"string": "blue"}, "index": {"int": 0}}},
        {"name": "green", "attributes": {"color": {"string": "green"}, "index": {"int": 1}}},
    ]
    spec = {"driver": "led.example.com", "nodeName": "n1", "pool": {"name": "n1"}, "devices": devices}
    api.put("/apis/resource.k8s.io/v1/resourceslices/s", {"spec": spec})
    assert run("drift", "led", "live") == 1
    assert [line.split() for line in run.out.splitlines()[1:]] == [
        ["changed", "device", "led.example.com/{node}/green", "capacity[brightness]", "450", "<none>"],
        ["changed", "device", "led.example.com/{node}/red", "attributes[color]", "red", "blue"],
        ["changed", "device", "led.example.com/{node}/red", "capacity[brightness]", "800", "<none>"],
        ["removed", "plugin", "example.com/buzzer", "<none>", "2", "devices", "<none>"],
        ["1", "removed,", "3", "changed"],
    ]


def test_what_cannot_be_compared_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod, cut = tmp_path / "pod.yaml", tmp_path / "cut.yaml"
    pod.write_text("{apiVersion: v1, kind: Pod}")
    cut.write_bytes(encode(library.shipped("led"))[:200])
    for arguments in ([str(pod), "led"], ["led", str(pod)]):
        assert main.run(["drift", *arguments]) == 2
        assert capsys.readouterr().err == f"error: {pod}: not a cassette: kind is 'Pod', expected 'Cassette'\n"
    assert main.run(["drift", str(cut), str(cut)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {cut}: ")
