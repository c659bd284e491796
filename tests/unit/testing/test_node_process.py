"""A node as a process. What devlet does in it is in tests/flows."""

import json
import os
from pathlib import Path

import pytest

from devlet.errors import AlreadyExists, NotFound, Unavailable
from devlet.testing.node_process import PODS, NodeProcess, devices_in_status, plugin_process, pod

pytestmark = [pytest.mark.anyio, pytest.mark.long]

GPU = "vendor.com/gpu"


async def test_it_can_be_asked_killed_and_started_again_with_what_it_had(root: Path) -> None:
    async with NodeProcess(root) as node, plugin_process(node, GPU, 2):
        await node.until_healthy(GPU, 2)
        await node.create(pod("first", {GPU: 2}))
        document = await node.until_phase("first", "Running")
        assert devices_in_status(document) == {GPU: {"dev-0": "Healthy", "dev-1": "Healthy"}}
        before, pid = await node.held(), node.pid
        assert before == {"first": {GPU: {"dev-0", "dev-1"}}}
        assert (await node.holders())["first"]["devices"] == [{"resource": GPU, "ids": ["dev-0", "dev-1"]}]
        assert [entry.resource for entry in node.checkpoint().entries or ()] == [GPU]
        await node.kill()
        with pytest.raises(Unavailable):
            await node.pods()
        await node.start()
        assert (await node.held(), node.pid == pid) == (before, False)
        await node.delete("first")
        assert await node.pods() == {}
        assert (await node.until_event("Killing"))["involvedObject"]["name"] == "first"
    with pytest.raises(ProcessLookupError):
        os.kill(node.pid, 0)
    assert node.log.count('"ready"') == 2


async def test_what_the_api_says_against_a_call_is_raised(root: Path) -> None:
    async with NodeProcess(root) as node:
        await node.create(pod("first", {}))
        with pytest.raises(AlreadyExists):
            await node.create(pod("first", {}))
        with pytest.raises(NotFound):
            await node.call("GET", f"{PODS}/second")
        assert await node.pod("second") is None
        assert (await node.read("/nowhere"))[0] == 404


async def test_a_watched_plugin_is_found_and_can_be_killed(root: Path) -> None:
    async with NodeProcess(root) as node:
        async with plugin_process(node, GPU, 3, watched=True):
            await node.until_healthy(GPU, 3)
        assert list((await node.devices())[GPU]) == ["dev-0", "dev-1", "dev-2"]


async def test_a_reboot_leaves_another_boot_id(root: Path) -> None:
    node = NodeProcess(root)
    async with node:
        await node.create(pod("first", {}))
        await node.until_phase("first", "Running")
        await node.stop()
        before = json.loads((root / "runtime_none_state").read_text())["bootID"]
        node.reboot()
        assert json.loads((root / "runtime_none_state").read_text())["bootID"] not in ("", before)


def test_a_pod_has_its_limits_and_the_annotations_of_the_runtime() -> None:
    document = pod("p", {GPU: 2}, restart="Never", run_for="1s", exit_code="3")
    assert document["metadata"]["annotations"] == {"devlet.dev/run-for": "1s", "devlet.dev/exit-code": "3"}
    assert document["spec"]["containers"][0]["resources"] == {"requests": {GPU: "2"}, "limits": {GPU: "2"}}
    assert devices_in_status(document) == {}
