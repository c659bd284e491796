"""Large objects are processed beside the event loop, with the same answers."""

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from devlet.kit.heavy_work import HeavyWork
from devlet.serve.kube_api import bodies
from devlet.serve.kube_api.calls import MAX_WARNINGS

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
JSON = {"Content-Type": bodies.JSON}
LARGE = "x" * (bodies.INLINE + 1)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The users for whom a thread computed something, in order."""
    seen: list[str] = []
    real = HeavyWork.run

    async def noted(self: HeavyWork, owner: str, work: Any) -> Any:
        seen.append(owner)
        return await real(self, owner, work)

    monkeypatch.setattr(HeavyWork, "run", noted)
    return seen


async def test_only_large_objects_go_to_a_thread(served: "Served", owners: list[str]) -> None:
    code, small = await served.request("POST", MAPS, json=config_map("small", k="v"))
    assert (code, owners) == (201, [])
    code, large = await served.request("POST", MAPS, json=config_map("large", k=LARGE))
    assert code == 201 and len(owners) == 2  # to decode it, and to prepare the write
    assert large["data"] == {"k": LARGE} and small["data"] == {"k": "v"}


async def test_a_small_patch_of_a_large_object_is_carried_out_in_a_thread(served: "Served", owners: list[str]) -> None:
    await served.request("POST", MAPS, json=config_map("large", k=LARGE))
    owners.clear()
    headers = {"Content-Type": bodies.MERGE_PATCH}
    code, patched = await served.request("PATCH", f"{MAPS}/large", data=b'{"data":{"l":"1"}}', headers=headers)
    assert (code, patched["data"], len(owners)) == (200, {"k": LARGE, "l": "1"}, 1)


async def test_expressions_are_compiled_in_a_thread(served: "Served", owners: list[str]) -> None:
    selectors = [{"cel": {"expression": f'device.driver == "{i}.example.com"'}} for i in range(20)]
    document = {"metadata": {"name": "c"}, "spec": {"selectors": selectors}}
    assert (await served.request("POST", CLASSES, json=document))[0] == 201
    assert len(owners) == 1


async def test_large_answers_in_yaml_and_as_tables_are_written_in_a_thread(served: "Served", owners: list[str]) -> None:
    await served.request("POST", MAPS, json=config_map("large", k=LARGE))
    owners.clear()
    code, text = await served.request("GET", f"{MAPS}/large", headers={"Accept": bodies.YAML})
    assert code == 200 and LARGE in text and len(owners) == 1
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    code, table = await served.request("GET", MAPS, headers={"Accept": accept})
    assert (code, table["kind"], len(owners)) == (200, "Table", 2)


async def test_the_refusal_of_a_large_object_names_the_error(served: "Served") -> None:
    code, status = await served.request("POST", MAPS, json=config_map("Not a name", k=LARGE))
    assert (code, status["reason"]) == (422, "Invalid")
    await served.request("POST", MAPS, json=config_map("a", k=LARGE))
    code, status = await served.request("POST", MAPS, json=config_map("a", k=LARGE))
    assert (code, status["message"]) == (409, 'configmaps "a" already exists')
    code, status = await served.request("POST", MAPS, data=b'{"data": "' + LARGE.encode(), headers=JSON)
    assert (code, status["reason"]) == (400, "BadRequest")


async def test_bodies_of_requests_that_are_not_stored_have_a_smaller_limit(served: "Served") -> None:
    review = {"spec": {"user": "a", "groups": ["x" * bodies.MAX_UNSTORED_BODY]}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    code, status = await served.request("POST", path, json=review)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["x" * bodies.MAX_UNSTORED_BODY]}
    code, status = await served.request("DELETE", f"{MAPS}/none", data=msgspec.json.encode(options), headers=JSON)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_the_number_of_warnings_is_limited(served: "Served") -> None:
    unknown = {f"unknown{i}": 1 for i in range(2 * MAX_WARNINGS)}
    code, _ = await served.request("POST", f"{MAPS}?fieldValidation=Warn", json={**config_map("a"), **unknown})
    assert code == 201
    assert len(served.headers.getall("Warning")) == MAX_WARNINGS
