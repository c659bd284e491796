from typing import TYPE_CHECKING, Any

import pytest

from devlet.objects.custom_resources import DEFINITION, kind_of
from devlet.objects.kinds import PODS, Resource
from devlet.serve.kube_api.definitions import Definitions

if TYPE_CHECKING:
    from tests.unit.serve.kube_api.conftest import Served

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object"}
COLUMNS = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]


def definition() -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{**version, "additionalPrinterColumns": COLUMNS}],
        },
    }


async def test_definitions_have_the_columns_of_their_kind(served: "Served") -> None:
    definitions = Definitions(served.store)
    resource = Resource(kind_of(definition()), "example.com/v1")
    assert definitions.columns(resource) is None
    await served.store.create(Resource(DEFINITION, DEFINITION.storage_version), definition())
    assert definitions.columns(resource) == COLUMNS
    assert definitions.schema("example.com/v1", "Widget") == SCHEMA
    assert definitions.schema("example.com/v1", "Gadget") is None
    assert definitions.columns(PODS) is None


async def test_a_schema_that_clients_cannot_read_is_omitted(served: "Served") -> None:
    resource = Resource(DEFINITION, DEFINITION.storage_version)
    whole = {"kind": "CustomResourceDefinition", "apiVersion": resource.api_version}
    bad = definition()
    bad["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": 5}}}}
    bad["spec"]["names"]["kind"] = "Bad"
    unreadable = {"metadata": {"name": "unreadable.example.com"}, "spec": True}
    for name, stored in (("bad.example.com", bad), ("a.example.com", unreadable)):
        await served.store._ledger.write(DEFINITION, ("", name), {**whole, **stored}).durable()
    await served.store.create(resource, definition())
    definitions = Definitions(served.store)
    assert definitions.schema("example.com/v1", "Bad") is None
    assert definitions.schema("example.com/v1", "Widget") == SCHEMA
