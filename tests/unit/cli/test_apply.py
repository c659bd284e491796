import io
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

MAPS = "/api/v1/namespaces/default/configmaps"
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: v}}\n"


@pytest.fixture
def file(api: "API") -> str:
    path = api.root / "m.yaml"
    path.write_text(MAP)
    return str(path)


def test_an_object_is_created_then_unchanged_then_configured(run: "Run", file: str) -> None:
    said = []
    for content in (MAP, MAP, MAP.replace("k: v", "k: w")):
        with open(file, "w") as opened:
            opened.write(content)
        assert run("apply", "-f", file) == 0, run.err
        said.append(run.out)
    assert said == ["configmap/m created\n", "configmap/m unchanged\n", "configmap/m configured\n"]


def test_it_is_a_strict_server_side_apply_in_our_name(run: "Run", api: "API", file: str) -> None:
    assert run("apply", "-f", file, "-n", "default") == 0
    method, path, body = api.requests[-1]
    assert (method, path) == ("PATCH", f"{MAPS}/m?fieldManager=devlet&fieldValidation=Strict")
    assert body is not None and body["metadata"] == {"name": "m", "namespace": "default"}


def test_flags_become_options_of_the_request(run: "Run", api: "API", file: str) -> None:
    assert run("apply", "-f", file, "--force-conflicts", "--dry-run=server", "--field-manager=me", "--server-side") == 0
    assert api.requests[-1][1].endswith("?fieldManager=me&fieldValidation=Strict&force=true&dryRun=All")
    assert run.out == "configmap/m serverside-applied (server dry run)\n"


def test_the_result_can_be_printed(run: "Run", file: str) -> None:
    assert run("apply", "-f", file, "-o", "json") == 0
    assert json.loads(run.out)["data"] == {"k": "v"}
    assert run("apply", "-f", file, "-o", "name") == 0
    assert run.out == "configmap/m\n"


def test_standard_input_is_a_file(run: "Run", api: "API", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MAP.encode())))
    assert run("apply", "-f", "-") == 0
    assert f"{MAPS}/m" in api.objects


def test_a_conflict_says_how_to_take_over(run: "Run", api: "API", file: str) -> None:
    causes = [{"reason": "FieldManagerConflict", "message": 'conflict with "x"', "field": ".data.k"}]
    conflict = {
        "kind": "Status",
        "code": 409,
        "reason": "Conflict",
        "message": "1 conflict",
        "details": {"causes": causes},
    }
    api.answers["PATCH", f"{MAPS}/m"] = (409, conflict)
    assert run("apply", "-f", file) == 1
    assert run.err == "error: configmap/m: 1 conflict; remove these fields from the file, or use --force-conflicts\n"


def test_one_object_that_fails_does_not_stop_the_others(run: "Run", api: "API", file: str) -> None:
    with open(file, "a") as opened:
        opened.write("---\n{apiVersion: v9, kind: Nope, metadata: {name: n}}\n---\n")
        opened.write("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: g}}\n---\n")
        opened.write(MAP.replace("name: m", "name: last"))
    assert run("apply", "-f", file) == 1
    assert run.out == "configmap/m created\nconfigmap/last created\n"
    assert 'does not serve kind "Nope" in version "v9"' in run.err
    assert "document 3: cannot apply an object with metadata.generateName" in run.err


def test_a_namespace_that_contradicts_the_object_is_refused(run: "Run", file: str) -> None:
    with open(file, "w") as opened:
        opened.write(MAP.replace("name: m", "name: m, namespace: other"))
    assert run("apply", "-f", file, "-n", "team") == 1
    assert "the object's namespace other does not match -n team" in run.err


def test_without_files_there_is_nothing_to_apply(run: "Run") -> None:
    assert run("apply") == 1
    assert run.err == "error: no files given: name a file, a directory or - with -f\n"
