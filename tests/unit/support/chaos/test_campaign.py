"""Without drivers, so that all pods wait. With them, and with somebody who kills: tests/peers/test_soak.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from anyio.lowlevel import checkpoint

from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig as kubeconfigs
from devlet.cluster.remote.client import connected
from devlet.cluster.remote.settings import Settings
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_CLAIMS
from devlet.testing.node_process import NODE
from tests.support.chaos.campaign import Plan, World, run
from tests.support.chaos.killer import Pace, Victim
from tests.support.peers.peer_node import PeerNode
from tests.support.workloads import claim

pytestmark = [pytest.mark.anyio, pytest.mark.long]

PLAN = Plan(seconds=1.0, seed=3, population=20, arrivals=30)


@asynccontextmanager
async def world(root: Path) -> AsyncIterator[World]:
    async with (
        PeerNode(root, root, control=True) as node,
        connected(kubeconfigs.connection([node.kubeconfig]), Settings(qps=0)) as cluster,
    ):
        yield World(cluster, {NODE: node}, {"devlet": Victim(node.kill, node.start)}, checkpoint)


async def test_pods_come_and_go_and_nothing_is_left(root: Path) -> None:
    async with world(root) as calm:
        report = await run(calm, replace(PLAN, kills=0))
    assert (report.kills, report.ran) == (0, 0)
    assert 5 <= report.waited <= report.pods
    assert "kills" in report.summary


async def test_who_was_killed_goes_on(root: Path) -> None:
    async with world(root) as wild:
        report = await run(wild, replace(PLAN, kills=1, pace=Pace(calm=(3, 3))))
    assert report.kills == 1
    assert [line.partition(" s  ")[2] for line in report.timeline][:2] == ["kill devlet", "devlet is back"]


async def test_a_leak_is_reported_with_the_seed_and_what_was_killed(root: Path) -> None:
    async with world(root) as leaky:
        await leaky.cluster.create(RESOURCE_CLAIMS, claim("lost"), "default")
        status: Document = {"allocation": {"devices": {"results": []}}}
        await leaky.cluster.patch(
            RESOURCE_CLAIMS, "lost", MergePatch({"status": status}), "default", subresource="status"
        )
        with pytest.raises(AssertionError) as caught:
            await run(leaky, replace(PLAN, kills=0, settle=2.0))
    text = str(caught.value)
    assert "not settled with pods within 2 s; seed 3" in text
    assert "allocated, and reserved for nobody" in text
    assert "the storm is over" in text
