"""Programs are killed at random while pods come and go; afterwards everything must be as if nothing had happened.

DEVLET_SOAK_SECONDS is for how long programs are killed altogether (60 unless told, in `make soak` 600).
DEVLET_SOAK_SEED repeats a run: the same pods and kills, though not at the same point of what the programs do."""

import os
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.chaos.campaign import Plan, World, run
from tests.support.chaos.worlds import embedded_world, kubernetes_world

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

SECONDS = float(os.environ.get("DEVLET_SOAK_SECONDS") or "60")
SEED = int(os.environ.get("DEVLET_SOAK_SEED") or random.randrange(1_000_000))

pytestmark = [
    pytest.mark.peers,
    pytest.mark.anyio,
    pytest.mark.timeout(SECONDS + 600),
]

Open = Callable[[Path, Path], AbstractAsyncContextManager[World]]


Record = Callable[[str, object], None]


async def storm(open_world: Open, binaries: Path, root: Path, plan: Plan, record: Record) -> None:
    record("seed", plan.seed)
    print(f"seed {plan.seed}")  # noqa: T201 (shown with -s, and when it fails)
    async with open_world(binaries, root) as world:
        report = await run(world, plan)
    record("figures", report.summary)
    print(report.summary)  # noqa: T201
    assert report.kills
    assert report.pods > report.kills


async def test_devlet_and_drivers_are_killed(peers: "Peers", root: Path, record_property: Record) -> None:
    """And devlet is the API server, too."""
    peers.need("dra-example-kubeletplugin", "generic-device-plugin")
    await storm(embedded_world, peers.binaries, root, Plan(SECONDS * 0.4, SEED), record_property)


async def test_kube_apiserver_schedulers_node_and_drivers_are_killed(
    peers: "Peers", root: Path, record_property: Record
) -> None:
    peers.need(
        "etcd", "kube-apiserver", "kube-controller-manager", "dra-example-kubeletplugin", "generic-device-plugin"
    )
    await storm(kubernetes_world, peers.binaries, root, Plan(SECONDS * 0.4, SEED), record_property)


async def test_pods_are_removed_by_force(peers: "Peers", root: Path, record_property: Record) -> None:
    """Their node may hear of it late: devices are free before it has unprepared them."""
    peers.need("dra-example-kubeletplugin", "generic-device-plugin")
    await storm(embedded_world, peers.binaries, root, Plan(SECONDS * 0.2, SEED, forced=0.5), record_property)
