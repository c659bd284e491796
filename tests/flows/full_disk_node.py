"""Has a node on a small disk that gets full, and says what happened, as JSON. Run by test_device_bad_input.py, with a
tmpfs of its own at ROOT/device-plugins."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.node_process import NodeProcess, pod
from devlet.testing.waiting import until
from tests.support.small_disk import fill

GPU = "vendor.com/gpu"


async def story(root: Path) -> dict[str, Any]:
    told: dict[str, Any] = {}
    async with NodeProcess(root) as node, FakeDevicePlugin(node.plugins, GPU, 4, follow=True):
        await node.until_healthy(GPU, 4)
        await node.create(pod("before", {GPU: 1}))
        before = await node.until_phase("before", "Running")
        fill(node.plugins / "ballast")
        await node.create(pod("during", {GPU: 1}), pod("plain", {}))
        await node.until_phase("plain", "Running")
        event = await node.until_event("FailedAdmission")
        told["event"] = event["message"]
        told["phase"] = ((await node.pod("during")) or {})["status"].get("phase")
        told["written"] = [entry.pod for entry in node.checkpoint().entries or ()] == [before["metadata"]["uid"]]
        told["unchanged"] = await node.pod("before") == before
        told["health"] = [(await node.read(path))[0] for path in ("/healthz", "/readyz", "/livez")]
        told["reason"] = (await node.read("/healthz/checkpoints"))[1]
        (node.plugins / "ballast").unlink()
        await until(lambda: node.read("/healthz"), lambda answer: answer[0] == 200)
        await node.until_phase("during", "Running")
        told["events"] = len(await node.events("FailedAdmission"))
        told["held"] = sorted(await node.held())
        told["entries"] = len(node.checkpoint().entries or ())
        told["names"] = sorted(path.name for path in node.plugins.iterdir())
    return told


if __name__ == "__main__":
    found = anyio.run(story, Path(sys.argv[1]), backend_options={"loop_factory": GrpcLoop})
    print(json.dumps(found))  # noqa: T201
