import pytest

from devlet.cluster.client import FieldValidation, WriteOptions
from devlet.cluster.store.incoming import accept
from devlet.errors import BadRequest, InvalidObject
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, RESOURCE_CLAIMS, Kind, Resource
from tests.support.cluster_contract.specimens import CLAIMS_V1BETA1, claim

THINGS = Resource(Kind("Thing", "things", ("example.com/v1",)), "example.com/v1")
STRICT = WriteOptions(field_validation=FieldValidation.STRICT)


def test_a_document_gets_its_type_and_is_ours() -> None:
    given: Document = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    accepted = accept(CONFIG_MAPS, given, WriteOptions())
    assert (accepted["kind"], accepted["apiVersion"]) == ("ConfigMap", "v1")
    accepted["data"]["k"] = accepted["metadata"]["name"] = "changed"
    assert given == {"metadata": {"name": "a"}, "data": {"k": "v"}}


def test_a_document_is_brought_to_the_storage_version() -> None:
    request = {"name": "r", "deviceClassName": "c"}
    older = {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [request]}}}
    accepted = accept(CLAIMS_V1BETA1, older, WriteOptions())
    assert accepted["apiVersion"] == "resource.k8s.io/v1"
    assert accepted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "c"


def test_any_served_version_of_the_kind_will_do() -> None:
    newest = {**claim("a"), "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    assert accept(CLAIMS_V1BETA1, newest, WriteOptions())["apiVersion"] == "resource.k8s.io/v1"


@pytest.mark.parametrize("wrong", [{"kind": "Secret"}, {"apiVersion": "v2"}, {"kind": 5}, {"metadata": "text"}])
def test_a_document_of_another_kind_is_a_bad_request(wrong: Document) -> None:
    with pytest.raises(BadRequest):
        accept(CONFIG_MAPS, {"metadata": {"name": "a"}, **wrong}, WriteOptions())


def test_custom_kinds_are_taken_as_they_are() -> None:
    given = {"metadata": {"name": "a"}, "spec": ["anything"], "novelty": 1}
    accepted = accept(THINGS, given, STRICT)
    assert accepted == {**given, "kind": "Thing", "apiVersion": "example.com/v1"}
    accepted["spec"].append("more")
    assert given["spec"] == ["anything"]


def test_strictness_names_all_unknown_fields() -> None:
    document = {"metadata": {"name": "a"}, "dataa": {}, "foo": 1}
    with pytest.raises(BadRequest) as refused:
        accept(CONFIG_MAPS, document, STRICT)
    text = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
    assert str(refused.value) == text + 'unknown field "dataa", unknown field "foo"'
    with pytest.raises(InvalidObject) as invalid:
        accept(CONFIG_MAPS, document, STRICT, patched=True)
    assert [cause.field for cause in invalid.value.causes] == ["patch"]


def test_warnings_name_them_one_by_one_and_they_are_kept() -> None:
    said: list[str] = []
    options = WriteOptions(field_validation=FieldValidation.WARN, warn=said.append)
    accepted = accept(CONFIG_MAPS, {"metadata": {"name": "a"}, "foo": 1, "bar": {}}, options)
    assert sorted(said) == ['unknown field "bar"', 'unknown field "foo"']
    assert (accepted["foo"], accepted["bar"]) == (1, {})


@pytest.mark.parametrize("document", [{}, {"metadata": None}])
def test_metadata_is_always_there(document: Document) -> None:
    assert isinstance(accept(CONFIG_MAPS, document, WriteOptions())["metadata"], dict)
    assert isinstance(accept(RESOURCE_CLAIMS, document, WriteOptions())["metadata"], dict)
    assert isinstance(accept(THINGS, document, WriteOptions())["metadata"], dict)


def test_a_definition_with_a_value_of_the_wrong_type_is_a_bad_request() -> None:
    definitions = Resource(DEFINITION, DEFINITION.storage_version)
    document = {"metadata": {"name": "a"}, "spec": {"versions": [{"name": "v1", "subresources": True}]}}
    with pytest.raises(BadRequest, match=r"field spec.versions\[0\].subresources"):
        accept(definitions, document, WriteOptions())


def test_a_custom_resource_holds_any_json_within_limits() -> None:
    assert accept(THINGS, {"metadata": {"name": "a"}, "spec": [1, 10**30]}, WriteOptions())["spec"] == [1, 1e30]
    deep: Document = {}
    for _ in range(500):
        deep = {"a": deep}
    for wrong, text in ((deep, "nested deeper than 100 levels"), (10**400, "out of range")):
        with pytest.raises(BadRequest, match=text):
            accept(THINGS, {"metadata": {"name": "a"}, "spec": wrong}, WriteOptions())
