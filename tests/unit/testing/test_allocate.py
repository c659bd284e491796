from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from devlet.cluster.store.store import Store, open_store
from devlet.errors import InvalidInput, NotFound
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.testing.allocate import allocate, main

pytestmark = pytest.mark.anyio

CLAIM = {
    "metadata": {"name": "train"},
    "spec": {"devices": {"requests": [{"name": n, "exactly": {"deviceClassName": "gpu"}} for n in ("gpu", "nic")]}},
}


@pytest.fixture
async def store(root: Path) -> AsyncIterator[Store]:
    async with open_store(root / "store") as opened:
        await opened.create(RESOURCE_CLAIMS, CLAIM, "default")
        yield opened


def results(claim: Document) -> list[tuple[str, ...]]:
    found = claim["status"]["allocation"]["devices"]["results"]
    return [(each["request"], each["driver"], each["pool"], each["device"]) for each in found]


async def test_devices_are_for_the_first_request_or_for_the_one_that_is_named(store: Store) -> None:
    claim = await allocate(store, "train", ["gpu.example.com/a/b/gpu-0", "nic=nic.example.com/n1/eth0"])
    expected = [("gpu", "gpu.example.com", "a/b", "gpu-0"), ("nic", "nic.example.com", "n1", "eth0")]
    assert results(claim) == expected and not claim["status"].get("reservedFor")


async def test_the_claim_is_reserved_for_the_pods(store: Store) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    made = await store.create(PODS, pod, "default")
    claim = await allocate(store, "train", ["gpu.example.com/n1/gpu-0"], ["p"])
    assert [each["uid"] for each in claim["status"]["reservedFor"]] == [made["metadata"]["uid"]]


@pytest.mark.parametrize("device", ["", "gpu.example.com", "gpu.example.com/gpu-0", "gpu=/n1/gpu-0", "d/p/"])
async def test_what_is_not_a_device_is_refused(store: Store, device: str) -> None:
    with pytest.raises(InvalidInput, match="expected \\[REQUEST=\\]DRIVER/POOL/DEVICE"):
        await allocate(store, "train", [device])


async def test_a_pod_that_does_not_exist_gets_nothing(store: Store) -> None:
    with pytest.raises(NotFound, match="nobody"):
        await allocate(store, "train", ["gpu.example.com/n1/gpu-0"], ["nobody"])


def test_without_a_devlet_the_command_says_what_it_did_not_find(root: Path) -> None:
    done = CliRunner().invoke(main, ["--root", str(root), "train", "--device", "d/p/x"])
    assert done.exit_code == 1 and str(root / "kubeconfig") in done.output
