from typing import TYPE_CHECKING

import pytest

from devlet.cli.resources import Resources
from devlet.cli.selection import Scope, Wanted, explicit, objects, of_files, one_source, parse, place
from devlet.cli.session import Session
from devlet.errors import InvalidInput

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


@pytest.fixture
def resources(session: Session) -> Resources:
    return Resources(session)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["pods"], [("pods", ())]),
        (["pods,nodes"], [("pods", ()), ("nodes", ())]),
        (["pod", "a", "b"], [("pods", ("a", "b"))]),
        (["pods,cm", "a"], [("pods", ("a",)), ("configmaps", ("a",))]),
        (["pod/a", "node/n", "po/b"], [("pods", ("a", "b")), ("nodes", ("n",))]),
        (["all"], [("pods", ()), ("deployments", ())]),
        (["pods,po"], [("pods", ())]),
    ],
)
def test_the_grammar(resources: Resources, arguments: list[str], wanted: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(w.resource.plural, w.names) for w in parse(resources, arguments)] == wanted


@pytest.mark.parametrize(
    "arguments", [["pods", "pod/a"], ["pod/"], ["/a"], ["pod/a/b"], ["pods,"], ["pods", ""], ["a,b/c"]]
)
def test_what_is_not_in_it(resources: Resources, arguments: list[str]) -> None:
    with pytest.raises(InvalidInput):
        parse(resources, arguments)


def test_names_exclude_selectors_and_all_namespaces(resources: Resources) -> None:
    pod, node = Wanted(resources.find("pods"), ("a",)), Wanted(resources.find("nodes"), ("n",))
    Scope("").check([node])
    Scope("x").check([pod])
    for scope in (Scope(""), Scope("x", "a=b"), Scope("x", "", "a=b")):
        with pytest.raises(InvalidInput):
            scope.check([pod])


def test_objects_are_those_named_or_all(session: Session, resources: Resources, api: "API") -> None:
    api.put("/api/v1/namespaces/x/pods/a", {})
    pods = resources.find("pods")
    assert [n.path for n in objects(session, Scope("y"), [Wanted(pods, ("b",))])] == ["/api/v1/namespaces/y/pods/b"]
    assert [(n.path, n.text) for n in objects(session, Scope(""), [Wanted(pods)])] == [
        ("/api/v1/namespaces/x/pods/a", "pod/a")
    ]


def test_a_type_alone_is_not_enough_where_it_matters(session: Session, resources: Resources) -> None:
    pods = [Wanted(resources.find("pods"))]
    assert explicit(session, Scope("x"), pods, everything=True) == []
    assert explicit(session, Scope("x", "a=b"), pods, everything=False) == []
    with pytest.raises(InvalidInput, match="or --all"):
        explicit(session, Scope("x"), pods, everything=False)
    with pytest.raises(InvalidInput, match="--all cannot be combined"):
        explicit(session, Scope("x", "a=b"), pods, everything=True)


def test_files_name_objects(session: Session, resources: Resources, api: "API") -> None:
    file = api.root / "f.yaml"
    file.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: n}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: p}}"
    )
    found = of_files(resources, session, [str(file)], recursive=False, namespace="")
    assert [n.path for n in found] == ["/api/v1/nodes/n", "/api/v1/namespaces/default/pods/p"]


def test_the_namespace_asked_for_goes_first(session: Session) -> None:
    assert (place(session, "x"), place(session, ""), place(session, "x", everywhere=True)) == ("x", "default", "")


def test_objects_come_from_one_source() -> None:
    one_source(["pods"], [])
    one_source([], ["f"])
    for arguments, files in (([], []), (["pods"], ["f"])):
        with pytest.raises(InvalidInput):
            one_source(arguments, files)
