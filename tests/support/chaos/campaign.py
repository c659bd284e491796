"""Chaos: pods come and go while programs are killed, and afterwards everything must be as if nothing had happened.

    async with embedded_world(binaries, root) as world:
        report = await run(world, Plan(seconds=30, seed=7))

A run ends with an AssertionError if a device was given twice at any time, if something is left of a pod that is over,
or if a pod waits that need not, or for another reason than it says. The text has the seed and what was killed when.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import grpc

from devlet.cluster.client import Cluster, DeleteOptions
from devlet.errors import AlreadyExists, DevletError, NotFound
from devlet.kit.dice import Dice
from devlet.objects.kinds import PODS
from tests.support.chaos.doubles import Doubles
from tests.support.chaos.killer import Killer, Pace, Timeline, Victim
from tests.support.chaos.leaks import leaks
from tests.support.chaos.reasons import pending, unexplained
from tests.support.chaos.snapshot import Snapshot, take
from tests.support.chaos.workload import NAMESPACE, Guest, Workload
from tests.support.peers.peer_node import PeerNode

__all__ = ["Plan", "Report", "World", "run"]

log = logging.getLogger(__name__)

TICK = 0.05  # seconds between two looks at who has to go
AGAIN = 0.2  # seconds until an API that is away is asked again
SHOWN = 40  # complaints that a failure shows


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: float
    seed: int
    population: int = 200  # pods at the same time, at most
    arrivals: float = 10.0  # pods a second; those that an outage keeps away come all at once afterwards
    forced: float = 0.0  # how likely a pod is removed by force
    kills: int = 10_000  # at most
    pace: Pace = field(default=Pace())
    settle: float = 180.0  # seconds; pods that end make room for others, one after the other


@dataclass(frozen=True, slots=True)
class World:
    """`ready` waits until all programs are back and have found each other; `nodes` are by name."""

    cluster: Cluster
    nodes: Mapping[str, PeerNode]
    victims: Mapping[str, Victim]
    ready: Callable[[], Awaitable[None]]
    scheduler_name: str = ""


@dataclass(slots=True)
class Report:
    """What happened. `pods` were made, `waited` were pending when everything had settled."""

    pods: int = 0
    kills: int = 0
    ran: int = 0
    waited: int = 0
    versions: int = 0
    looks: int = 0
    timeline: Sequence[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return (
            f"{self.pods} pods, {self.ran} running and {self.waited} waiting at the end; {self.kills} kills;"
            f" {self.versions} versions of claims and {self.looks} looks at nodes"
        )


async def run(world: World, plan: Plan) -> Report:
    try:
        return await _Run(world, plan).run()
    except ExceptionGroup as group:
        raise _first(group) from None


class _Run:
    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self._cluster = world.cluster
        self._timeline = Timeline()
        self._doubles = Doubles()
        self._killer = Killer(world.victims, Dice(plan.seed), self._timeline, plan.pace, most=plan.kills)
        self._workload = Workload(
            plan.seed, nodes=sorted(world.nodes), scheduler_name=world.scheduler_name, forced=plan.forced
        )
        self._report = Report(timeline=self._timeline.lines)

    async def run(self) -> Report:
        for resource, document in self._workload.objects():
            await self._cluster.create(resource, document, document["metadata"].get("namespace", ""))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._doubles.follow_claims, self._cluster)
            for node in self._world.nodes.values():
                tasks.start_soon(partial(self._doubles.follow_node, node, specs=not self._plan.forced))
            await self._storm()
            self._timeline.add("the storm is over")
            await self._world.ready()
            self._timeline.add("all are back")
            snapshot = await self._settled("with pods")
            self._report.waited = len(pending(snapshot))
            self._report.ran = sum(each.get("status", {}).get("phase") == "Running" for each in snapshot.pods)
            await self._empty()
            tasks.cancel_scope.cancel()
        return self._finished()

    # Pods

    async def _storm(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._come_and_go)
            await self._killer.run(self._plan.seconds)
            tasks.cancel_scope.cancel()

    async def _come_and_go(self) -> None:
        present: dict[str, tuple[float, Guest]] = {}
        plan, began = self._plan, anyio.current_time()
        while True:
            for name, (until, guest) in list(present.items()):
                if until <= anyio.current_time():
                    await self._delete(name, forced=guest.forced)
                    del present[name]
            due = (anyio.current_time() - began) * plan.arrivals
            while self._report.pods < due and len(present) < plan.population:
                guest = self._workload.next()
                await self._create(guest)
                present[guest.name] = (anyio.current_time() + guest.stays, guest)
            await anyio.sleep(TICK)

    async def _create(self, guest: Guest) -> None:
        async def create() -> None:
            try:
                await self._cluster.create(PODS, guest.document, NAMESPACE)
            except AlreadyExists:  # the answer got lost
                return

        await self._insist(create)
        self._report.pods += 1

    async def _delete(self, name: str, *, forced: bool = False) -> None:
        async def delete() -> None:
            try:
                await self._cluster.delete(PODS, name, NAMESPACE, DeleteOptions(grace_period=0 if forced else None))
            except NotFound:
                return

        await self._insist(delete)

    async def _insist(self, call: Callable[[], Awaitable[None]]) -> None:
        """Until the API is there to hear it."""
        while True:
            try:
                return await call()
            except DevletError as e:
                log.debug("again: %s", e)
                await anyio.sleep(AGAIN)

    # The end

    async def _settled(self, when: str, holds: Callable[[Snapshot], Sequence[str]] = lambda _: ()) -> Snapshot:
        """Until there is nothing to complain about."""
        complaints, reported = ["it was never calm"], ""
        with anyio.move_on_after(self._plan.settle):
            while True:
                try:
                    snapshot = await take(self._cluster, self._world.nodes)
                except (DevletError, grpc.RpcError, OSError) as e:
                    complaints = [f"{type(e).__name__}: {e}"]
                else:
                    complaints = [*leaks(snapshot), *unexplained(snapshot), *holds(snapshot)]
                    if not complaints:
                        self._timeline.add(f"settled {when}")
                        return snapshot
                if complaints[0] != reported:
                    reported = complaints[0]
                    self._timeline.add(f"not settled {when}: {len(complaints)}, as {reported}")
                await anyio.sleep(AGAIN)
        raise AssertionError(self._text(f"not settled {when} within {self._plan.settle:g} s", complaints))

    async def _empty(self) -> None:
        """All pods go, and nothing is left of them."""
        for document in (await self._cluster.list(PODS, NAMESPACE)).items:
            await self._delete(document["metadata"]["name"])
        await self._settled("without pods", _remains)

    def _finished(self) -> Report:
        report, doubles = self._report, self._doubles
        report.kills, report.versions, report.looks = self._killer.kills, doubles.versions, doubles.looks
        if doubles.found:
            raise AssertionError(
                self._text(
                    "devices were given twice", [f"{text} ({times} times)" for text, times in doubles.found.items()]
                )
            )
        return report

    def _text(self, what: str, complaints: Sequence[str]) -> str:
        more = [f"and {len(complaints) - SHOWN} more"] if len(complaints) > SHOWN else []
        doubles = [f"given twice: {text}" for text in self._doubles.found]
        lines = [f"{what}; seed {self._plan.seed}", *complaints[:SHOWN], *more, *doubles, "what was killed:"]
        return "\n    ".join([*lines, *self._timeline.lines])


def _first(error: Exception) -> Exception:
    """What went wrong, without the tasks around it."""
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _remains(snapshot: Snapshot) -> list[str]:
    """What must not be there without any pods. Claims that nobody made for a pod stay."""
    found = [f"pod {each['metadata']['name']} is still there" for each in snapshot.pods]
    found += [
        f"claim {each['metadata']['name']} is still there"
        for each in snapshot.claims
        if each["metadata"].get("ownerReferences")
    ]
    for state in snapshot.states:
        left = [*state.prepared, *state.devices, *state.specs, *state.holders, *state.listed]
        left += [uid for uids in state.drivers.values() for uid in uids]
        found += [f"node {state.name} still has {each}" for each in left]
    return found
