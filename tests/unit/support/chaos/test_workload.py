from itertools import islice
from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.objects.kinds import PODS
from tests.support.chaos.workload import CLASS_RESOURCE, NAMESPACE, PLUGIN_RESOURCE, Guest, Workload


def guests(seed: int, count: int, **options: float) -> list[Guest]:
    workload = Workload(seed, nodes=("n1", "n2"), forced=options.get("forced", 0.0))
    return list(islice(iter(workload.next, None), count))


def test_the_same_seed_gives_the_same_pods() -> None:
    assert guests(7, 50) == guests(7, 50)
    assert guests(7, 50) != guests(8, 50)


def test_pods_of_every_kind_come() -> None:
    specs = [each.document["spec"] for each in guests(1, 200)]
    sources = {source for spec in specs for entry in spec["resourceClaims"] for source in entry.values()}
    assert {"one", "two", "two-requests", "low", "high", "choice", "shared-0", "shared-1", "shared-2"} <= sources
    assert {"too-many", "contradictory", "no-such-class", "no-such-claim", "no-such-template"} <= sources
    limits = [spec["containers"][0]["resources"].get("limits", {}) for spec in specs]
    assert {name for each in limits for name in each} == {PLUGIN_RESOURCE, CLASS_RESOURCE}
    assert {spec.get("nodeName") for spec in specs} == {None, "n1", "n2"}
    assert any("nodeSelector" in spec for spec in specs)
    annotations = [each.document["metadata"]["annotations"] for each in guests(1, 200)]
    assert {"devlet.dev/run-for" in each for each in annotations} == {True, False}


def test_pods_ask_for_the_scheduler_that_is_to_place_them() -> None:
    assert Workload(1, scheduler_name="devlet").next().document["spec"]["schedulerName"] == "devlet"
    assert "schedulerName" not in Workload(1).next().document["spec"]


def test_without_nodes_no_pod_is_bound() -> None:
    workload = Workload(1)
    assert not [each for each in (workload.next() for _ in range(100)) if "nodeName" in each.document["spec"]]


def test_only_force_removes_at_once() -> None:
    assert not any(each.forced for each in guests(1, 50))
    assert {each.forced for each in guests(1, 50, forced=0.5)} == {True, False}


@pytest.mark.anyio
async def test_an_api_takes_all_of_it(root: Path) -> None:
    async with open_store(root / "cluster.db") as store:
        for resource, document in Workload(1).objects():
            await store.create(resource, document, document["metadata"].get("namespace", ""))
        for guest in guests(1, 60):
            await store.create(PODS, guest.document, NAMESPACE)
        found = (await store.list(PODS, NAMESPACE)).items
        assert len(found) == 60
        limits = [each["spec"]["containers"][0]["resources"].get("limits", {}) for each in found]
        assert any(PLUGIN_RESOURCE in each for each in limits)
