"""With small scripts in the place of the programs, which show what they see. The real ones are in tests/peers."""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devlet.errors import Unavailable
from tests.support.peers import real_kubelet as module
from tests.support.peers.real_kubelet import SYSCTLS, Container, container_runtime, is_possible, real_kubelet

pytestmark = pytest.mark.anyio

RUNTIME = f"""#!{sys.executable}
import sys, time
print(sys.argv[1:], flush=True)
print("serving it", flush=True)
time.sleep(60)
"""

# Is healthy; what it sees of the host comes first.
KUBELET = f"""#!{sys.executable}
import http.server, json, os, sys
from pathlib import Path
flags = dict(flag.split("=", 1) for flag in sys.argv[1:])
configuration = json.loads(Path(flags["--config"]).read_text())
seen = {{
    "flags": flags,
    "configuration": configuration,
    "sysctls": [Path("/proc/sys", name).read_text() for name in {list(SYSCTLS)!r}],
    "root": sorted(os.listdir("/var/lib/kubelet")),
    "log": os.listdir("/var/log"),
}}
print(json.dumps(seen), flush=True)
class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/healthz" else 404)
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", configuration["healthzPort"]), Healthy).serve_forever()
"""


@pytest.fixture
def binaries(tmp_path: Path) -> Iterator[Path]:
    for name, script in (("kubelet", KUBELET), ("kubelet-plugins", RUNTIME)):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    yield tmp_path


def sysctls() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in SYSCTLS]


async def test_the_runtime_tells_what_containers_were_to_be(binaries: Path, root: Path) -> None:
    async with container_runtime(binaries, root) as runtime:
        assert f"--socket={root}/runtime.sock" in runtime.process.log.read_text()
        configs: list[dict[str, Any]] = [
            {"metadata": {"name": "main"}, "labels": {"io.kubernetes.pod.name": "other"}},
            {
                "metadata": {"name": "main"},
                "labels": {"io.kubernetes.pod.name": "train"},
                "envs": [{"key": "A", "value": b64encode(b"1").decode()}, {"key": "EMPTY"}],
                "devices": [{"host_path": "/dev/null"}],
                "CDI_devices": [{"name": "v/c=d"}],
            },
        ]
        runtime.notes.write_text("".join(f"{json.dumps({'config': config})}\n" for config in configs))
        expected = Container("main", {"A": "1", "EMPTY": ""}, [{"host_path": "/dev/null"}], [], ["v/c=d"])
        assert runtime.containers("train") == [expected]


@pytest.mark.skipif(not is_possible(), reason="needs root")
async def test_a_kubelet_changes_nothing_on_the_host(binaries: Path, root: Path) -> None:
    before = sysctls()
    async with real_kubelet(binaries, root, root / "kubeconfig", node_name="n1") as running:
        seen = json.loads(running.log.read_text())
    assert seen["sysctls"] == [f"{value}\n" for value in SYSCTLS.values()]
    assert {"device-plugins", "plugins", "plugins_registry", "kubelet.json"} <= set(seen["root"])
    assert seen["log"] == []
    assert sysctls() == before


@pytest.mark.skipif(not is_possible(), reason="needs root")
async def test_the_program_gets_its_name_and_listens_only_on_loopback(binaries: Path, root: Path) -> None:
    async with real_kubelet(binaries, root, root / "kubeconfig", node_name="n1") as running:
        seen = json.loads(running.log.read_text())
    flags, configuration = seen["flags"], seen["configuration"]
    assert (flags["--hostname-override"], flags["--kubeconfig"]) == ("n1", f"{root}/kubeconfig")
    assert configuration["containerRuntimeEndpoint"] == f"unix://{root}/runtime.sock"
    assert (configuration["address"], configuration["readOnlyPort"]) == ("127.0.0.1", 0)


@pytest.mark.skipif(not is_possible(), reason="needs root")
async def test_one_that_ends_at_once_says_why(binaries: Path, root: Path) -> None:
    (binaries / "kubelet").write_text("#!/bin/sh\necho no such flag\nexit 1\n")
    with pytest.raises(Unavailable, match="no such flag"):
        async with real_kubelet(binaries, root, root / "kubeconfig", node_name="n1"):
            pass


def test_without_the_program_for_it_it_is_not_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert module.is_possible() is False
