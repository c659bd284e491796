"""Leader election. Each candidate has its own clock, which can run faster or slower, jump, or stop with its process."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from devlet.cluster.client import Cluster
from devlet.cluster.store.store import Store, open_store
from devlet.control.fenced_cluster import FencedCluster
from devlet.control.leader_election import LeaderElection, Settings, unique_identity
from devlet.errors import DevletError, InvalidInput, NotFound, Unavailable
from devlet.kit.chance import random
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.objects.documents import Document
from devlet.objects.kinds import CONFIG_MAPS, LEASES, NAMESPACES
from devlet.testing.fake_clock import FakeClock
from tests.support.cluster_contract.specimens import config_map

pytestmark = pytest.mark.anyio

NAME = "devlet-scheduler"
SPACE = "kube-system"


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", lambda: 0.0)


@pytest.fixture
async def store(root: Path, anyio_backend: str) -> AsyncIterator[Store]:
    async with open_store(root / "cluster.db") as store:
        yield store


class OwnClock:
    """A candidate's view of the common time. While `paused` its process does not run, but time passes."""

    def __init__(self, time: FakeClock, rate: float = 1.0) -> None:
        self._time = time
        self._rate = rate
        self.ahead = timedelta()  # of the wall clock alone
        self._running = anyio.Event()
        self._running.set()

    def now(self) -> datetime:
        return self._time.now() + self.ahead

    def monotonic(self) -> float:
        return 7.0 + self._time.monotonic() * self._rate

    async def sleep(self, seconds: float) -> None:
        await self._time.sleep(seconds / self._rate)
        await self._running.wait()

    def pause(self) -> None:
        if self._running.is_set():
            self._running = anyio.Event()

    def resume(self) -> None:
        self._running.set()


class Connection:
    """The connection of a candidate to the cluster. It may break before a request arrives, or before the answer to a
    write does."""

    busy = 0  # requests under way on all connections, except those that hang

    def __init__(self, cluster: Cluster) -> None:
        self._inner = FencedCluster(cluster, lambda: None)
        self.cut = ""  # "request" or "answer"
        self.hangs = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return partial(self._call, method, name)

    async def _call(self, method: Callable[..., Awaitable[Any]], name: str, *args: Any, **options: Any) -> Any:
        if self.cut == "request":
            raise Unavailable("cut off")
        Connection.busy += 1
        try:
            answer = await method(*args, **options)
        finally:
            Connection.busy -= 1
        if self.hangs:
            await anyio.sleep_forever()
        if self.cut == "answer" and name != "get":
            raise Unavailable("cut off")
        return answer


class Candidate:
    settings = Settings()

    def __init__(self, name: str, store: Cluster, time: FakeClock, rate: float = 1.0) -> None:
        self.name = name
        self.clock = OwnClock(time, rate)
        self.connection: Any = Connection(store)
        self.leaders: list[str] = []
        self.could_write: list[bool] = []  # at each change of the leader
        self.terms = 0
        self.working = False
        self.cluster: Cluster | None = None
        self.end = anyio.Event()
        self.election = LeaderElection(self.connection, self.clock, NAME, name, self.settings, changed=self.hear)

    def hear(self, leader: str) -> None:
        self.leaders.append(leader)
        self.could_write.append(self.may_write)

    async def work(self, cluster: Cluster) -> None:
        self.terms, self.cluster, self.working = self.terms + 1, cluster, True
        try:
            await self.end.wait()
        finally:
            self.working = False

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        await self.election.lead(self.work, task_status=task_status)

    @property
    def may_write(self) -> bool:
        return self.election.leading

    @property
    def state(self) -> str:
        return "leads" if self.working else "waits"


async def settle() -> None:
    """Wait until all tasks sleep. Writes are done in a thread, so yielding to the event loop is not enough."""
    quiet = 0
    while quiet < 30:
        await checkpoint()
        quiet = 0 if Connection.busy else quiet + 1


async def lease(store: Store) -> Document:
    return await store.get(LEASES, NAME, SPACE)


async def spec(store: Store) -> Document:
    found: Document = (await lease(store))["spec"]
    return found


@asynccontextmanager
async def candidates(store: Store, clock: FakeClock, *names: str) -> AsyncIterator[list[Candidate]]:
    found = [Candidate(name, store, clock) for name in names]
    async with anyio.create_task_group() as tasks:
        for candidate in found:
            await tasks.start(candidate.run)
        await settle()
        yield found
        tasks.cancel_scope.cancel()


async def advance(clock: FakeClock, seconds: float, step: float = 0.5) -> None:
    for _ in range(round(seconds / step)):
        await clock.advance(step)
        await settle()


