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


async def test_definitions_say_how_their_kind_is_shown(served: "Served") -> None:
    definitions = Definitions(served.store)
    resource = Resource(kind_of(definition()), "example.com/v1")
    assert definitions.columns(resource) is None
    await served.store.create(Resource(DEFINITION, DEFINITION.storage_version), definition())
    assert definitions.columns(resource) == COLUMNS
    assert definitions.schema("example.com/v1", "Widget") == SCHEMA
    assert definitions.schema("example.com/v1", "Gadget") is None
    assert definitions.columns(PODS) is None
