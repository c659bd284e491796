"""A whole kubelet, unmodified, as a node of a real control plane, with a container runtime that only takes notes.

    async with (
        container_runtime(binaries, root) as runtime,
        real_kubelet(binaries, root, cluster.kubeconfig_of("system:node:n1"), node_name="n1"),
    ):
        ...  # pods that are bound to n1 become Running
        runtime.containers("train")   # what the kubelet wanted the containers to be

It runs in a mount namespace, so that on the host nothing changes: /var/lib/kubelet and /var/log are below `root`, and
the kernel parameters that a kubelet sets are files. That needs the rights of root. Cgroups and iptables it leaves
alone.
"""

import json
import shlex
import subprocess
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from devlet.kit.processes import SHORT_GRACE, RunningProcess, line, process
from devlet.objects.documents import Document
from devlet.runtime import kubelet_paths
from tests.support.free_ports import LOOPBACK, free_ports
from tests.support.peers.health import answers
from tests.support.peers.kubelet_plugins import DIRECTORIES

__all__ = ["Container", "ContainerRuntime", "container_runtime", "is_possible", "real_kubelet"]

# What a kubelet wants them to be. One that finds them so does not write.
SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
READY_TIMEOUT = 60.0  # seconds
SYNC = "1s"  # a kubelet has a minute, between two looks at a pod that waits, and ten seconds for its status


@dataclass(frozen=True, slots=True)
class Container:
    """As far as devices are concerned."""

    name: str
    env: dict[str, str]
    devices: list[Document]
    mounts: list[Document]
    cdi: list[str]


@dataclass(frozen=True, slots=True)
class ContainerRuntime:
    process: RunningProcess
    notes: Path

    def containers(self, pod: str) -> list[Container]:
        """Those that were made for the pod, in the order of their making."""
        requests = [json.loads(each) for each in self.notes.read_text().splitlines()]
        configs = [request["config"] for request in requests]
        return [_container(each) for each in configs if each["labels"]["io.kubernetes.pod.name"] == pod]


def is_possible() -> bool:
    """Whether there are the rights for it."""
    try:
        tried = ["unshare", "--mount", "mount", "--bind", "/dev/null", "/proc/sys/kernel/panic"]
        return subprocess.run(tried, capture_output=True).returncode == 0
    except OSError:
        return False


def container_runtime(binaries: Path, root: Path) -> AbstractAsyncContextManager[ContainerRuntime]:
    """It goes on while a kubelet is restarted, as real ones do."""
    notes = root.absolute() / "containers.jsonl"
    program = str(binaries / "kubelet-plugins")
    argv = [program, "runtime", f"--socket={_socket(root)}", f"--containers={notes}"]
    return _noted(process(argv, name="runtime", log=root / "runtime.log", ready=line("^serving ")), notes)


@asynccontextmanager
async def _noted(program: AbstractAsyncContextManager[RunningProcess], notes: Path) -> AsyncIterator[ContainerRuntime]:
    async with program as running:
        yield ContainerRuntime(running, notes)


def real_kubelet(
    binaries: Path, root: Path, kubeconfig: Path, *, node_name: str
) -> AbstractAsyncContextManager[RunningProcess]:
    """Ready when its health is, which is before its node is. The same root again is the same node."""
    root = root.absolute()
    for name in (*DIRECTORIES, "log", "sysctls"):
        (root / name).mkdir(parents=True, exist_ok=True)
    port, healthz = free_ports(2)
    (root / "kubelet.json").write_text(json.dumps(_configuration(root, port, healthz), indent=2))
    argv = [
        *[sys.executable, "-m", kubelet_paths.__name__, str(root), str(binaries.absolute() / "kubelet")],
        f"--config={root / 'kubelet.json'}",
        f"--kubeconfig={kubeconfig.absolute()}",
        f"--hostname-override={node_name}",
        f"--cert-dir={root / 'pki'}",
        "--v=4",
    ]
    script = " && ".join([*_mounts(root), f"exec {shlex.join(argv)}"])
    command = ["unshare", "--mount", "sh", "-c", script]
    ready = answers(f"http://{LOOPBACK}:{healthz}/healthz")
    log = root / "kubelet.log"
    return process(command, name="kubelet", log=log, ready=ready, timeout=READY_TIMEOUT, grace=SHORT_GRACE)


def _mounts(root: Path) -> list[str]:
    """Commands that change what the kubelet sees."""
    mounts = [(root / "log", Path("/var/log"))]
    for number, (name, value) in enumerate(SYSCTLS.items()):
        file = root / "sysctls" / str(number)
        file.write_text(f"{value}\n")
        mounts.append((file, Path("/proc/sys") / name))
    return [shlex.join(["mount", "--bind", str(source), str(target)]) for source, target in mounts]


def _configuration(root: Path, port: int, healthz: int) -> Document:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": LOOPBACK,
        "port": port,
        "healthzPort": healthz,
        "readOnlyPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{_socket(root)}",
        "podLogsDir": str(root / "log" / "pods"),
        "volumePluginDir": str(root / "volume-plugins"),
        "resolvConf": "/dev/null",
        # Whatever the host is like
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "evictionHard": {"memory.available": "1Mi"},
        "syncFrequency": SYNC,
        "nodeStatusUpdateFrequency": SYNC,
    }


def _socket(root: Path) -> Path:
    return root.absolute() / "runtime.sock"


def _container(config: Document) -> Container:
    return Container(
        name=config["metadata"]["name"],
        env={each["key"]: b64decode(each.get("value", "")).decode() for each in config.get("envs", ())},
        devices=config.get("devices", []),
        mounts=config.get("mounts", []),
        cdi=[each["name"] for each in config.get("CDI_devices", ())],
    )
