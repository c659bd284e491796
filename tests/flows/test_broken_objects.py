"""A real daemon on a root whose database contains objects that no release should have accepted."""

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devlet.cluster.store.store import open_store
from devlet.daemon.root import DATABASE
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.documents import copy
from devlet.objects.kinds import BUILT_IN, PODS, Kind, Resource
from devlet.testing.waiting import until
from tests.flows.test_api_bad_input import Api, running
from tests.fuzz.specimens import SPECIMENS

pytestmark = pytest.mark.anyio

Keys = list[str | int]
DEFINED = Resource(DEFINITION, DEFINITION.storage_version)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(plural: str, **version: Any) -> dict[str, Any]:
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [{"name": "v1", "served": True, "storage": True, **version}],
        },
    }


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dv") as root:
        yield Path(root)


async def damage(root: Path, changes: list[tuple[Resource, str, Keys, object]]) -> None:
    """Write values into stored objects, past all checks."""
    async with open_store(root / DATABASE, kinds=(*BUILT_IN, DEFINITION)) as store:
        for resource, name, path, value in changes:
            key = ("default" if resource.namespaced else "", name)
            document = await store.get(resource, name, key[0])
            part: Any = document
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = value
            await store._ledger.write(resource.kind, key, document).durable()


def test_a_definition_whose_subresources_are_not_an_object_is_refused(root: Path) -> None:
    with running(root) as api:
        answer = api.call("POST", DEFINITIONS, definition("widgets", subresources=True))
        assert (answer.code, answer.document["reason"]) == (400, "BadRequest")
        assert "spec.versions[0].subresources" in answer.document["message"]
        assert api.call("POST", DEFINITIONS, definition("widgets", subresources={"status": {}})).code == 201


async def test_a_root_with_broken_objects_starts_and_lists_them(root: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with running(root) as api:
        for plural in ("widgets", "gadgets", "things"):
            assert api.call("POST", DEFINITIONS, definition(plural, schema=schema)).code == 201
        assert api.call("POST", "/api/v1/namespaces/default/pods", pod).code == 201
        await until(partial(served, api), lambda found: {"widgets", "gadgets", "things"} <= found)
    version: Keys = ["spec", "versions", 0]
    changes: list[tuple[Resource, str, Keys, object]] = [
        (DEFINED, "widgets.example.com", [*version, "subresources"], True),
        (DEFINED, "gadgets.example.com", [*version, "schema", "openAPIV3Schema", "properties"], {"a": 5}),
        (PODS, "p", ["spec", "containers"], 5),
    ]
    await damage(root, changes)
    with running(root) as api:
        assert await served(api) >= {"gadgets", "things"}
        assert "widgets" not in await served(api)
        for path in ("/openapi/v2", "/openapi/v3", "/openapi/v3/apis/example.com/v1"):
            assert api.call("GET", path).code == 200
        schemas = api.call("GET", "/openapi/v3/apis/example.com/v1").document["components"]["schemas"]
        assert schemas["com.example.v1.Things"]["properties"]["size"] == {"type": "integer"}
        await until(partial(reported, api), lambda found: {"widgets.example.com", "p"} <= found)
        metrics = api.call("GET", "/metrics").body.decode()
        assert 'devlet_set_aside_objects{resource="pods",namespace="default",name="p"} 1' in metrics
        assert f'resource="{DEFINED.name}",namespace="",name="widgets.example.com"' in metrics
        assert api.call("DELETE", f"{DEFINITIONS}/widgets.example.com").code == 200
        assert api.call("GET", "/readyz").code == 200


WRONG: tuple[object, ...] = (None, True, 5, -1, 1.5, "x", [], {}, [None], [5], {"a": 5})
TOP: list[Keys] = [["spec"], ["status"], ["metadata", "annotations"], ["metadata", "creationTimestamp"]]
EACH = 15  # broken objects of a kind


def places(document: Any, above: Keys) -> Iterator[Keys]:
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for key, part in parts:
        yield [*above, key]
        if isinstance(part, dict | list):
            yield from places(part, [*above, key])


def broken(kind: Kind, random: Random) -> Iterator[dict[str, Any]]:
    """Objects of a kind, each with a value of the wrong type."""
    whole = SPECIMENS.get(kind.kind) or {"metadata": {}, "spec": {"a": 1}}
    if kind == PODS.kind:
        whole = whole | {"spec": whole["spec"] | {"nodeName": "n"}, "status": {"phase": "Running"}}
    every = [*TOP, *random.sample(found := list(places(whole, [])), min(EACH - len(TOP), len(found)))]
    for number, place in enumerate(every):
        made = copy(whole)
        part: Any = made
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = random.choice(WRONG)
        name = f"{kind.plural}{number}" if kind != DEFINITION else f"widgets{number}.example.com"
        if isinstance(made["metadata"], dict) and not {"labels", "name"} & set(place):
            namespace = {"namespace": "default"} if kind.namespaced else {}
            made["metadata"] = made["metadata"] | namespace | {"name": name, "uid": name}
            yield made | {"kind": kind.kind, "apiVersion": kind.storage_version}


async def test_objects_with_a_value_of_the_wrong_type_disturb_nothing_and_can_be_deleted(root: Path) -> None:
    random, objects = Random(17), list[tuple[Kind, str]]()
    async with open_store(root / DATABASE, kinds=(*BUILT_IN, DEFINITION)) as store:
        for kind in (*BUILT_IN, DEFINITION):
            for made in broken(kind, random):
                name, namespace = made["metadata"]["name"], made["metadata"].get("namespace", "")
                await store._ledger.write(kind, (namespace, name), made).durable()
                objects.append((kind, name))
    with running(root, "--node-name", "n") as api:
        pod = {"metadata": {"name": "sound"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        assert api.call("POST", "/api/v1/namespaces/default/pods", pod).code == 201
        await until(partial(phase, api, "sound"), "Running".__eq__)
        for kind in (*BUILT_IN, DEFINITION):
            for accept in ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"):
                assert api.call("GET", path(kind), Accept=accept).code in (200, 404), kind
        for kind, name in objects:
            where = f"{path(kind, 'default')}/{name}"
            patch = json.dumps({"metadata": {"annotations": {"a": "b"}}}).encode()
            assert api.call("PATCH", where, patch, "application/merge-patch+json").code < 500, where
            assert api.call("DELETE", where).code in (200, 404), where
        assert api.call("GET", "/readyz").code == 200


def path(kind: Kind, namespace: str = "") -> str:
    version = kind.storage_version
    below = f"/namespaces/{namespace}" if namespace and kind.namespaced else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{below}/{kind.plural}"


async def phase(api: Api, name: str) -> str:
    return str(api.call("GET", f"/api/v1/namespaces/default/pods/{name}").document["status"].get("phase"))


async def served(api: Api) -> set[str]:
    answer = api.call("GET", "/apis/example.com/v1")
    return {each["name"] for each in answer.document["resources"]} if answer.code == 200 else set()


async def reported(api: Api) -> set[str]:
    events = api.call("GET", "/api/v1/events").document["items"]
    return {each["involvedObject"]["name"] for each in events if each["reason"] == "CannotBeHandled"}
