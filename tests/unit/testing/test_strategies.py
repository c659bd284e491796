"""Whatever is drawn, the embedded API accepts; and what is left of it when a test fails is small."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from random import Random

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from devlet.alloc.admission import check_selector
from devlet.cluster.client import WriteOptions
from devlet.cluster.store.store import Store, open_store
from devlet.objects import kinds
from devlet.objects.documents import Document
from devlet.objects.kind_rules import Rules
from devlet.objects.kinds import BUILT_IN, Resource
from devlet.testing import strategies

pytestmark = pytest.mark.anyio

NOTHING = WriteOptions(dry_run=True)
SHRINK = settings(phases=[Phase.generate, Phase.shrink], database=None, deadline=None, max_examples=1000)


def smallest(strategy: SearchStrategy[Document], holds: Callable[[Document], bool]) -> Document:
    return find(strategy, holds, settings=SHRINK, random=Random(1))


@pytest.fixture(scope="module")
async def store(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Store]:
    """Nothing is written to it."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.db"
    async with open_store(path, kinds=BUILT_IN, rules=Rules(check_selector=check_selector)) as store:
        yield store


async def accepted(store: Store, kind: Resource, document: Document) -> Document:
    """As it would be stored; InvalidObject if the API refuses it."""
    return await store.create(kind, document, document["metadata"].get("namespace", ""), options=NOTHING)


@given(document=strategies.resource_slices())
async def test_every_slice_is_accepted(store: Store, document: Document) -> None:
    made = await accepted(store, kinds.RESOURCE_SLICES, document)
    assert made["spec"]["pool"] == document["spec"]["pool"]


@given(pool=strategies.pools())
async def test_every_pool_is_accepted_and_complete(store: Store, pool: list[Document]) -> None:
    for document in pool:
        await accepted(store, kinds.RESOURCE_SLICES, document)
        assert document["spec"]["pool"]["resourceSliceCount"] == len(pool)
    names = [device["name"] for document in pool for device in document["spec"].get("devices", ())]
    assert len(names) == len(set(names))
    assert len({document["metadata"]["name"] for document in pool}) == len(pool)


@given(document=strategies.resource_claims())
async def test_every_claim_is_accepted(store: Store, document: Document) -> None:
    made = await accepted(store, kinds.RESOURCE_CLAIMS, document)
    assert len(made["spec"]["devices"]["requests"]) == len(document["spec"]["devices"]["requests"])


@given(document=strategies.templates())
async def test_every_template_is_accepted(store: Store, document: Document) -> None:
    await accepted(store, kinds.RESOURCE_CLAIM_TEMPLATES, document)


@given(document=strategies.device_classes())
async def test_every_class_is_accepted(store: Store, document: Document) -> None:
    await accepted(store, kinds.DEVICE_CLASSES, document)


@given(document=strategies.pods())
async def test_every_pod_is_accepted(store: Store, document: Document) -> None:
    made = await accepted(store, kinds.PODS, document)
    assert made["status"]["phase"] == "Pending"


@given(document=strategies.nodes())
async def test_every_node_is_accepted(store: Store, document: Document) -> None:
    made = await accepted(store, kinds.NODES, document)
    assert made["metadata"]["name"] == document["metadata"]["name"]


@given(document=strategies.resource_slices(driver="gpu.example.com", node=st.sampled_from(("n1", "n2"))))
def test_names_can_be_given_as_texts_and_as_strategies(document: Document) -> None:
    assert document["spec"]["driver"] == "gpu.example.com"
    assert document["spec"]["nodeName"] in ("n1", "n2")


@given(document=strategies.pods(claims=["a"], templates=[], resources=["vendor.com/gpu"]))
def test_a_pod_uses_what_it_may_choose_from(document: Document) -> None:
    entries = document["spec"].get("resourceClaims", [])
    assert {entry["resourceClaimName"] for entry in entries} <= {"a"}
    limits = [each.get("resources", {}).get("limits", {}) for each in document["spec"]["containers"]]
    assert {name for each in limits for name in each} <= {"vendor.com/gpu", "cpu", "memory"}


def test_the_smallest_objects_read_well() -> None:
    small = smallest(strategies.resource_slices(), lambda document: bool(document["spec"].get("devices")))
    assert small["spec"] == {
        "driver": "gpu.example.com",
        "pool": {"name": "a", "generation": 0, "resourceSliceCount": 1},
        "nodeName": "a",
        "devices": [{"name": "a"}],
    }
    pod = smallest(strategies.pods(), lambda document: "resourceClaims" in document["spec"])
    assert pod["spec"]["resourceClaims"] == [{"name": "a", "resourceClaimName": "a"}]
    claim = smallest(strategies.resource_claims(), lambda document: True)
    assert claim["spec"]["devices"] == {"requests": [{"name": "a", "exactly": {"deviceClassName": "a"}}]}


def test_what_matters_to_a_failure_is_what_is_left() -> None:
    def has_list(document: Document) -> bool:
        devices = document["spec"].get("devices", ())
        return any("strings" in value for each in devices for value in each.get("attributes", {}).values())

    small = smallest(strategies.resource_slices(), has_list)
    (device,) = small["spec"]["devices"]
    assert device.keys() == {"name", "attributes"}
    assert {"strings": [""]} in device["attributes"].values()


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['hypothesis'] = None; import devlet.testing.strategies"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: devlet.testing.strategies needs hypothesis: run `pip install hypothesis`"
    )
