"""Has a node with claims on a small disk that gets full, and says what happened, as JSON. Run by test_claim_limits.py,
with a tmpfs of its own at ROOT and what must not get full in the directory BESIDE."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from devlet.cluster.store.store import open_store
from devlet.testing.fake_dra_driver import PREPARE, UNPREPARE, FakeDraDriver
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.waiting import until
from tests.support.claim_node import ClaimNode, claim_pod, given
from tests.support.small_disk import fill


async def story(root: Path, beside: Path) -> dict[str, Any]:
    told: dict[str, Any] = {}
    async with open_store(beside / "cluster.db"):  # the API has a disk of its own
        (root / "cluster.db").symlink_to(beside / "cluster.db")
    (root / "up.log").symlink_to(beside / "up.log")
    (beside / "up.log").touch()
    async with (
        ClaimNode(root, f"cdiRoot: {beside}/cdi\n") as node,  # what a driver removes would be room again
        FakeDraDriver(root, "gpu.example.com", cdi_directory=beside / "cdi") as gpu,
        FakeDraDriver(root, "nic.example.com", cdi_directory=beside / "cdi") as nic,
    ):
        await node.until_connected(gpu, nic)
        running = await node.run_pod("before", nic.name)
        await node.run_pod("leaves", nic.name)
        fill(root / "ballast")
        await node.add_claim("during", given(gpu.name))
        await node.add_pod(claim_pod("during", "during"))
        told["prepare"] = await node.until_failed("during", "")
        told["asked"] = len(gpu.asked(PREPARE))
        await node.ask_to_delete("leaves")
        told["unprepare"] = await node.until_failed("leaves", "", "FailedUnprepareDynamicResources")
        told["stays"] = await node.pod("leaves") is not None
        told["unchanged"] = await node.pod("before") == running
        told["written"] = sorted(node.claim_checkpoint())
        (root / "ballast").unlink()
        await node.until_phase("during", "Running")
        await node.until_gone("leaves")
        await until(lambda: entries(node), lambda found: found == {"before", "during"})
        told["prepared"] = [len(each.prepared) for each in (gpu, nic)]
        told["unprepared"] = len(nic.asked(UNPREPARE))
        told["traceback"] = "Traceback" in node.log
    return told


async def entries(node: ClaimNode) -> set[str]:
    return set(node.claim_checkpoint())


if __name__ == "__main__":
    found = anyio.run(story, Path(sys.argv[1]), Path(sys.argv[2]), backend_options={"loop_factory": GrpcLoop})
    print(json.dumps(found))  # noqa: T201
