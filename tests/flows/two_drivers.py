"""Has a driver of a host's kubelet and one of the same name under `devlet exec`, and says which of them devlet called,
as JSON. Run by test_private_mounts.py where /var/lib/kubelet is a directory of the test: the host's."""

import json
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio

from devlet.kit.processes import RunningProcess, line, process
from devlet.runtime.kubelet_paths import KUBELET_ROOT
from devlet.testing.dra_script import PREPARE
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.node_process import pod
from tests.support.claim_node import ClaimNode
from tests.support.dra_driver_process import DraDriverProcess, dra_driver_process

GPU, LED = "gpu.example.com", "vendor.com/led"


def under_exec(root: Path, *argv: str, ready: str) -> AbstractAsyncContextManager[RunningProcess]:
    """Start a fake driver as `devlet exec` does: it knows only /var/lib/kubelet."""
    words = [sys.executable, "-m", "devlet", "exec", "--root", str(root), "--", sys.executable, "-m", *argv]
    return process(words, log=root / f"{argv[0]}.log", name=argv[0], ready=line(ready))


def dra_driver(root: Path) -> AbstractAsyncContextManager[RunningProcess]:
    calls = KUBELET_ROOT / "plugins" / GPU / "calls.jsonl"
    words = ["devlet.testing.fake_dra_driver", "--root", str(KUBELET_ROOT), "--driver", GPU, "--calls", str(calls)]
    return under_exec(root, *words, "--cdi-dir", str(root / "cdi"), ready="driver serving")


def device_plugin(root: Path) -> AbstractAsyncContextManager[RunningProcess]:
    directory, registry = KUBELET_ROOT / "plugins", KUBELET_ROOT / "plugins_registry"
    words = ["devlet.testing.fake_device_plugin", "--directory", str(directory), "--registry", str(registry)]
    return under_exec(root, *words, "--resource", LED, "--devices", "2", ready="plugin serving")


async def story(root: Path) -> dict[str, Any]:
    ours = DraDriverProcess(root, GPU, "", root / "cdi")
    async with dra_driver_process(KUBELET_ROOT, GPU) as theirs, ClaimNode(root) as node:
        ours.directory.mkdir(parents=True)
        async with dra_driver(root), device_plugin(root):
            await node.run_pod("train", GPU)
            await node.until_healthy(LED, 2)
            await node.create(pod("blink", {LED: 1}))
            await node.until_phase("blink", "Running")
            return {
                "ours": len(ours.asked(PREPARE)),
                "theirs": theirs.calls,
                "state": (await node.driver_states())[GPU]["state"],
            }


if __name__ == "__main__":
    found = anyio.run(story, Path(sys.argv[1]), backend_options={"loop_factory": GrpcLoop})
    print(json.dumps(found))  # noqa: T201
