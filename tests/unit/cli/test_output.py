import json
from typing import Any

import pytest
import yaml

from devlet.cli.output import Found, Shown, emit, printer
from devlet.cli.resources import Resource
from devlet.errors import InvalidInput

CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "resourceclaim", "ResourceClaim", True)
LIST: dict[str, Any] = {
    "kind": "ResourceClaimList",
    "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
}
ONE: dict[str, Any] = {
    "kind": "ResourceClaim",
    "apiVersion": "resource.k8s.io/v1",
    "metadata": {"name": "a", "managedFields": []},
}


def printed(text: str, *documents: dict[str, Any], single: bool = False, shown: Shown = Shown()) -> str:
    printing = printer(text, shown)
    return "".join(line + printing.end for line in printing.all([Found(CLAIMS, d) for d in documents], single=single))


def test_items_of_a_list_get_the_kind_the_server_left_out() -> None:
    items = json.loads(printed("json", LIST))["items"]
    assert items[1] == {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "b"}}


def test_one_object_is_printed_as_it_is() -> None:
    assert json.loads(printed("json", ONE, single=True)) == {**ONE, "metadata": {"name": "a"}}
    assert yaml.safe_load(printed("yaml", ONE, single=True)) == {**ONE, "metadata": {"name": "a"}}


def test_json_has_sorted_keys_and_four_spaces() -> None:
    assert printed("json", ONE, single=True).startswith('{\n    "apiVersion": "resource.k8s.io/v1",\n    "kind"')


def test_a_name_has_its_kind_and_group() -> None:
    assert printed("name", LIST) == "resourceclaim.resource.k8s.io/a\nresourceclaim.resource.k8s.io/b\n"


def test_without_a_table_of_the_server_there_are_names() -> None:
    assert printed("", LIST, shown=Shown(kinds=True)).splitlines()[1] == "resourceclaim.resource.k8s.io/a   "


def test_followed_objects_are_documents_of_their_own() -> None:
    printing = printer("yaml")
    lines = [line for name in "ab" for line in printing.one(Found(CLAIMS, {"metadata": {"name": name}}))]
    assert lines == ["metadata:\n  name: a", "---", "metadata:\n  name: b"]


@pytest.mark.parametrize(
    "text", ["xml", "json=x", "jsonpath", "jsonpath=", "custom-columns", "wide=1", "go-template={{.}}"]
)
def test_an_unknown_format_names_the_known_ones(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected json, yaml, wide, name, jsonpath="):
        printer(text)


def test_lines_end_as_their_format_ends_them(capsys: pytest.CaptureFixture[str]) -> None:
    emit(printer("name"), ["a", "b"])
    emit(printer("jsonpath={.x}"), ["c", "d"])
    assert capsys.readouterr().out == "a\nb\ncd"
