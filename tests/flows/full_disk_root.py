"""Has a node on a small disk that gets full, and says what its health and its API answered, as JSON. Run by
test_full_disk.py, with a tmpfs of its own at ROOT and what must not get full in the directory BESIDE."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from devlet.errors import Unavailable
from devlet.testing.grpc_loop import GrpcLoop
from devlet.testing.node_api import PODS
from devlet.testing.node_process import NodeProcess, pod
from devlet.testing.waiting import until
from tests.support.small_disk import fill


async def codes(node: NodeProcess) -> list[int]:
    return [(await node.read(path))[0] for path in ("/healthz", "/readyz", "/livez")]


async def story(root: Path, beside: Path) -> dict[str, Any]:
    told: dict[str, Any] = {}
    (beside / "up.log").touch()
    (root / "up.log").symlink_to(beside / "up.log")
    async with NodeProcess(root) as node:
        await node.create(pod("before", {}))
        await node.until_phase("before", "Running")
        told["before"] = await codes(node)
        fill(root / "ballast")
        # The lease is all that is written now.
        told["during"] = await until(lambda: codes(node), lambda found: found[0] != 200)
        told["reason"] = (await node.read("/healthz/store"))[1]
        try:
            await node.create(pod("during", {}))
        except Unavailable as e:
            told["refused"] = [str(e), e.retry_after]
        told["read"] = (await node.read(PODS))[0]
        (root / "ballast").unlink()
        told["after"] = await until(lambda: codes(node), lambda found: found[0] == 200)
        await node.create(pod("after", {}))
        await node.until_phase("after", "Running")
        told["pods"] = sorted(await node.pods())
        told["lines"] = [node.log.count(f'"{line}"') for line in ("store cannot write", "store writes again")]
        told["traceback"] = "Traceback" in node.log
    return told


if __name__ == "__main__":
    found = anyio.run(story, Path(sys.argv[1]), Path(sys.argv[2]), backend_options={"loop_factory": GrpcLoop})
    print(json.dumps(found))  # noqa: T201
