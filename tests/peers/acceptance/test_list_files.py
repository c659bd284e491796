"""Files that hold a `kind: List`, as `kubectl get -o yaml` prints them. kubectl checks their items by itself, with what
the server says in OpenAPI 2 as protobuf."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from devlet.objects.protobuf.wire import members
from devlet.serve.kube_api.openapi_protobuf import MEDIA_TYPE, MEDIA_TYPES, encode

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Server, Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": {"type": "string"}}}
ARMS = {"type": "integer", "minimum": 1}
ROBOT_SPEC = {
    "type": "object",
    "required": ["arms"],
    "properties": {
        "arms": ARMS,
        "not": {"type": "string"},
        "free": ANYTHING,
        "maybe": {"type": "object", "nullable": True, "properties": {"x": {"type": "string"}}},
        "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "inner": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object", "properties": {"arms": ARMS}}},
        },
    },
}
INNER = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"arms": 1}}


def listed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def definition(site: "Site", kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Of a kind in a group that only this test has."""
    plural = f"{kind.lower()}s"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{site.driver}"},
        "spec": {"group": site.driver, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def custom(site: "Site", kind: str, name: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": f"{site.driver}/v1", "kind": kind, "metadata": {"name": name}, **members}


@contextmanager
def defined(site: "Site", kind: str, schema: dict[str, Any]) -> Iterator[None]:
    """From when OpenAPI 2 has it, which takes a moment in kube-apiserver, until its group is gone again."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    document = definition(site, kind, schema)
    answer = site.server.request("POST", path, document)
    assert answer.code == 201, answer.body
    name = f"{'.'.join(reversed(site.driver.split('.')))}.v1.{kind}"
    site.eventually(lambda: name in openapi(site.server)["definitions"])
    yield
    site.server.request("DELETE", f"{path}/{document['metadata']['name']}")
    site.eventually(lambda: site.server.request("GET", f"/apis/{site.driver}").code == 404)


def openapi(server: "Server") -> dict[str, Any]:
    return server.request("GET", "/openapi/v2").document


async def test_a_list_is_applied(site: "Site") -> None:
    file = listed(site.config_map("a"), site.config_map("b"))
    assert await site.prints("apply", "-f", "-", stdin=[file]) == "configmap/a created\nconfigmap/b created\n"
    assert await site.prints("apply", "-f", "-", stdin=[file]) == "configmap/a unchanged\nconfigmap/b unchanged\n"


async def test_what_get_prints_can_be_applied(site: "Site") -> None:
    await site.prints("create", "-f", "-", stdin=[listed(site.pod_document("p1", claim=False), site.config_map("a"))])
    printed = json.loads(await site.prints("get", "configmap/a", "pod/p1", "-o", "json"))
    assert printed["kind"] == "List"
    done = await site.kubectl("apply", "-f", "-", stdin=[printed])
    assert (done.returncode, done.stdout) == (0, "configmap/a configured\npod/p1 configured\n"), done.stderr


async def test_mistakes_in_a_list_are_found(site: "Site") -> None:
    pod = site.pod_document("p1", claim=False)
    pod["spec"] = {"containers": [{"image": "i", "imag": "x", "ports": 1}], "nodeNamed": "x"}
    complaint = await site.fails("apply", "-f", "-", stdin=[listed({**site.config_map("a"), "dota": {}}, pod)])
    container = "io.k8s.api.core.v1.Container"
    assert complaint.partition("error validating data: ")[2].partition("; if you")[0] == (
        '[ValidationError(ConfigMap): unknown field "dota" in io.k8s.api.core.v1.ConfigMap, '
        f'ValidationError(Pod.spec.containers[0]): unknown field "imag" in {container}, '
        f'ValidationError(Pod.spec.containers[0].ports): invalid type for {container}.ports: got "integer", '
        'expected "array", '
        f'ValidationError(Pod.spec.containers[0]): missing required field "name" in {container}, '
        'ValidationError(Pod.spec): unknown field "nodeNamed" in io.k8s.api.core.v1.PodSpec]'
    )
    assert site.get("configmaps", "a").code == 404


async def test_custom_resources_in_a_list_are_checked_by_their_definition(site: "Site") -> None:
    right = {"arms": 2, "not": "x", "free": {"other": 1}, "maybe": None, "port": 80, "inner": INNER}
    file, mistaken = (listed(custom(site, "Robot", "r1", spec=spec)) for spec in (right, {"legs": 2}))
    with defined(site, "Robot", {"type": "object", "properties": {"spec": ROBOT_SPEC}}):
        assert await site.prints("apply", "-f", "-", stdin=[file]) == f"robot.{site.driver}/r1 created\n"
        complaint = await site.fails("apply", "-f", "-", stdin=[mistaken])
    assert 'ValidationError(Robot.spec): unknown field "legs"' in complaint
    assert 'ValidationError(Robot.spec): missing required field "arms"' in complaint


async def test_where_a_definition_allows_everything_a_list_may_hold_everything(site: "Site") -> None:
    file = listed(custom(site, "Blob", "b1", known="x", unknown={"a": 1}))
    with defined(site, "Blob", ANYTHING):
        assert await site.prints("apply", "-f", "-", stdin=[file]) == f"blob.{site.driver}/b1 created\n"


@pytest.mark.parametrize("asked", MEDIA_TYPES)
def test_the_media_type_of_the_answer_has_no_sign_that_is_not_allowed_there(server: "Server", asked: str) -> None:
    answer = server.request("GET", "/openapi/v2", accept=asked)
    assert (answer.code, answer.headers["Content-Type"]) == (200, MEDIA_TYPE)


@pytest.mark.parametrize(
    ("accept", "code"), [("*/*", 200), ("application/*", 200), (f"application/json, {MEDIA_TYPE}", 200), ("a/b", 406)]
)
def test_openapi_2_is_json_for_all_who_take_it(server: "Server", accept: str, code: int) -> None:
    answer = server.request("GET", "/openapi/v2", accept=accept)
    assert answer.code == code
    assert code != 200 or answer.headers["Content-Type"].partition(";")[0] == "application/json"


def test_our_protobuf_of_its_document_is_its_own(server: "Server") -> None:
    """Extensions, defaults and the like are text, which may be written in several ways: without them, byte by byte."""
    theirs = definitions(server.request("GET", "/openapi/v2", accept=MEDIA_TYPE).body)
    ours = definitions(encode({"definitions": openapi(server)["definitions"]}))
    free_text = (b"x-kubernetes-", b'"default"', b'"enum"')
    exact = [
        name
        for name, schema in openapi(server)["definitions"].items()
        if not any(word in json.dumps(schema).encode() for word in free_text)
    ]
    assert len(exact) > 100
    assert {name: theirs[name] for name in exact} == {name: ours[name] for name in exact}
    assert theirs.keys() == ours.keys()


def definitions(blob: bytes) -> dict[str, object]:
    """The schemas by name, as bytes."""
    pairs = [dict(fields(pair)) for number, part in fields(blob) if number == 9 for _, pair in fields(part)]
    return {str(pair[1], "utf-8"): pair[2] for pair in pairs}


def fields(blob: Any) -> list[tuple[int, Any]]:
    return list(members(blob, 0, len(blob)))
