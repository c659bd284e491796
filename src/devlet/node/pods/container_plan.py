"""What to do next for the containers of an admitted pod. Pure: a plan follows from the pod, its runs and the time.

    init containers one after the other, each to its end ─▶ all others at once
    (a sidecar among them is started in its turn and keeps running)

A container that ended is restarted if `objects.pods.restarts` says so: the first time at once, then after 10 s, 20 s, …
5 min. Starting a container that could not be started is retried with the same delays. The pod is over when none of its
own containers runs or will run again; its sidecars do not count.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec import Struct

from devlet.node.devices.limits import is_plain_init
from devlet.objects.identifiers import ContainerName
from devlet.objects.pods.restarts import is_restarted
from devlet.objects.types.container import Container, ContainerStateWaiting
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import after, parse_time
from devlet.runtime.containers import Run, lost

__all__ = [
    "CRASHING",
    "CREATING",
    "INITIALIZING",
    "History",
    "Plan",
    "Settings",
    "Start",
    "deadline",
    "failed",
    "outcome",
    "own",
    "plan",
    "started",
    "stopped",
    "to_be_tried",
]

CREATING = "ContainerCreating"
INITIALIZING = "PodInitializing"
CRASHING = "CrashLoopBackOff"
SUCCEEDED = "Succeeded"
FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Settings:
    first_restart: float = 10.0  # seconds; doubled each time
    longest_restart: float = 300.0
    forgiven: float = 600.0  # seconds that a container must have run for its failures to be forgotten


class History(Struct, frozen=True):
    """What is remembered of one container besides its newest run."""

    restarts: int = 0  # in a row, none of them after a long run
    failures: int = 0  # in a row, to start it
    failed_at: datetime | None = None
    problem: ContainerStateWaiting | None = None


class Start(Struct, frozen=True):
    container: Container
    number: int


class Plan(Struct, frozen=True):
    """`waiting` has the reason for each container that neither runs nor has ended for good. `wake` is when to look
    again. `outcome` is Succeeded or Failed once nothing will run any more."""

    start: tuple[Start, ...] = ()
    waiting: Mapping[ContainerName, ContainerStateWaiting] = {}
    wake: datetime | None = None
    initialized: bool = False
    outcome: str | None = None


Runs = Mapping[ContainerName, Run]
Histories = Mapping[ContainerName, History]


def plan(pod: Pod, runs: Runs, histories: Histories, now: datetime, settings: Settings = Settings()) -> Plan:
    return _Planner(pod, runs, histories, now, settings).plan()


def deadline(pod: Pod) -> datetime | None:
    """Return when the pod's activeDeadlineSeconds will have passed, or None if there is no deadline."""
    seconds, since = pod.spec.active_deadline_seconds, pod.status.start_time
    return after(parse_time(since), seconds) if seconds is not None and since else None


def started(run: Run | None, history: History, settings: Settings = Settings()) -> History:
    """Return the history of a container that was just started; `run` is its previous run."""
    if run is None or run.exit is None:
        return History()
    lasted = (run.exit.finished_at - run.started_at).total_seconds()
    return History(restarts=1 if lasted >= settings.forgiven else history.restarts + 1)


def failed(history: History, problem: ContainerStateWaiting, now: datetime) -> History:
    """Return the history of a container that could not be started."""
    return History(history.restarts, history.failures + 1, now, problem)


def to_be_tried(history: History) -> History:
    """Return the history of a container that is started without further delay, because the cause may be gone."""
    return History(history.restarts, history.failures, None, None)


def own(pod: Pod) -> tuple[Container, ...]:
    """Return all containers except the sidecars. They decide the outcome of the pod."""
    plain = tuple(each for each in pod.spec.init_containers if not each.is_sidecar)
    return plain + pod.spec.containers


def outcome(containers: Iterable[Container], runs: Runs) -> str:
    """Return the phase of a pod whose containers have all ended."""
    exits = [run.exit for container in containers if (run := runs.get(container.name))]
    return FAILED if any(exit is not None and exit.code for exit in exits) else SUCCEEDED


def stopped(pod: Pod, runs: Runs, now: datetime) -> dict[ContainerName, Run]:
    """Return the runs of a pod that was stopped. A container that never ran counts as lost."""
    return {each.name: runs.get(each.name) or Run("", 0, now, lost(now)) for each in pod.containers}


