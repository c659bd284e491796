"""The systems that bench/schedule.py compares, each on an empty directory and with durable writes.

As in the reference's own benchmark its clients are not rate-limited; otherwise the usual limits of 50 and 20 requests a
second would be all that is measured. Of its controllers only the one for claims runs: others would find that the nodes
have no kubelets.
"""

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

from bench._report import PEERS
from bench._schedule_http import Target

from devlet.kit.processes import line, process, spawn
from devlet.testing.embedded import embedded_api
from tests.support.peers.control_plane import ControlPlane, control_plane
from tests.support.peers.kube_programs import kube_controller_manager, kube_scheduler

EMBEDDED = "devlet, embedded"
ON_KUBE_APISERVER = "devlet on kube-apiserver"
REFERENCE = "kube-scheduler"
UNLIMITED = ("--kube-api-qps=5000", "--kube-api-burst=5000")
PROGRAMS = ("etcd", "kube-apiserver", "kubectl", "kube-scheduler", "kube-controller-manager")

System = Callable[[Path], AbstractAsyncContextManager[Target]]


def are_built() -> bool:
    return all((PEERS / name).is_file() for name in PROGRAMS)


@asynccontextmanager
async def embedded(directory: Path) -> AsyncIterator[Target]:
    """Run `devlet up` in a separate process: store, API, scheduler and claim controller."""
    with _short_link(directory) as root:
        async with embedded_api(root, control=True, start=spawn) as api:
            yield Target(api.endpoint, api.ca_file, api.token, api.kubeconfig)


@asynccontextmanager
async def on_kube_apiserver(directory: Path) -> AsyncIterator[Target]:
    """Run `devlet control` beside etcd and kube-apiserver."""
    async with control_plane(PEERS, directory) as plane:
        words = ["control", "--kubeconfig", str(plane.kubeconfig), "--controllers", "scheduler,resourceclaim"]
        log, ready = directory / "control.log", line("^devlet control is ready")
        async with process([sys.executable, "-m", "devlet", *words], log=log, ready=ready, timeout=60):
            yield _target(plane, "devlet")


@asynccontextmanager
async def reference(directory: Path) -> AsyncIterator[Target]:
    """Run kube-scheduler and kube-controller-manager beside etcd and kube-apiserver."""
    async with control_plane(PEERS, directory) as plane:
        config, claims = plane.kubeconfig, ("resourceclaim-controller",)
        async with (
            kube_scheduler(PEERS, directory, config, feature_gates={}, flags=UNLIMITED),
            kube_controller_manager(PEERS, directory, config, controllers=claims, feature_gates={}, flags=UNLIMITED),
        ):
            yield _target(plane, "default-scheduler")


SYSTEMS: dict[str, System] = {EMBEDDED: embedded, ON_KUBE_APISERVER: on_kube_apiserver, REFERENCE: reference}


def _target(plane: ControlPlane, scheduler: str) -> Target:
    return Target(plane.endpoint, plane.ca_file, plane.token, plane.kubeconfig, scheduler)


@contextmanager
def _short_link(directory: Path) -> Iterator[Path]:
    """Sockets are created below the root, so its path must be short; state goes to the measured disk."""
    place = Path(tempfile.mkdtemp(prefix="dv"))
    (place / "r").symlink_to(directory.absolute(), target_is_directory=True)
    try:
        yield place / "r"
    finally:
        shutil.rmtree(place)
