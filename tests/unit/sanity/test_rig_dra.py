"""What can be done to a DRA driver under test."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sanity import api_server
from devlet.sanity.check import CannotTell, Passed
from devlet.sanity.checks.dra import slices
from devlet.sanity.driver import Command
from devlet.sanity.rig_dra import DraRig, Settings
from devlet.sanity.stand_dra import DraStand
from devlet.testing import warm_start
from devlet.testing.fake_dra_cluster import publish, slice_of
from devlet.testing.fake_dra_driver import FakeDraDriver

pytestmark = [pytest.mark.anyio]

QUICK = Settings(start=0.5, wait=0.5, settle=0.1, quiet=0.1, dial=0.5, answer=2.0)
PLACES = ["--root={root}", "--cdi={cdi}", "--kubeconfig={kubeconfig}", "--node={node}"]


def python(module: str, *words: str) -> Command:
    return Command([sys.executable, "-m", f"tests.support.mutants.{module}", *PLACES, *words], start=warm_start.start)


async def test_what_a_sound_driver_has_published_can_be_claimed() -> None:
    stand = DraStand(python("sound_dra_driver", "--instance={instance}"), settings=Settings(settle=0.1))
    async with stand.open() as rig:
        assert (rig.trouble, rig.name, len(rig.offers())) == ("", "led.example.com", 11)
        assert list(rig.pools()) == [rig.places.node]
        async with rig.claims(2) as claims:
            assert claims[0].devices.isdisjoint(claims[1].devices)
        assert isinstance(rig.usage().files, int)
        assert [path.name for path in rig.leftovers()] == ["dra-one.sock", "led.example.com-one-reg.sock"]


async def test_a_second_one_needs_a_command_or_the_word_for_it() -> None:
    async with DraStand(Command(["sleep", "60"]), settings=QUICK).open() as rig:
        with pytest.raises(CannotTell, match="instance}, or give one with --second"):
            await rig.start_second()
    async with DraStand(Command(["sleep", "60"]), second="sleep 61", settings=QUICK).open() as rig:
        await rig.start_second()
        assert rig.second is not None
        assert rig.second.pid


@asynccontextmanager
async def attached(root: Path, *published: Document) -> AsyncIterator[DraRig]:
    """To a driver in a cluster with these slices, too."""
    node = "sanity-node"
    (root / "api").mkdir()
    async with api_server.embedded(root / "api", node) as other:
        await publish(other.cluster, "gpu.example.com", node, 2, node_uid=other.node_uid)
        for each in published:
            await other.cluster.create(RESOURCE_SLICES, each)
        stand = DraStand(
            registry=root / "plugins_registry", kubeconfig=other.kubeconfig, node=node, settings=Settings()
        )
        async with FakeDraDriver(root, name="gpu.example.com"), stand.open() as rig:
            mine = f"{node}-gpu.example.com"
            assert await rig.history.until(lambda: {mine, *_names(published)} <= set(rig.history.slices), 15)
            yield rig


def _names(published: tuple[Document, ...]) -> set[str]:
    return {each["metadata"]["name"] for each in published}


def anywhere(name: str, where: Document) -> Document:
    document = slice_of("gpu.example.com", name, [{"name": f"of-{name}"}])
    del document["spec"]["nodeName"]
    document["spec"] |= where
    return document


def labelled(key: str, value: str) -> Document:
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [_in(key, value)]}]}}


def _in(key: str, value: str) -> Document:
    return {"key": key, "operator": "In", "values": [value]}


async def test_in_a_cluster_with_other_nodes_their_slices_are_not_looked_at(root: Path) -> None:
    async with attached(root, slice_of("gpu.example.com", "n2", 3)) as rig:
        assert [each["spec"]["nodeName"] for each in rig.slices] == [rig.places.node]
        assert [(each.pool, each.name) for each in rig.offers()] == [(rig.places.node, f"dev-{n}") for n in (0, 1)]
        assert list(rig.versions()) == [f"{rig.places.node}-gpu.example.com"]
        for check in slices.checks:
            if check.id in ("DRA-SLICE-3", "DRA-SLICE-4", "DRA-SLICE-7"):
                assert await check.run(rig) == Passed()


async def test_in_a_cluster_with_other_nodes_only_slices_of_this_one_are_deleted(root: Path) -> None:
    shared = anywhere("network", {"allNodes": True})
    async with attached(root, slice_of("gpu.example.com", "n2", 3), shared) as rig:
        await rig.delete_slices()
        mine = f"{rig.places.node}-gpu.example.com"
        assert await rig.history.until(lambda: mine not in rig.history.slices, 15)
        left = await rig.cluster.list(RESOURCE_SLICES)
        assert {each["metadata"]["name"] for each in left.items} == {"n2-gpu.example.com", "network-gpu.example.com"}
        with pytest.raises(CannotTell, match="the driver has no slice that belongs to node"):
            await rig.delete_slices()


async def test_claims_get_devices_that_this_node_can_reach(root: Path) -> None:
    devices = [{"name": "here", "nodeName": "sanity-node"}, {"name": "there", "nodeName": "n2"}]
    some = anywhere("some", {"perDeviceNodeSelection": True, "devices": devices})
    rack = anywhere("rack", labelled("rack", "7"))
    named = {"nodeSelectorTerms": [{"matchFields": [_in("metadata.name", "sanity-node")]}]}
    mine = anywhere("mine", {"nodeSelector": named})
    async with attached(root, anywhere("all", {"allNodes": True}), some, rack, mine) as rig:
        assert {each.name for each in rig.offers()} == {"dev-0", "dev-1", "of-all", "here", "of-mine"}


async def test_who_was_silent_is_not_waited_for_as_long_by_the_next_rig() -> None:
    stand = DraStand(Command(["sleep", "60"]), settings=QUICK)
    async with stand.open() as first:
        first.kubelet.patience.silent("NodePrepareResources")
    async with stand.open() as second:
        assert second.kubelet.patience.limit("NodePrepareResources", 45.0) == 15.0