async def test_the_first_candidate_creates_the_lease_and_leads(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a") as [a]:
        assert a.state == "leads"
        assert a.leaders == ["a"]
        assert await spec(store) == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2025-01-01T00:00:00.000000Z",
            "renewTime": "2025-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        }


async def test_the_lease_never_has_a_shorter_duration_than_the_leader_relies_on(store: Store) -> None:
    election = LeaderElection(store, FakeClock(), NAME, "a", Settings(duration=1.4, renew_deadline=1.2, retry=0.5))

    async def look(_: Cluster) -> None:
        assert (await spec(store))["leaseDurationSeconds"] == 2

    await election.lead(look)


async def test_a_renewal_keeps_the_acquire_time(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a"):
        await advance(clock, 60)
        found = await spec(store)
        assert (found["acquireTime"], found["renewTime"]) == (
            "2025-01-01T00:00:00.000000Z",
            "2025-01-01T00:01:00.000000Z",
        )
        assert found["leaseTransitions"] == 0


async def test_a_second_candidate_stands_by_and_knows_who_leads(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        await advance(clock, 60)
        assert (a.state, b.state) == ("leads", "waits")
        assert b.leaders == ["a"]


async def test_a_leader_that_stops_releases_the_lease_for_the_next_candidate(store: Store) -> None:
    clock = FakeClock()
    a, b = Candidate("a", store, clock), Candidate("b", store, clock)
    async with anyio.create_task_group() as tasks:
        async with running(a.run):
            await tasks.start(b.run)
            await advance(clock, 3)
        found = await spec(store)
        assert (found["holderIdentity"], found["leaseDurationSeconds"]) == ("", 1)
        await advance(clock, 2)
        assert b.state == "leads"
        found = await spec(store)
        assert (found["holderIdentity"], found["leaseTransitions"]) == ("b", 1)
        tasks.cancel_scope.cancel()


async def test_the_lease_of_a_killed_leader_is_acquired_after_its_duration(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        await advance(clock, 4)
        a.clock.pause()
        await advance(clock, 14)
        assert b.state == "waits"
        await advance(clock, 5)
        assert b.state == "leads"


async def test_the_duration_in_the_lease_counts(store: Store) -> None:
    clock = FakeClock()
    old = {"holderIdentity": "client-go", "leaseDurationSeconds": 60, "renewTime": "2020-01-01T00:00:00.000000Z"}
    await store.create(LEASES, {"metadata": {"name": NAME}, "spec": old | {"leaseTransitions": 4}}, SPACE)
    async with candidates(store, clock, "b") as [b]:
        assert b.leaders == ["client-go"]
        await advance(clock, 58)
        assert b.state == "waits", "the time in the lease is of another clock"
        await advance(clock, 4)
        assert b.state == "leads"
        assert (await spec(store))["leaseTransitions"] == 5


async def test_a_leader_that_cannot_renew_stops_before_the_next_one_leads(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        await advance(clock, 4)
        a.connection.cut = "request"
        await advance(clock, 9.5)
        assert (a.state, b.state) == ("leads", "waits")
        await advance(clock, 0.5)
        assert (a.state, b.state) == ("waits", "waits")
        await advance(clock, 9)
        assert (a.state, b.state) == ("waits", "leads")
        assert a.leaders == ["a", ""]


async def test_a_process_that_lost_the_lease_may_lead_again(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        a.connection.cut = "request"
        await advance(clock, 20)
        a.connection.cut, b.connection.cut = "", "request"
        await advance(clock, 25)
        assert (a.working, a.terms, b.working) == (True, 2, False)
        assert a.leaders == ["a", "", "b", "a"]


async def test_a_server_that_never_answers_counts_as_unavailable(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a") as [a]:
        await advance(clock, 4)
        a.connection.hangs = True
        await advance(clock, 10)
        assert a.state == "waits"
        a.connection.hangs = False
        await advance(clock, 10)
        assert a.state == "leads"


async def test_a_renewal_whose_answer_was_lost_keeps_the_lease(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a") as [a]:
        a.connection.cut = "answer"
        await advance(clock, 4)
        a.connection.cut = ""
        await advance(clock, 30)
        assert (a.working, a.terms) == (True, 1)
        assert (await spec(store))["leaseTransitions"] == 0


async def test_after_a_lost_answer_a_candidate_leads_only_after_another_write(store: Store) -> None:
    clock = FakeClock()
    a = Candidate("a", store, clock)
    a.connection.cut = "answer"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.run)
        await advance(clock, 4)
        assert (await spec(store))["holderIdentity"] == "a"
        assert a.state == "waits"
        a.connection.cut = ""
        await advance(clock, 4)
        assert a.state == "leads"
        tasks.cancel_scope.cancel()


async def test_a_leader_that_sees_another_holder_stops_at_once(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a") as [a]:
        found = await lease(store)
        await store.update(LEASES, found | {"spec": found["spec"] | {"holderIdentity": "other"}})
        await advance(clock, 2)
        assert a.state == "waits"
        assert a.leaders == ["a", "other"]
        assert a.could_write == [True, False], "not even until it is cancelled"


async def test_a_change_by_another_client_that_keeps_the_holder_is_not_a_loss(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a") as [a]:
        found = await lease(store)
        await store.update(LEASES, found | {"metadata": found["metadata"] | {"labels": {"team": "x"}}})
        await advance(clock, 30)
        assert (a.working, a.terms) == (True, 1)
        assert (await lease(store))["metadata"]["labels"] == {"team": "x"}


async def test_a_deleted_lease_is_created_again_by_its_leader(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        await store.delete(LEASES, NAME, SPACE)
        await advance(clock, 60)
        assert (a.working, a.terms, b.working) == (True, 1, False)


async def test_a_deleted_lease_is_not_acquired_before_its_leader_has_stopped(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        await advance(clock, 2)
        a.connection.cut = "request"
        await store.delete(LEASES, NAME, SPACE)
        await advance(clock, 9)
        assert (a.state, b.state) == ("leads", "waits")
        await advance(clock, 9)
        assert (a.state, b.state) == ("waits", "leads")


async def test_a_process_that_was_stopped_writes_nothing_when_it_continues(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        a.clock.pause()
        await advance(clock, 30)
        assert b.state == "leads"
        assert a.state == "leads", "nothing could run that would have cancelled it"
        assert a.cluster is not None
        with pytest.raises(Unavailable, match="lease kube-system/devlet-scheduler is no longer held"):
            await a.cluster.create(CONFIG_MAPS, config_map("late"), "default")
        a.clock.resume()
        await advance(clock, 3)
        assert a.state == "waits"
        assert a.leaders == ["a", "", "b"]


async def test_a_sleep_of_the_machine_is_noticed_by_the_wall_clock(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a") as [a]:
        a.clock.ahead = timedelta(minutes=5)
        assert not a.may_write


async def test_a_wall_clock_that_jumps_ahead_does_not_acquire_a_lease(store: Store) -> None:
    clock = FakeClock()
    async with candidates(store, clock, "a", "b") as [a, b]:
        b.clock.ahead = timedelta(hours=5)
        await advance(clock, 30)
        assert (a.state, b.state) == ("leads", "waits")


async def test_the_lease_is_released_when_the_part_ends_by_itself(store: Store) -> None:
    clock = FakeClock()
    a = Candidate("a", store, clock)
    a.end.set()
    await a.run()
    assert (await spec(store))["holderIdentity"] == ""


async def test_the_lease_is_released_and_the_error_raised_when_the_part_fails(store: Store) -> None:
    async def fail(cluster: Cluster) -> None:
        raise DevletError("broken")

    with pytest.raises(ExceptionGroup) as caught:
        await LeaderElection(store, SystemClock(), NAME, "a").lead(fail)
    assert "broken" in str(caught.value.exceptions[0])
    assert (await spec(store))["holderIdentity"] == ""


async def test_the_lease_is_released_only_after_the_part_has_ended(store: Store) -> None:
    seen: list[str] = []

    async def work(cluster: Cluster) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await cluster.create(CONFIG_MAPS, config_map("last"), "default")
                seen.append((await spec(store))["holderIdentity"])

    async with running(partial(LeaderElection(store, SystemClock(), NAME, "a").lead, work)):
        await settle()
        while not (await store.list(LEASES, SPACE)).items:
            await checkpoint()
        await settle()
    assert seen == ["a"]
    assert (await spec(store))["holderIdentity"] == ""


async def test_a_candidate_waits_for_an_unavailable_cluster(store: Store) -> None:
    clock = FakeClock()
    a = Candidate("a", store, clock)
    a.connection.cut = "request"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.run)
        await advance(clock, 30)
        with pytest.raises(NotFound):
            await lease(store)
        a.connection.cut = ""
        await advance(clock, 3)
        assert a.state == "leads"
        tasks.cancel_scope.cancel()


def in_space(name: str) -> type[Candidate]:
    return type("Elsewhere", (Candidate,), {"settings": Settings(namespace=name)})


async def test_a_missing_namespace_is_an_error_at_the_start(store: Store) -> None:
    text = (
        'lease nosuch/devlet-scheduler cannot be created: namespaces "nosuch" not found; '
        "create the namespace, or choose another one with --lease-namespace"
    )
    with pytest.raises(InvalidInput) as caught:
        await in_space("nosuch")("a", store, FakeClock()).run()
    assert str(caught.value) == text


async def test_a_namespace_that_is_deleted_later_is_a_warning(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    space = {"metadata": {"name": "space"}}
    await store.create(NAMESPACES, space)
    a = in_space("space")("a", store, clock)
    async with anyio.create_task_group() as tasks:
        await tasks.start(a.run)
        await settle()
        assert a.state == "leads"
        await store.delete(LEASES, NAME, "space")
        await remove(store, "space")
        await advance(clock, 20)
        assert a.state == "waits"
        caplog.clear()
        await advance(clock, 4)
        text = 'lease space/devlet-scheduler cannot be created: namespaces "space" not found'
        assert all(text in str(vars(record)["facts"]["err"]) for record in caplog.records)
        assert caplog.messages == ["lease not acquired"] * 2
        await store.create(NAMESPACES, space)
        await advance(clock, 4)
        assert a.state == "leads"
        tasks.cancel_scope.cancel()


async def remove(store: Store, namespace: str) -> None:
    await store.delete(NAMESPACES, namespace)
    found = await store.get(NAMESPACES, namespace)
    await store.update(NAMESPACES, found | {"spec": {"finalizers": []}}, subresource="finalize")


async def test_a_candidate_waits_for_a_system_namespace(store: Store) -> None:
    clock = FakeClock()
    await remove(store, "kube-node-lease")
    a = in_space("kube-node-lease")("a", store, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(a.run)
        await advance(clock, 10)
        assert (a.state, a.leaders) == ("waits", [])
        await store.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
        await advance(clock, 4)
        assert a.state == "leads"
        tasks.cancel_scope.cancel()


def test_two_processes_on_one_host_have_different_identities() -> None:
    assert unique_identity("h").startswith("h_")
    assert unique_identity("h") != unique_identity("h")


def test_times_that_allow_two_leaders_are_refused() -> None:
    with pytest.raises(InvalidInput, match="retry < renew deadline < lease duration"):
        Settings(duration=10, renew_deadline=10)


# A step of a candidate: its process stops or continues, its connection breaks or works again, its lease is deleted.
STEPS = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["pause", "resume", "request", "answer", "hang", "mend", "mend", "delete"]),
    st.sampled_from([1, 2, 4, 9, 14, 16]),
)


async def step(candidate: Candidate, action: str, store: Store) -> None:
    connection = candidate.connection
    match action:
        case "pause":
            candidate.clock.pause()
        case "resume":
            candidate.clock.resume()
        case "request" | "answer":
            connection.cut = action
        case "hang":
            connection.hangs = True
        case "mend":
            connection.cut, connection.hangs = "", False
        case "delete":
            try:
                await store.delete(LEASES, NAME, SPACE)
            except NotFound:
                pass


SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
RATES = st.lists(st.floats(0.9, 1.1), min_size=3, max_size=3)


@settings(max_examples=3, suppress_health_check=SLOW)
@given(st.lists(STEPS, min_size=1, max_size=4), RATES)
@example([(0, "pause", 16), (1, "answer", 9), (0, "resume", 2)], [1.1, 1.0, 0.9])
@example([(0, "hang", 16), (0, "pause", 4), (0, "delete", 1)], [0.9375, 0.96875, 1.0])
def test_two_processes_never_may_write_at_once(
    root: Path, no_jitter: None, steps: list[tuple[int, str, int]], rates: list[float]
) -> None:
    anyio.run(never_two, root, steps, rates)


@pytest.mark.long
@settings(max_examples=60, suppress_health_check=SLOW)
@given(st.lists(STEPS, min_size=1, max_size=10), RATES)
def test_two_processes_never_may_write_at_once_whatever_happens(
    root: Path, no_jitter: None, steps: list[tuple[int, str, int]], rates: list[float]
) -> None:
    anyio.run(never_two, root, steps, rates)


async def never_two(root: Path, steps: list[tuple[int, str, int]], rates: list[float]) -> None:
    clock = FakeClock()
    async with open_store(root / f"{uuid4()}.db") as store, anyio.create_task_group() as tasks:
        found = [Candidate(name, store, clock, rate) for name, rate in zip("abc", rates, strict=True)]
        for candidate in found:
            tasks.start_soon(candidate.run)
        await settle()
        for index, action, seconds in steps:
            await step(found[index], action, store)
            for _ in range(seconds):
                await clock.advance(1)
                await settle()
                assert sum(candidate.may_write for candidate in found) <= 1
                assert sum(candidate.working and candidate.may_write for candidate in found) <= 1
        for candidate in found:
            await step(candidate, "resume", store)
            await step(candidate, "mend", store)
        await advance(clock, 40, 1)
        assert [candidate.working for candidate in found].count(True) == 1
        tasks.cancel_scope.cancel()
