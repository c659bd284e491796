"""kube-apiserver and devlet describe and print the same things in the same way, apart from the listed differences.

`tests/vectors/tables.json` has objects, and what kube-apiserver showed for them. The objects are created anew here;
with DEVLET_RECORD=1 the file is written anew, too."""

import json
import os
import shutil
import ssl
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio import sleep, to_thread

from devlet.objects.kinds import BUILT_IN, Catalogue, Kind, Resource
from devlet.objects.values.timestamps import format_time
from devlet.serve.kube_api import discovery, paths
from devlet.serve.kube_api.negotiation import Format, negotiate, negotiate_discovery
from devlet.serve.kube_api.openapi_v3 import OpenAPIV3
from devlet.serve.kube_api.tables import printer, table
from tests.support.peers.control_plane import ControlPlane, control_plane

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

Document = dict[str, Any]

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "tables.json"
CATALOGUE = Catalogue(BUILT_IN)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
COLUMN = ("name", "type", "format", "priority")


@dataclass(frozen=True)
class Answer:
    code: int
    content_type: str
    date: datetime
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    """kube-apiserver, asked by HTTP."""

    plane: ControlPlane
    tls: ssl.SSLContext

    async def ask(
        self,
        path: str,
        accept: str = "application/json",
        *,
        method: str = "GET",
        body: Document | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        headers = {"Authorization": f"Bearer {self.plane.token}", "Accept": accept, "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.plane.endpoint + path, data, headers, method=method)
        return await to_thread.run_sync(self._send, request)

    def _send(self, request: urllib.request.Request) -> Answer:
        try:
            with urllib.request.urlopen(request, context=self.tls) as reply:
                return self._answer(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as e:
            with e:
                return self._answer(e.code, e.headers, e.read())

    def _answer(self, code: int, headers: Any, body: bytes) -> Answer:
        return Answer(code, headers.get("Content-Type", ""), parsedate_to_datetime(headers["Date"]), body)


@pytest.fixture(scope="module")
async def server(peers: "Peers") -> AsyncIterator[Server]:
    peers.need("etcd", "kubectl", "kube-apiserver")
    root = Path(tempfile.mkdtemp(prefix="dv"))
    async with control_plane(peers.binaries, root, fsync=False) as plane:
        tls = ssl.create_default_context(cafile=plane.ca_file)
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as in tests.support.peers.health
        yield Server(plane, tls)
    shutil.rmtree(root)


def resource_at(path: str) -> Resource:
    target = paths.parse(CATALOGUE, path)
    assert isinstance(target, paths.Target)
    return target.resource


def without_hash(entry: Document) -> Document:
    return {key: value for key, value in entry.items() if key != "storageVersionHash"}


@pytest.mark.spec("KA-1.3")
async def test_the_legacy_documents_say_the_same_of_what_we_serve(server: Server) -> None:
    compared = 0
    for api_version in discovery.group_versions(CATALOGUE):
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        theirs = {entry["name"]: without_hash(entry) for entry in (await server.ask(path)).document["resources"]}
        for entry in discovery.resource_list(CATALOGUE, api_version)["resources"]:
            assert entry == theirs[entry["name"]]
            compared += 1
    assert compared > 50


@pytest.mark.spec("KA-1.3")
async def test_the_groups_have_the_same_versions_in_the_same_order(server: Server) -> None:
    theirs = {group["name"]: group for group in (await server.ask("/apis")).document["groups"]}
    for group in discovery.group_list(CATALOGUE)["groups"]:
        assert group == theirs[group["name"]]
        assert discovery.group(CATALOGUE, group["name"]) == (await server.ask(f"/apis/{group['name']}")).document


@pytest.mark.spec("KA-1.2")
@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_the_aggregated_document_says_the_same_of_what_we_serve(server: Server, path: str) -> None:
    answer = await server.ask(path, AGGREGATED)
    ours = discovery.aggregated(CATALOGUE, core=path == "/api")
    form = negotiate_discovery(AGGREGATED, aggregated=True)
    assert form is not None and form.content_type() == answer.content_type
    groups = {group["metadata"].get("name"): group for group in answer.document["items"]}
    for group in ours["items"]:
        theirs = groups[group["metadata"].get("name")]
        for version, their_version in zip(group["versions"], theirs["versions"], strict=True):
            assert (version["version"], version["freshness"]) == (their_version["version"], "Current")
            resources = {resource["resource"]: resource for resource in their_version["resources"]}
            for resource in version["resources"]:
                assert resource == _only(resources[resource["resource"]], resource)


def _only(theirs: Document, ours: Document) -> Document:
    """Their resource without the subresources that we do not have."""
    if "subresources" not in theirs:
        return theirs
    known = {sub["subresource"] for sub in ours.get("subresources", ())}
    kept = [sub for sub in theirs["subresources"] if sub["subresource"] in known]
    return {**{k: v for k, v in theirs.items() if k != "subresources"}, **({"subresources": kept} if kept else {})}


@pytest.mark.spec("KA-5")
async def test_every_resource_has_the_same_columns(server: Server) -> None:
    for kind in CATALOGUE:
        for api_version in kind.api_versions:
            resource = Resource(kind, api_version)
            answer = await server.ask(f"{resource.path}/{kind.plural}", TABLE)
            theirs = [[column[key] for key in COLUMN] for column in answer.document["columnDefinitions"]]
            columns = [column.document() for column in printer(resource).columns]
            assert [[column[key] for key in COLUMN] for column in columns] == theirs, resource.name


@pytest.mark.spec("KA-5")
async def test_the_same_objects_have_the_same_cells(server: Server) -> None:
    recorded = json.loads(VECTORS.read_text())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tables"}}
    await server.ask("/api/v1/namespaces", method="POST", body=namespace)
    for entry in recorded["objects"]:
        await create(server, entry)
    measured = [await measure(server, entry) for entry in recorded["objects"]]
    if os.environ.get("DEVLET_RECORD"):
        record(measured)
    for entry in measured:
        resource = resource_at(entry["path"])
        ours = table(resource, [entry["listed"]], now=entry["now"])["rows"][0]
        assert without_age(resource, ours["cells"]) == without_age(resource, entry["cells"]), entry["listed"]
        assert [condition["reason"] for condition in ours.get("conditions", ())] == entry.get("reasons", [])
    assert len(measured) > 100


async def create(server: Server, entry: Document) -> None:
    path = f"{entry['path']}/{entry['document']['metadata']['name']}"
    answer = await server.ask(entry["path"], method="POST", body=entry["document"])
    assert answer.code == 201, answer.body
    if status := entry.get("status"):
        merge = "application/merge-patch+json"
        answer = await server.ask(f"{path}/status", method="PATCH", body={"status": status}, content_type=merge)
        assert answer.code == 200, answer.body
    if entry.get("doomed"):
        assert (await server.ask(path, method="DELETE")).code == 200


async def measure(server: Server, entry: Document) -> Document:
    path = f"{entry['path']}/{entry['document']['metadata']['name']}"
    shown, listed = await server.ask(path, TABLE), (await server.ask(path)).document
    listed["metadata"].pop("managedFields", None)
    row = shown.document["rows"][0]
    reasons = [condition["reason"] for condition in row.get("conditions", ())]
    found = {**entry, "listed": listed, "cells": row["cells"], "now": shown.date}
    return {**found, **({"reasons": reasons} if reasons else {})}


def record(measured: list[Document]) -> None:
    columns = {}
    for entry in measured:
        shown = [column.document() for column in printer(resource_at(entry["path"])).columns]
        columns[entry["path"]] = [[column[key] for key in COLUMN] for column in shown]
    objects = [{key: value for key, value in entry.items() if key != "now"} for entry in measured]
    found = {"version": "v1.36.4", "now": format_time(measured[-1]["now"]), "columns": columns, "objects": objects}
    VECTORS.write_text(json.dumps(found, separators=(",", ":")))


def without_age(resource: Resource, cells: list[Any]) -> list[Any]:
    """Between two requests an object grows older."""
    columns = printer(resource).columns
    return [cell for column, cell in zip(columns, cells, strict=True) if column.name != "Age"]


PATHS = {
    "arms": ("integer", "number", "string", "boolean"),
    "weight": ("integer", "number", "string"),
    "on": ("boolean", "string", "integer"),
    "since": ("date", "string"),
    "text": ("string", "integer", "date"),
    "map": ("string", "integer"),
    "map.c\\.d": ("string",),
    "list[*].name": ("string",),
    "list[1].name": ("string",),
    'list[?(@.name=="b")].n': ("integer", "string"),
    "absent": ("string", "integer", "date", "boolean"),
}
ROBOTS: dict[str, Document] = {
    "full": {
        "arms": 3,
        "weight": 2.5,
        "on": True,
        "since": "2023-05-01T00:00:00Z",
        "text": "hello",
        "map": {"b": 1, "a": "x", "c.d": "y"},
        "list": [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
    },
    "empty": {},
    "odd": {"arms": None, "weight": 0, "on": False, "since": None, "text": "12", "list": []},
}


@pytest.mark.spec("KA-5")
async def test_a_custom_resource_has_the_columns_of_its_definition(server: Server) -> None:
    columns = [
        {"name": f"{path} {type_}", "type": type_, "jsonPath": f".spec.{path}", "priority": priority}
        for path, types in PATHS.items()
        for priority, type_ in enumerate(types)
    ]
    kind = Kind("Robot", "robots", ("example.com/v1",), namespaced=False)
    await define(server, kind, columns)
    for name, spec in ROBOTS.items():
        robot = {"apiVersion": "example.com/v1", "kind": "Robot", "metadata": {"name": name}, "spec": spec}
        assert (await server.ask("/apis/example.com/v1/robots", method="POST", body=robot)).code == 201
        theirs = await server.ask(f"/apis/example.com/v1/robots/{name}", TABLE)
        resource = Resource(kind, "example.com/v1")
        ours = table(resource, [robot], now=theirs.date, additional_columns=columns)
        assert ours["rows"][0]["cells"] == theirs.document["rows"][0]["cells"]
        shown = (ours["columnDefinitions"], theirs.document["columnDefinitions"])
        mine, other = ([[column[key] for key in COLUMN] for column in definitions] for definitions in shown)
        assert mine == other


async def define(server: Server, kind: Kind, columns: list[Document]) -> None:
    """Make the definition, and wait until the kind is served."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": open_schema}}
    spec = {"group": "example.com", "scope": "Cluster", "names": {"plural": kind.plural, "kind": kind.kind}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.key},
        "spec": {**spec, "versions": [{**version, "additionalPrinterColumns": columns}]},
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await server.ask(path, method="POST", body=definition)).code == 201
    waited = await server.plane.kubectl("wait", "--for=condition=Established", f"crd/{kind.key}", "--timeout=60s")
    assert waited.returncode == 0, waited.stderr
    for _ in range(300):  # established is not served yet
        if (await server.ask(f"/apis/example.com/v1/{kind.plural}")).code == 200:
            return
        await sleep(0.1)
    pytest.fail(f"{kind.key} is defined, but not served")


@pytest.mark.spec("KA-5")
async def test_a_watch_as_table_has_the_columns_once_and_a_row_in_its_bookmark(server: Server) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=1"
    answer = await server.ask(f"/api/v1/namespaces?{query}", TABLE)
    events = [json.loads(line) for line in answer.body.splitlines()]
    tables = [event["object"] for event in events]
    assert [bool(shown["columnDefinitions"]) for shown in tables] == [True] + [False] * (len(tables) - 1)
    assert [len(shown["rows"]) for shown in tables] == [1] * len(tables)
    ends = [event["object"]["rows"][0]["object"]["metadata"] for event in events if event["type"] == "BOOKMARK"]
    assert ends[0]["annotations"] == {"k8s.io/initial-events-end": "true"}


def _negotiated_otherwise(accept: str, watch: bool) -> str:
    """Why we choose another form than the reference; empty if we do not."""
    if "APPLICATION" in accept:
        return "media types do not depend on case (RFC 9110)"
    if accept.startswith("*/*;q="):
        return "the larger weight wins; the reference prefers a name that follows a wildcard"
    if watch and "MetadataList" in accept:
        return "a stream has no lists: 406 and not an empty stream"
    if watch and "application/yaml" in accept and "application/json" in accept:
        return "YAML cannot be streamed, but JSON is accepted too: no reason for a 406"
    return ""


ACCEPT = [
    "",
    "*/*",
    "application/*",
    "text/html",
    "application/json",
    "application/yaml",
    "application/cbor",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf, */*",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;q=0.5,application/yaml",
    "application/json;q=0.5,application/yaml;q=0.9",
    "application/json;q=0",
    "application/json;q=x",
    "application/yaml;q=0.05,*/*;q=0.1",
    TABLE,
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "application/json;as=Table;v=v2;g=meta.k8s.io",
    "application/json;as=Table;v=v1",
    "application/json;as=Table;g=meta.k8s.io",
    "application/json;as=Foo;v=v1;g=meta.k8s.io",
    "application/json;as=Foo;v=v1;g=meta.k8s.io,application/json",
    "application/json ; as=Table ; v=v1 ; g=meta.k8s.io",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1",
    'application/json;as="Table";v="v1";g="meta.k8s.io"',
    "application/json;as=table;v=v1;g=meta.k8s.io",
    "application/json;charset=utf-8",
    "application/json;",
    "application/json,",
    "garbage",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
    AGGREGATED,
    "APPLICATION/JSON",
    "*/*;q=0.1,application/yaml;q=0.05",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/yaml,application/json",
]


@pytest.mark.spec("KA-2.1")
@pytest.mark.parametrize("watch", [False, True], ids=["object", "watch"])
async def test_the_same_form_is_chosen_for_an_accept_header(server: Server, watch: bool) -> None:
    stream = "?watch=1&resourceVersion=0&timeoutSeconds=1&fieldSelector=metadata.name%3Ddefault"
    path = f"/api/v1/namespaces{stream}" if watch else "/api/v1/namespaces/default"
    different = set()
    for accept in ACCEPT:
        answer = await server.ask(path, accept)
        form = negotiate(accept, watch=watch)
        if form is not None and form.refusal(is_list=watch and form.as_kind != "PartialObjectMetadata"):
            form = None
        if not _agree(answer, form, watch):
            different.add(accept)
    assert different == {accept for accept in ACCEPT if _negotiated_otherwise(accept, watch)}


def _agree(answer: Answer, form: Format | None, watch: bool) -> bool:
    if form is None:
        return answer.code == 406
    if answer.code != 200 or answer.content_type != form.content_type(watch=watch):
        return False
    return form.as_kind.encode() in answer.body and (not form.version or form.version.encode() in answer.body)


@pytest.mark.spec("KA-2.1")
@pytest.mark.parametrize("path", ["/apis", "/apis/apps/v1"])
async def test_the_same_form_is_chosen_for_discovery(server: Server, path: str) -> None:
    different = set()
    for accept in [*ACCEPT, AGGREGATED.replace("json", "yaml")]:
        answer = await server.ask(path, accept)
        form = negotiate_discovery(accept, aggregated=path == "/apis")
        if (form.content_type() if form else 406) != (answer.content_type if answer.code == 200 else answer.code):
            different.add(accept)
    wildcard = {"application/*"} if path == "/apis" else set()  # the reference takes it there, but nowhere else
    assert different == {accept for accept in ACCEPT if _negotiated_otherwise(accept, False)} | wildcard


# What their schemas have and ours do not, by key, and why.
SCHEMAS_OTHERWISE = {
    "enum": "the schema table has no enumerations; validation has",
    "x-kubernetes-unions": "not in the schema table; no client reads it",
    "default": "only some of the defaults are in the schema table",
    "x-kubernetes-list-type": "missing from the schema table for ephemeral containers",
    "x-kubernetes-list-map-keys": "the same",
    "x-kubernetes-group-version-kind": "DeleteOptions are listed in every group there",
}


@pytest.mark.spec("KA-1.5")
async def test_openapi_has_the_same_schemas(server: Server) -> None:
    ours, differences, compared = OpenAPIV3(CATALOGUE), Counter[str](), 0
    for api_version in discovery.group_versions(CATALOGUE):
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        rendered, answer = ours.document(path), await server.ask(f"/openapi/v3/{path}")
        assert rendered is not None
        theirs = answer.document["components"]["schemas"]
        for name, schema in json.loads(rendered.body)["components"]["schemas"].items():
            differences.update(_differences(plain(schema), plain(theirs[name])))
            compared += 1
    assert compared > 700
    assert set(differences) == set(SCHEMAS_OTHERWISE)


def plain(schema: Any) -> Any:
    """Without descriptions, without defaults that say nothing, and references without their wrapping."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if list(schema) == ["allOf"]:
        return plain(schema["allOf"][0])
    kept = {key: value for key, value in schema.items() if not _is_noise(key, value)}
    if kept != schema:
        return plain(kept)
    return {key: plain(value) for key, value in kept.items()}


def _is_noise(key: str, value: Any) -> bool:
    return (key == "description" and isinstance(value, str)) or (key == "default" and value in ("", 0, False, {}, []))


def _differences(ours: Document, theirs: Document) -> list[str]:
    """The keys in which two schemas differ, at any depth."""
    found = []
    for key in ours.keys() | theirs.keys():
        mine, other = ours.get(key), theirs.get(key)
        if isinstance(mine, dict) and isinstance(other, dict):
            found += _differences(mine, other)
        elif mine != other:
            found.append(key)
    return found


# Parameters that their operations have and ours do not.
PARAMETERS_OTHERWISE = {"shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential"}
# Their document says Status, but what they send is the namespace.
ANSWERS_OTHERWISE = {"deleteCoreV1Namespace"}


@pytest.mark.spec("KA-1.5")
async def test_openapi_has_the_same_operations(server: Server) -> None:
    ours, compared = OpenAPIV3(CATALOGUE), 0
    for api_version in discovery.group_versions(CATALOGUE):
        path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
        rendered, answer = ours.document(path), await server.ask(f"/openapi/v3/{path}")
        assert rendered is not None
        theirs = answer.document["paths"]
        for url, item in json.loads(rendered.body)["paths"].items():
            for method in item.keys() - {"parameters"}:
                mine, other = item[method], theirs[url][method]
                assert outline(mine) == outline(other)
                assert parameters(theirs[url], method) - parameters(item, method) <= PARAMETERS_OTHERWISE
                assert parameters(item, method) <= parameters(theirs[url], method)
                compared += 1
    assert compared > 300


def outline(operation: Document) -> Document:
    answers = {code: reply for code, reply in operation["responses"].items() if code != "401"}
    contents = {code: reply["content"]["application/json"] for code, reply in answers.items()}
    if operation["operationId"] in ANSWERS_OTHERWISE:
        contents = {}
    facts = ("operationId", "x-kubernetes-action", "x-kubernetes-group-version-kind")
    body = operation.get("requestBody", {}).get("content")
    return {"body": body, "contents": contents, **{fact: operation[fact] for fact in facts}}


def parameters(item: Document, method: str) -> set[str]:
    return {parameter["name"] for parameter in [*item.get("parameters", ()), *item[method].get("parameters", ())]}
