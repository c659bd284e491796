"""Objects in few words."""

from pathlib import Path

import pytest

from devlet.cluster.store.store import open_store
from devlet.objects import kinds
from tests.support.workloads import DRIVER, claim, device_class, node, pod, slice_of, template, wish


@pytest.mark.anyio
async def test_everything_is_accepted_by_an_api(root: Path) -> None:
    made = [
        (kinds.NODES, node("n1", labels={"zone": "a"}, cpu="8", ephemeral_storage="1Gi")),
        (kinds.DEVICE_CLASSES, device_class(extended="example.com/gpu")),
        (kinds.RESOURCE_SLICES, slice_of("n1", 2)),
        (kinds.RESOURCE_SLICES, slice_of("n1", [{"name": "a"}], pool="other", generation=3)),
        (kinds.RESOURCE_CLAIM_TEMPLATES, template("one", wish(select="true"), wish("more", count=2))),
        (kinds.RESOURCE_CLAIMS, claim("c", wish(allocationMode="All"))),
        (kinds.PODS, pod("train", template="one", requests={"cpu": "1"}, annotations={"a": "b"}, priority=0)),
        (kinds.PODS, pod("share", claim="c")),
    ]
    async with open_store(root / "cluster.db") as store:
        for resource, document in made:
            await store.create(resource, document, document["metadata"].get("namespace", ""))


def test_a_node_has_what_is_said_besides_the_usual() -> None:
    amounts = node("n1", cpu="8", ephemeral_storage="1Gi")["status"]["allocatable"]
    assert amounts == {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "1Gi"}


def test_a_claim_that_says_nothing_wants_one_device() -> None:
    assert claim("c")["spec"]["devices"]["requests"] == [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]


def test_a_wish_has_no_more_than_was_asked_for() -> None:
    found = wish("r", count=3, select="true", tolerations=[])["exactly"]
    assert found == {
        "deviceClassName": DRIVER,
        "count": 3,
        "selectors": [{"cel": {"expression": "true"}}],
        "tolerations": [],
    }


def test_the_container_of_a_pod_uses_the_claim() -> None:
    spec = pod("train", claim="c", nodeName="n1")["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "c"}] and spec["nodeName"] == "n1"
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu"}]
    assert "resources" not in pod("plain")["spec"]["containers"][0]
