"""A plugin with the kubelet's paths built in registers with devlet when `devlet exec` starts it."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from devlet.kit.processes import process
from devlet.testing.embedded import embedded_api
from devlet.testing.waiting import until

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
]

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"example.com/resource": "1"}}}],
    },
}


async def devlet(root: Path, *arguments: str, stdin: str = "") -> str:
    command = [sys.executable, "-m", "devlet", *arguments, "--root", str(root)]
    done = await anyio.run_process(command, input=stdin.encode(), check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def states(root: Path) -> dict[str, str]:
    found = json.loads(await devlet(root, "get", "devices", "-o", "json"))["items"]
    return {device["spec"]["id"]: device["status"]["state"] for device in found}


async def test_the_sample_device_plugin_registers_and_its_devices_are_handed_out(peers: "Peers", root: Path) -> None:
    peers.need("sample-device-plugin")
    program = str(peers.binaries / "sample-device-plugin")
    command = [sys.executable, "-m", "devlet", "exec", "--root", str(root), "--", program]
    async with (
        embedded_api(root, arguments=["--node-name=n1"]),
        process(command, log=root / "plugin.log", name="devlet exec"),
    ):
        await until(lambda: states(root), lambda found: found == {"Dev-1": "Free", "Dev-2": "Free"})
        await devlet(root, "apply", "-f", "-", stdin=json.dumps(POD))
        await devlet(root, "wait", "--for=condition=Ready", "pod/p")
        assert sorted((await states(root)).values()) == ["Free", "Held"]
        [plugin] = json.loads(await devlet(root, "get", "plugins", "-o", "json"))["items"]
        assert plugin["spec"]["socket"].startswith(f"{root}/device-plugins/")
