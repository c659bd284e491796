from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def one_map(api: "API") -> None:
    api.put(
        f"{MAPS}/m", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v\nw"}, "immutable": True, "empty": {}}
    )
    about = {"involvedObject": {"uid": "uid-m"}, "reason": "Touched", "type": "Normal", "message": "by hand"}
    api.put("/api/v1/namespaces/default/events/e", about)


@pytest.mark.usefixtures("one_map")
def test_any_kind_is_shown_as_an_outline_with_its_events(run: "Run") -> None:
    assert run("describe", "cm", "m") == 0, run.err
    lines = run.out.splitlines()
    assert lines[:4] == ["Name:         m", "Namespace:    default", "Labels:       <none>", "Annotations:  <none>"]
    assert lines[7:] == [
        "Data:",
        "  k: v\\nw",
        "Immutable:",
        "  true",
        "Empty:        <none>",
        "Events:",
        "  TYPE     REASON    AGE         FROM     MESSAGE",
        "  Normal   Touched   <unknown>   <none>   by hand",
    ]


@pytest.mark.usefixtures("one_map")
def test_events_can_be_left_out(run: "Run") -> None:
    assert run("describe", "cm/m", "--show-events=false") == 0
    assert "Events" not in run.out


@pytest.mark.usefixtures("one_map")
def test_several_objects_are_apart_and_what_is_missing_is_an_error(run: "Run", api: "API") -> None:
    api.put(f"{MAPS}/n", {"apiVersion": "v1", "kind": "ConfigMap"})
    assert run("describe", "cm", "m", "nope", "n") == 1
    assert run.out.count("Kind:         ConfigMap") == 2
    assert run.err == 'error: configmaps "nope" not found\n'
    assert run("describe", "cm") == 0
    assert run.out.count("\n\n\nName:") == 1


def test_nothing_is_not_an_error(run: "Run") -> None:
    assert run("describe", "pods") == 0
    assert run.err == "No resources found\n"


def test_a_secret_keeps_its_values(run: "Run", api: "API") -> None:
    api.put("/api/v1/namespaces/default/secrets/s", {"kind": "Secret", "type": "Opaque", "data": {"key": "c2VjcmV0"}})
    assert run("describe", "secret", "s") == 0
    assert "c2VjcmV0" not in run.out
    assert "  key   6\n" in run.out
