from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from devlet.errors import NotFound, NotPrepared, PluginUnavailable
from devlet.kit import request_ids
from devlet.kit.parts import running
from devlet.node.claims.manager import CHECKPOINT, ClaimManager
from devlet.node.claims.unpreparing import RELEASED
from devlet.node.reports import Report
from devlet.objects.identifiers import PodUID
from devlet.state import claim_checkpoint
from devlet.testing.fake_clock import FakeClock
from tests.support.claim_specimens import GPU, claim, key, pod
from tests.support.scripted_drivers import Claims, ScriptedDriver, ScriptedDrivers

pytestmark = pytest.mark.anyio

GONE = PluginUnavailable(GPU, "no answer")


class Bench:
    """A node with a claim that is prepared for pod-1, and a pod that waits for its device."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.claims = Claims(claim(device="d"), claim("b", device="d", pods=("pod-2",)))
        self.gpu = ScriptedDriver(GPU, claims=self.claims)
        self.reports: list[Report] = []
        self.woken: list[str] = []
        self.manager = ClaimManager(
            root,
            ScriptedDrivers(self.gpu),
            self.claims.read,
            FakeClock(),
            report=self.reports.append,
            wake=self.woken.append,
        )
        self.second = pod("pod-2", claims={"gpu": "b"})

    async def end_pod(self) -> None:
        """Make the driver fail to unprepare the claim."""
        self.gpu.error = GONE
        with pytest.raises(NotPrepared):
            await self.manager.unprepare(PodUID("pod-1"))
        with pytest.raises(NotPrepared, match="devlet claim release default/claim --force"):
            await self.manager.prepare(self.second)

    def on_disk(self) -> set[str]:
        return {each.name for each in claim_checkpoint.decode((self.root / CHECKPOINT).read_bytes()).claims or ()}


@pytest.fixture
async def bench(root: Path) -> AsyncIterator[Bench]:
    made = Bench(root)
    async with running(made.manager.run):
        await made.manager.prepare(pod())
        yield made


async def test_a_claim_is_released_by_force_after_its_driver_was_called_once_more(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.end_pod()
    asked = len(bench.gpu.calls)
    await bench.manager.release(key("claim"), force=True)
    assert bench.gpu.calls[asked:] == [("unprepare", ("claim",))] and not bench.on_disk()
    assert request_ids.is_valid(bench.gpu.requests[-1])
    (report,) = bench.reports
    assert (report.type, report.reason) == ("Warning", RELEASED) and "no answer" in report.message
    assert "claim released by force" in caplog.text
    assert bench.woken == ["pod-2"] and not bench.manager.holds(PodUID("pod-1"))
    bench.gpu.error = None
    await bench.manager.prepare(bench.second)
    await bench.manager.unprepare(PodUID("pod-1"))
    assert bench.on_disk() == {"b"}


async def test_without_force_a_claim_stays_until_its_driver_has_unprepared_it(bench: Bench) -> None:
    await bench.end_pod()
    with pytest.raises(NotPrepared, match=r"default/claim was not released: driver .* no answer"):
        await bench.manager.release(key("claim"), force=False)
    assert bench.on_disk() == {"claim"} and not bench.reports
    bench.gpu.error = None
    await bench.manager.release(key("claim"), force=False)
    assert not bench.on_disk() and not bench.reports and bench.woken == ["pod-2"]


@pytest.mark.parametrize("force", [True, False])
async def test_a_claim_of_a_pod_that_has_not_ended_is_not_released(bench: Bench, force: bool) -> None:
    with pytest.raises(NotPrepared, match="used by pods that have not ended: pod-1"):
        await bench.manager.release(key("claim"), force=force)
    assert bench.on_disk() == {"claim"} and len(bench.gpu.calls) == 1


async def test_a_claim_that_is_not_prepared_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFound, match="default/other is not prepared on this node"):
        await bench.manager.release(key("other"), force=True)


async def test_a_release_waits_for_the_unprepare_that_is_under_way(bench: Bench) -> None:
    bench.gpu.block()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.manager.unprepare, PodUID("pod-1"))
        await bench.gpu.called.wait()
        tasks.start_soon(_not_found, bench)
        await anyio.wait_all_tasks_blocked()
        bench.gpu.gate.set()
    assert not bench.on_disk() and len(bench.gpu.calls) == 2


async def _not_found(bench: Bench) -> None:
    with pytest.raises(NotFound):
        await bench.manager.release(key("claim"), force=True)
