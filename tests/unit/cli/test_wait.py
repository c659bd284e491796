from typing import TYPE_CHECKING, Any

import pytest

from devlet.cli.wait import parse
from devlet.errors import InvalidInput

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

PODS = "/api/v1/namespaces/default/pods"


def pod(ready: str = "False", **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"apiVersion": "v1", "kind": "Pod", "status": {"conditions": conditions, **status}}


@pytest.mark.parametrize(
    ("text", "document", "met"),
    [
        ("delete", None, True),
        ("delete", {}, False),
        ("create", None, False),
        ("create", {}, True),
        ("condition=Ready", pod("True"), True),
        ("condition=ready=true", pod("True"), True),
        ("condition=Ready", pod("False"), False),
        ("condition=Ready=False", pod("False"), True),
        ("condition=Ready", {}, False),
        ("condition=Ready", None, False),
        ("condition=Ready", pod("True") | {"metadata": {"generation": 2}}, True),
        ("condition=Ready", pod("True", observedGeneration=1) | {"metadata": {"generation": 2}}, False),
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Running"}}, True),
        ("jsonpath={.status.phase}=Running", {"status": {"phase": "Pending"}}, False),
        ("jsonpath=.status.phase='Running'", {"status": {"phase": "Running"}}, True),
        ("jsonpath={.status.phase}", {"status": {"phase": "x"}}, True),
        ("jsonpath={.status.phase}", {"status": {}}, False),
        ("jsonpath={.a[?(@.b==1)].c}=3", {"a": [{"b": 1, "c": 3}]}, True),
        ("jsonpath={.a}=true", {"a": True}, True),
    ],
)
def test_conditions(text: str, document: dict[str, Any] | None, met: bool) -> None:
    assert parse(text)(document) is met


@pytest.mark.parametrize(
    "text", ["", "soon", "condition", "condition=", "jsonpath=", "jsonpath={.a}=", "jsonpath={.a}x", "delete=1"]
)
def test_invalid_conditions_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--for=|JSONPath"):
        parse(text)


def test_a_condition_that_holds_is_met_at_once(run: "Run", api: "API") -> None:
    api.put(f"{PODS}/p", pod("True"))
    assert run("wait", "--for=condition=Ready", "pod/p") == 0
    assert run.out == "pod/p condition met\n"


@pytest.mark.parametrize("what", ["condition=Ready", "jsonpath={.status.conditions[0].status}=True"])
def test_a_change_is_waited_for(run: "Run", api: "API", what: str) -> None:
    api.put(f"{PODS}/p", pod("False"))
    api.on_watch = lambda: api.put(f"{PODS}/p", pod("True"))
    assert run("wait", f"--for={what}", "pod", "p") == 0
    assert run.out == "pod/p condition met\n"


def test_creation_and_deletion_are_waited_for(run: "Run", api: "API") -> None:
    api.on_watch = lambda: api.put(f"{PODS}/p", pod())
    assert run("wait", "--for=create", "pod/p") == 0
    api.on_watch = lambda: api.remove(f"{PODS}/p")
    assert run("wait", "--for=delete", "pod/p") == 0
    assert run("wait", "--for=delete", "pod/p", "--timeout=0") == 0


def test_all_of_a_type_are_waited_for(run: "Run", api: "API") -> None:
    api.put(f"{PODS}/a", pod("True"))
    api.put(f"{PODS}/b", pod("True"))
    assert run("wait", "--for=condition=Ready", "pods", "--all") == 0
    assert run.out == "pod/a condition met\npod/b condition met\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pod/p", "--for=condition=Ready", "--timeout=50ms"], "timed out waiting for the condition on pods/p"),
        (["pod/nope", "--for=condition=Ready"], 'pods "nope" not found'),
        (["pods", "-l", "a=b", "--for=condition=Ready"], "no matching resources found"),
        (["pod/nope", "--for=create", "--timeout=0"], "timed out"),
        (["pods", "--for=delete"], "no objects selected"),
        (["pod/p"], "Missing option '--for'"),
    ],
)
def test_what_does_not_come_is_an_error(run: "Run", api: "API", arguments: list[str], said: str) -> None:
    api.put(f"{PODS}/p", pod("False"))
    assert run("wait", *arguments) == 1
    assert said in run.err


def test_an_object_that_vanishes_while_it_is_waited_for_is_an_error(run: "Run", api: "API") -> None:
    api.put(f"{PODS}/p", pod("False"))
    api.on_watch = lambda: api.remove(f"{PODS}/p")
    assert run("wait", "--for=condition=Ready", "pod/p") == 1
    assert 'pods "p" not found' in run.err
