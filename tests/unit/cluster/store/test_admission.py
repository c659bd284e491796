from pathlib import Path

import pytest

from devlet.cluster.client import MergePatch, WriteOptions
from devlet.cluster.store.store import Store, open_store
from devlet.errors import Cause, Forbidden, InvalidObject, NotFound
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import CONFIG_MAPS, NAMESPACES, PODS, PRIORITY_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.support.cluster_contract.specimens import CLAIMS_V1BETA1, claim, config_map, named, pod, resource_slice

pytestmark = pytest.mark.anyio


async def test_the_namespace_must_exist_and_live(store: Store) -> None:
    with pytest.raises(NotFound, match='namespaces "absent" not found'):
        await store.create(CONFIG_MAPS, config_map("a"), "absent")
    await store.create(NAMESPACES, named("ending"))
    await store.create(CONFIG_MAPS, config_map("old"), "ending")
    await store.delete(NAMESPACES, "ending")
    with pytest.raises(Forbidden, match="because it is being terminated") as refused:
        await store.create(CONFIG_MAPS, config_map("a"), "ending")
    assert [cause.reason for cause in refused.value.causes] == ["NamespaceTerminating"]
    patched = await store.patch(CONFIG_MAPS, "old", MergePatch({"data": {"k": "w"}}), "ending")
    assert patched["data"] == {"k": "w"}, "what is there may still change"


async def test_a_pods_priority_comes_from_its_class(store: Store) -> None:
    await store.create(PRIORITY_CLASSES, {**named("high"), "value": 1000})
    high = await store.create(PODS, pod("high", spec={"priorityClassName": "high"}), "default")
    low = await store.create(PODS, pod("low"), "default")
    assert (high["spec"]["priority"], low["spec"]["priority"]) == (1000, 0)
    with pytest.raises(Forbidden, match="no PriorityClass with name nope was found"):
        await store.create(PODS, pod("none", spec={"priorityClassName": "nope"}), "default")


async def test_a_refusal_names_fields_as_the_client_wrote_them(store: Store) -> None:
    request = {"name": "r", "deviceClassName": "Not A Class"}
    older = {**named("c"), "spec": {"devices": {"requests": [request]}}}
    with pytest.raises(InvalidObject) as refused:
        await store.create(CLAIMS_V1BETA1, older, "default")
    assert refused.value.kind == "ResourceClaim.resource.k8s.io"
    assert {cause.field for cause in refused.value.causes} == {"spec.devices.requests[0].deviceClassName"}
    document = claim("c")
    document["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "Not A Class"
    with pytest.raises(InvalidObject) as refused:
        await store.create(RESOURCE_CLAIMS, document, "default")
    assert {c.field for c in refused.value.causes} == {"spec.devices.requests[0].exactly.deviceClassName"}


async def test_admin_access_is_for_namespaces_that_allow_it(store: Store) -> None:
    document = claim("c")
    document["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    with pytest.raises((Forbidden, InvalidObject)):
        await store.create(RESOURCE_CLAIMS, document, "default")
    label = {"resource.kubernetes.io/admin-access": "true"}
    await store.create(NAMESPACES, named("admins", labels=label))
    assert (await store.create(RESOURCE_CLAIMS, document, "admins"))["metadata"]["namespace"] == "admins"


async def test_the_rules_are_an_argument_of_open_store(path: Path) -> None:
    def refuse(expression: str, _stored: bool) -> list[Cause]:
        return [Cause("FieldValueInvalid", f"Invalid value: {expression}: compilation failed", "")]

    document = claim("c")
    document["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": "nonsense"}}]
    async with open_store(path, rules=Rules(check_selector=refuse)) as store:
        with pytest.raises(InvalidObject, match="compilation failed"):
            await store.create(RESOURCE_CLAIMS, document, "default")
        assert not (await store.list(RESOURCE_CLAIMS)).items


async def test_warnings_reach_the_client(store: Store) -> None:
    said: list[str] = []
    document = resource_slice("s", driver="Upper.example.com")
    await store.create(RESOURCE_SLICES, document, options=WriteOptions(warn=said.append))
    assert [text.split(":")[0] for text in said] == ["spec.driver"]
