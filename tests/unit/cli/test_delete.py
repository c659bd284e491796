from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

PODS = "/api/v1/namespaces/default/pods"
POD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.fixture
def pods(api: "API") -> None:
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        api.put(f"{PODS}/{name}", POD | {"metadata": {"labels": {"app": label}}})


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["pod", "a"], ["b", "c"]),
        (["pod/a", "po/b"], ["c"]),
        (["pods", "-l", "app=x"], ["b"]),
        (["pods", "--all"], []),
        (["pods", "--all", "--field-selector=metadata.name=b"], ["a", "c"]),
        (["pod", "a", "--wait=false"], ["b", "c"]),
        (["pod", "a", "--dry-run=server"], ["a", "b", "c"]),
    ],
)
def test_what_is_deleted(run: "Run", api: "API", arguments: list[str], left: list[str]) -> None:
    assert run("delete", *arguments) == 0, run.err
    assert [path.rpartition("/")[2] for path in sorted(api.objects)] == left


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["pod", "a"], 'pod "a" deleted from default namespace\n'),
        (["pod", "a", "--dry-run=server"], 'pod "a" deleted from default namespace (server dry run)\n'),
        (["pod", "a", "--force"], 'pod "a" force deleted from default namespace\n'),
        (["pod", "a", "-o", "name"], "pod/a\n"),
    ],
)
def test_what_is_printed(run: "Run", arguments: list[str], printed: str) -> None:
    assert run("delete", *arguments) == 0
    assert run.out == printed


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], {"propagationPolicy": "Background"}),
        (["--cascade=orphan"], {"propagationPolicy": "Orphan"}),
        (["--grace-period=7"], {"propagationPolicy": "Background", "gracePeriodSeconds": 7}),
        (["--grace-period=0"], {"propagationPolicy": "Background", "gracePeriodSeconds": 1}),
        (["--now"], {"propagationPolicy": "Background", "gracePeriodSeconds": 1}),
        (["--force", "--grace-period=0"], {"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
    ],
)
def test_flags_become_options_of_the_request(
    run: "Run", api: "API", flags: list[str], options: dict[str, object]
) -> None:
    assert run("delete", "pod", "a", *flags) == 0
    bodies = [body for method, _, body in api.requests if method == "DELETE"]
    assert bodies == [{"apiVersion": "v1", "kind": "DeleteOptions", **options}]


def test_it_returns_when_the_object_is_gone(run: "Run", api: "API") -> None:
    api.put(f"{PODS}/slow", POD | {"metadata": {"finalizers": ["x/y"]}})
    api.on_watch = lambda: api.objects.get(f"{PODS}/slow") and api.remove(f"{PODS}/slow")
    assert run("delete", "pod", "slow") == 0
    assert api.objects == {}


def test_another_object_of_the_name_is_not_waited_for(run: "Run", api: "API") -> None:
    api.put(f"{PODS}/again", POD | {"metadata": {"finalizers": ["x/y"]}})
    api.on_watch = lambda: api.put(f"{PODS}/again", POD | {"metadata": {"uid": "another"}})
    assert run("delete", "pod", "again") == 0


def test_a_wait_that_is_too_long_ends_with_an_error(run: "Run", api: "API") -> None:
    api.put(f"{PODS}/held", POD | {"metadata": {"finalizers": ["x/y"]}})
    assert run("delete", "pod", "held", "--timeout=100ms") == 1
    assert "timed out waiting for pod/held to be deleted" in run.err


@pytest.mark.usefixtures("pods")
def test_what_is_not_there_is_an_error_unless_told_otherwise(run: "Run", api: "API") -> None:
    assert run("delete", "pod", "nope", "a") == 1
    assert (run.out, run.err) == ('pod "a" deleted from default namespace\n', 'error: pods "nope" not found\n')
    assert run("delete", "pod", "nope", "--ignore-not-found") == 0
    assert run("delete", "pod", "-l", "app=none") == 0
    assert run.err == "No resources found\n"


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no resource given"),
        (["pods"], "no objects selected: give names, a selector with -l, or --all"),
        (["pods", "a", "--all"], "--all cannot be combined with names"),
        (["pods", "a", "--now", "--grace-period=3"], "cannot be combined"),
        (["pods", "a", "--force", "--grace-period=3"], "--force deletes immediately"),
        (["pods", "a", "--timeout=soon"], "not a duration"),
        (["pods", "a", "--cascade=maybe"], "Invalid value for '--cascade'"),
    ],
)
def test_nothing_is_deleted_by_a_command_that_is_wrong(run: "Run", api: "API", arguments: list[str], said: str) -> None:
    assert run("delete", *arguments) == 1
    assert said in run.err
    assert len(api.objects) == 3


@pytest.mark.usefixtures("pods")
def test_files_say_which_objects(run: "Run", api: "API") -> None:
    (api.root / "a.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}')
    assert run("delete", "-f", str(api.root / "a.json")) == 0
    assert f"{PODS}/a" not in api.objects