@dataclass
class _Planner:
    pod: Pod
    runs: Runs
    histories: Histories
    now: datetime
    settings: Settings
    start: list[Start] = field(default_factory=list)
    waiting: dict[ContainerName, ContainerStateWaiting] = field(default_factory=dict)
    wakes: list[datetime] = field(default_factory=list)

    def plan(self) -> Plan:
        initialized = self._initialize()
        if initialized is None:
            return self._over(FAILED, initialized=False)
        if initialized:
            for container in self.pod.spec.containers:
                self._look_at(container)
            if all(self._is_over(container) for container in self.pod.spec.containers):
                return self._over(outcome(self.pod.spec.containers, self.runs), initialized=True)
        for container in self.pod.containers:
            self._wait(container, INITIALIZING if self.pod.spec.init_containers else CREATING)
        return Plan(tuple(self.start), self.waiting, min(self.wakes, default=None), initialized)

    def _initialize(self) -> bool | None:
        """Return True if all init containers have done their part, or None if one failed for good."""
        for container in self.pod.spec.init_containers:
            self._look_at(container)
            run = self.runs.get(container.name)
            if container.is_sidecar:
                if _never_ran(run):
                    return False
            elif self._is_over(container):
                if run is not None and run.exit is not None and run.exit.code:
                    return None
            else:
                return False
        return True

    def _look_at(self, container: Container) -> None:
        """Plan to start the container, or find out when it can be started."""
        run = self.runs.get(container.name)
        if run is not None and run.is_running:
            if run.ends_at is not None:
                self.wakes.append(run.ends_at)
        elif not self._is_over(container):
            history = self.histories.get(container.name, History())
            at = self._due(run, history)
            if at <= self.now:
                self.start.append(Start(container, run.number + 1 if run else 0))
            else:
                self.wakes.append(at)
                self.waiting[container.name] = history.problem or self._crashing(container, history)

    def _due(self, run: Run | None, history: History) -> datetime:
        if history.failed_at is not None:
            return history.failed_at + self._delay(history.failures)
        if run is not None and run.exit is not None and not run.exit.is_lost:
            return run.exit.finished_at + self._delay(self._restarts(run, history))
        return self.now

    def _restarts(self, run: Run, history: History) -> int:
        lasted = (run.exit.finished_at - run.started_at).total_seconds() if run.exit else 0
        return 0 if lasted >= self.settings.forgiven else history.restarts

    def _delay(self, times: int) -> timedelta:
        if times == 0:
            return timedelta()
        wait = self.settings.first_restart * 2.0 ** min(times - 1, 30)
        return timedelta(seconds=min(wait, self.settings.longest_restart))

    def _crashing(self, container: Container, history: History) -> ContainerStateWaiting:
        pod = self.pod
        wait = _text(self._delay(history.restarts))
        subject = f"container={container.name} pod={pod.name}_{pod.metadata.namespace}({pod.uid})"
        return ContainerStateWaiting(reason=CRASHING, message=f"back-off {wait} restarting failed {subject}")

    def _wait(self, container: Container, reason: str) -> None:
        """Note that the container's turn has not come yet."""
        if _never_ran(self.runs.get(container.name)):
            self.waiting.setdefault(container.name, ContainerStateWaiting(reason=reason))

    def _is_over(self, container: Container) -> bool:
        run = self.runs.get(container.name)
        if run is None or run.exit is None:
            return False
        if run.exit.code == 0 and is_plain_init(self.pod, container):
            return True
        return not is_restarted(self.pod, container, run.exit.code)

    def _over(self, outcome: str, *, initialized: bool) -> Plan:
        """Return the last plan. Containers whose turn never came keep waiting."""
        self.waiting.clear()
        for container in self.pod.containers:
            if container.name not in self.runs:
                self._wait(container, INITIALIZING)
        return Plan((), self.waiting, None, initialized, outcome)


def _never_ran(run: Run | None) -> bool:
    """Return True if the container has not run since the machine booted."""
    return run is None or (run.exit is not None and run.exit.is_lost)


def _text(delay: timedelta) -> str:
    """Write a duration as Go does: 10s, 1m20s, 5m0s."""
    minutes, seconds = divmod(int(delay.total_seconds()), 60)
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
