import json

from devlet.cluster.store.lists import Page
from devlet.cluster.store.records import Record
from devlet.errors import NotFound, Unavailable
from devlet.objects.kinds import CONFIG_MAPS
from devlet.objects.statuses import failure
from devlet.serve.kube_api import answers
from devlet.serve.kube_api.answers import partial_metadata, partial_metadata_list

BODY = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"}}'


def test_a_list_is_built_from_the_stored_bytes() -> None:
    page = Page([Record(("", "a"), 7, BODY), Record(("", "b"), 8, BODY)], 9, "token", 3)
    assert json.loads(answers.list_body(CONFIG_MAPS, page)) == {
        "kind": "ConfigMapList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "9", "continue": "token", "remainingItemCount": 3},
        "items": [{"metadata": {"name": "a", "resourceVersion": "7"}}] * 2,
    }


def test_an_empty_list_has_items() -> None:
    assert json.loads(answers.list_body(CONFIG_MAPS, Page([], 9)))["items"] == []


def test_the_order_of_stored_keys_does_not_matter() -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'
    items = json.loads(answers.list_body(CONFIG_MAPS, Page([Record(("", "a"), 1, body)], 1)))["items"]
    assert items == [{"metadata": {"name": "a"}}]


def test_the_pieces_of_a_long_list_form_the_list() -> None:
    body = b'{"kind":"ConfigMap","apiVersion":"v1","data":{"x":"%s"}}' % (b"y" * 100_000)
    page = Page([Record(("", str(i)), i, body) for i in range(9)], 9)
    pieces = list(answers.list_pieces(CONFIG_MAPS, page))
    assert len(pieces) > 2
    assert all(answers.PIECE < len(piece) < answers.PIECE + len(body) for piece in pieces[:-1])
    assert b"".join(pieces) == answers.list_body(CONFIG_MAPS, page)
    assert len(json.loads(b"".join(pieces))["items"]) == 9


def test_errors_have_their_code_and_retry_after() -> None:
    assert answers.error(NotFound("x")).status == 404
    later = answers.error(Unavailable("full", retry_after=2.4))
    assert (later.status, later.headers["Retry-After"]) == (503, "2")
    assert answers.error(answers.Rejected(failure(401, "Unauthorized", "Unauthorized"))).status == 401


def test_a_warning_is_one_quoted_line() -> None:
    assert answers.warning('unknown field "a\nb\\"') == '299 - "unknown field \\"a b\\\\\\""'


def test_indented_json_is_available() -> None:
    assert answers.encode({"a": 1}) == b'{"a":1}\n'
    assert answers.encode({"a": 1}, pretty=True) == b'{\n  "a": 1\n}\n'


POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"nodeName": "n"}}


def test_partial_metadata_has_only_the_metadata() -> None:
    wanted = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "p"}}
    assert partial_metadata(POD) == wanted


def test_the_items_of_a_partial_list_have_a_kind() -> None:
    found = partial_metadata_list([POD], {"resourceVersion": "7"}, version="v1beta1")
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1beta1")
    assert found["metadata"] == {"resourceVersion": "7"}
    assert found["items"] == [partial_metadata(POD, version="v1beta1")]
