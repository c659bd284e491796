"""Very many claims, and a disk without room, on a whole node."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from devlet.cluster.store.store import Store, open_store
from devlet.node.claims.manager import CHECKPOINT
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS
from devlet.objects.types.claim import PreparedDevice
from devlet.state.claim_entry import ClaimEntry, Encoder
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver
from tests.support.claim_node import ClaimNode, claim_pod, given
from tests.support.small_disk import in_mount_namespace, on_small_disk

pytestmark = [pytest.mark.anyio, pytest.mark.long]

MANY = 300  # of one pod
VERY_MANY = 10_000  # on the node
PODS_BEFORE = 100


async def allocated(store: Store, name: str, driver: str, pod: Document) -> None:
    spec = {"devices": {"requests": [{"name": "req", "exactly": {"deviceClassName": "any"}}]}}
    document = await store.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec}, "default")
    users = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}]
    document["status"] = {"allocation": {"devices": {"results": [given(driver, f"dev-{name}")]}}, "reservedFor": users}
    await store.update(RESOURCE_CLAIMS, document, subresource="status")


async def test_a_pod_may_have_hundreds_of_claims(root: Path) -> None:
    """They are one call, and nobody else waits for it."""
    names = [f"claim-{number}" for number in range(MANY)]
    async with ClaimNode(root) as node, FakeDraDriver(root) as gpu, FakeDraDriver(root, "nic.example.com") as nic:
        await node.stop()
        async with open_store(root / "cluster.db") as store:
            pod = await store.create(PODS, claim_pod("many", *names), "default")
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(allocated, store, name, gpu.name, pod)
        await node.start()
        await node.bind("many")
        await node.run_pod("one", nic.name)
        await node.until_phase("many", "Running")
        assert [len(call.claims) for call in gpu.asked(PREPARE)] == [MANY]
        assert len(await node.environment("many")) == MANY
        await node.delete("many")
        assert [len(call.claims) for call in gpu.asked(UNPREPARE)] == [MANY]
        assert node.claim_checkpoint().keys() == {"one"}


def left_behind(driver: str) -> list[ClaimEntry]:
    devices = {driver: (PreparedDevice("pool", "dev-0", cdi_devices=(f"{driver}/claim=x",)),)}
    return [
        ClaimEntry(f"uid-{n}", f"claim-{n}", "default", frozenset({f"pod-{n % PODS_BEFORE}"}), devices)
        for n in range(VERY_MANY)
    ]


async def test_ten_thousand_claims_of_pods_that_are_gone_are_unprepared_and_hold_nobody_up(root: Path) -> None:
    (root / CHECKPOINT).write_bytes(Encoder().encode(left_behind("gpu.example.com")))
    async with (
        FakeDraDriver(root) as gpu,
        FakeDraDriver(root, "nic.example.com") as nic,
        ClaimNode(root) as node,
    ):
        await node.run_pod("train", nic.name)
        await node.until_forgotten(*(f"claim-{number}" for number in range(VERY_MANY)))
        asked = [claim.uid for call in gpu.asked(UNPREPARE) for claim in call.claims]
        assert len(asked) == len(set(asked)) == VERY_MANY
        assert len(gpu.asked(UNPREPARE)) == PODS_BEFORE
        assert node.claim_checkpoint().keys() == {"train"}


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_on_a_full_disk_claims_are_neither_prepared_nor_forgotten_until_there_is_room(root: Path) -> None:
    small, beside = root / "r", root / "b"
    for directory in (small, beside):
        directory.mkdir(mode=0o700)
    story = ["-m", "tests.flows.full_disk_claims"]
    command = on_small_disk(small, "1m", [sys.executable, *story, str(small), str(beside)])
    run = subprocess.run(command, capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode()
    full = f"{small / CHECKPOINT} cannot be written: No space left on device"
    assert json.loads(run.stdout) == {
        "prepare": f"Failed to prepare dynamic resources: {full}",
        "asked": 0,
        "unprepare": f"Failed to unprepare dynamic resources: {full}",
        "stays": True,
        "unchanged": True,
        "written": ["before", "leaves"],
        "prepared": [1, 1],
        "unprepared": 1,
        "traceback": False,
    }
