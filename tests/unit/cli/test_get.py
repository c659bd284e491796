import json
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


def pod(**labels: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": {"nodeName": "n1"}}


@pytest.fixture
def two_pods(api: "API") -> None:
    api.put(f"{PODS}/b", pod(app="x"))
    api.put(f"{PODS}/a", pod(app="y"))


@pytest.mark.usefixtures("two_pods")
@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["pods"], "NAME   SIZE\na      0\nb      0\n"),
        (["po", "b", "a"], "NAME   SIZE\nb      0\na      0\n"),
        (["pod/b"], "NAME   SIZE\nb      0\n"),
        (["pods", "-o", "wide"], "NAME   SIZE   NODE\na      0      n1\nb      0      n1\n"),
        (["pods", "--no-headers"], "a     0\nb     0\n"),
        (["pods", "--show-labels", "-l", "app=x"], "NAME   SIZE   LABELS\nb      0      app=x\n"),
        (["pods", "-A"], "NAMESPACE   NAME   SIZE\ndefault     a      0\ndefault     b      0\n"),
        (["pods", "--show-kind"], "NAME    SIZE\npod/a   0\npod/b   0\n"),
        (["pods", "-o", "name"], "pod/a\npod/b\n"),
        (["pods", "-o", "jsonpath={.items[*].metadata.name}"], "a b"),
        (["pod", "a", "-ojsonpath={.kind}{.nope}"], "Pod"),
        (["pods", "-o=custom-columns=N:.metadata.name,X:.nope"], "N     X\na     <none>\nb     <none>\n"),
        (["pods", "--sort-by=.metadata.labels.app"], "NAME   SIZE\nb      0\na      0\n"),
        (["pods", "--sort-by", "metadata.labels.app", "-o", "name"], "pod/b\npod/a\n"),
        (["pods", "--field-selector", "metadata.name=a", "-o", "name"], "pod/a\n"),
        (["pods", "--watch=false", "-o", "name"], "pod/a\npod/b\n"),
    ],
)
def test_what_is_printed(run: "Run", arguments: list[str], printed: str) -> None:
    assert run("get", *arguments) == 0, run.err
    assert (run.out, run.err) == (printed, "")


@pytest.mark.usefixtures("two_pods")
def test_several_kinds_are_distinguished(run: "Run", api: "API") -> None:
    api.put(f"{MAPS}/m", {"data": {"k": "v"}})
    assert run("get", "pods,nodes,cm", "-l", "") == 0
    assert run.out == "NAME    SIZE\npod/a   0\npod/b   0\n\nNAME          SIZE\nconfigmap/m   1\n"


@pytest.mark.usefixtures("two_pods")
def test_all_stands_for_its_category(run: "Run") -> None:
    assert run("get", "all", "-o", "name") == 0
    assert run.out == "pod/a\npod/b\n"


@pytest.mark.usefixtures("two_pods")
def test_json_and_yaml_hold_whole_objects_in_a_list(run: "Run", api: "API") -> None:
    api.objects[f"{PODS}/a"]["metadata"]["managedFields"] = [{"manager": "m"}]
    assert run("get", "pods", "-o", "json") == 0
    listed = json.loads(run.out)
    assert (listed["kind"], [item["kind"] for item in listed["items"]]) == ("List", ["Pod", "Pod"])
    assert "managedFields" not in listed["items"][0]["metadata"]
    assert run("get", "pod", "a", "-o", "yaml", "--show-managed-fields") == 0
    one = yaml.safe_load(run.out)
    assert (one["kind"], one["metadata"]["managedFields"]) == ("Pod", [{"manager": "m"}])


@pytest.mark.usefixtures("two_pods")
def test_what_is_missing_is_an_error_and_the_rest_is_printed(run: "Run") -> None:
    assert run("get", "pod", "nope", "a", "gone", "-o", "name") == 1
    assert (run.out, run.err) == ("pod/a\n", 'error: pods "nope" not found\nerror: pods "gone" not found\n')
    assert run("get", "pod", "nope", "a", "-o", "name", "--ignore-not-found") == 0
    assert (run.out, run.err) == ("pod/a\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pods"], "No resources found in default namespace.\n"),
        (["pods", "-n", "team"], "No resources found in team namespace.\n"),
        (["pods", "-A"], "No resources found\n"),
        (["nodes"], "No resources found\n"),
        (["pods", "-o", "name"], ""),
    ],
)
def test_nothing_is_not_an_error(run: "Run", arguments: list[str], said: str) -> None:
    assert run("get", *arguments) == 0
    assert (run.out, run.err) == ("", said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no resource given"),
        (["pods", "-f", "x"], "-f cannot be combined"),
        (["pods", "a", "-l", "b=c"], "name cannot be provided"),
        (["pods", "a", "-A"], "across all namespaces"),
        (["pods", "-o", "xml"], 'unknown output format "xml": expected json'),
        (["pods", "-o", "jsonpath={"], "JSONPath '{'"),
        (["pods,nodes", "-w"], "can be watched"),
        (["podz"], 'a resource type "podz"; did you mean "pod'),
        (["pods", "--timeout"], "No such option '--timeout'"),
    ],
)
def test_what_is_wrong_is_said(run: "Run", arguments: list[str], said: str) -> None:
    assert run("get", *arguments) == 1
    assert said in run.err
    assert run.out == ""


@pytest.mark.usefixtures("two_pods")
def test_files_say_which_objects(run: "Run", api: "API") -> None:
    file = api.root / "objects.yaml"
    file.write_text(
        "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: b}\n"
    )
    assert run("get", "-f", str(file), "-o", "name") == 0
    assert run.out == "pod/a\npod/b\n"


@pytest.mark.usefixtures("two_pods")
@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["pods", "-w"], "NAME   SIZE\na      0\nb      0\na      0\nlater   0\n"),
        (["pods", "--watch-only"], "NAME   SIZE\na      0\nlater   0\n"),
        (["pods", "-w", "-o", "name"], "pod/a\npod/b\npod/a\npod/later\n"),
        (["pod", "a", "-w"], "NAME   SIZE\na      0\na      0\n"),
        (["pods", "-w", "-o", "jsonpath={.metadata.name};"], "a;b;a;later;"),
    ],
)
def test_changes_are_followed(run: "Run", api: "API", arguments: list[str], printed: str) -> None:
    """Until the server is gone, which is said."""

    def change() -> None:
        api.put(f"{PODS}/a", pod(app="z"))
        api.put(f"{PODS}/later", pod())
        api.answers["GET", PODS] = (503, {"kind": "Status", "code": 503, "message": "over"})
        api.stopped = True

    api.on_watch = change
    assert run("get", *arguments) == 1
    assert run.out == printed
    assert run.err == "error: over\n"
