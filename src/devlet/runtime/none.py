"""A runtime that runs nothing: a started container counts as running.

Annotations of the pod end its containers:

devlet.dev/run-for: 30s               the regular containers end this long after their start
devlet.dev/exit-code: "1"             with this code; without run-for, at once
devlet.dev/run-for.NAME, devlet.dev/exit-code.NAME    the same for one container, which may be an init container

Otherwise plain init containers end at once with 0, and all others run until their pod is deleted, which ends them with
0. After a restart of devlet, the state is restored from the statuses of the pods. They do not say whether the machine
was rebooted in between, so a small file has the machine's boot id and the runs that an earlier reboot ended.

What a container would have got is computed when it is started, and kept. As in other runtimes, a container whose CDI
devices cannot be resolved is not started.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct, field

from devlet.errors import InvalidInput, Unavailable
from devlet.kit import atomic_file, durations
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.identifiers import ContainerName, PodUID
from devlet.objects.pods.restarts import is_restarted
from devlet.objects.release import DEVLET
from devlet.objects.types.container import Container, ContainerStateTerminated, ContainerStatus
from devlet.objects.types.pod import Pod
from devlet.objects.values.timestamps import parse_time
from devlet.runtime.cdi.apply import Document
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.containers import Config, Exit, Run, lost, reason_for
from devlet.runtime.description import Description, Descriptions, Wanted

__all__ = ["EXIT_CODE", "RUN_FOR", "STATE_FILE", "NoneRuntime", "ending"]

log = logging.getLogger(__name__)

RUN_FOR = "devlet.dev/run-for"
EXIT_CODE = "devlet.dev/exit-code"
STATE_FILE = "runtime_none_state"  # below the root

_LONGEST = 100 * 365 * 86_400.0  # seconds; longer times are cut to this

Runs = dict[ContainerName, Run]


class _State(Struct, frozen=True, rename="camel"):
    """`lost`: the number of the last run of each container that a reboot has ended."""

    boot_id: str = field(name="bootID")
    lost: dict[PodUID, dict[ContainerName, int]] = {}
    version: int = 1


class NoneRuntime:
    """If `state` is None, reboots are not detected. If `cdi` is None, CDI devices are not resolved, and there are no
    descriptions of containers."""

    def __init__(self, clock: Clock, boot_id: str = "", state: Path | None = None, *, cdi: Cache | None = None) -> None:
        self._clock = clock
        self._state = _State(boot_id)
        self._file = state
        self._recovered_at = clock.now()
        self._runs: dict[PodUID, Runs] = {}
        self._configs: dict[PodUID, dict[ContainerName, Config | None]] = {}
        self._descriptions = Descriptions(cdi)

    @property
    def version(self) -> str:
        return f"none://{DEVLET}"

    async def recover(self, pods: Sequence[Pod]) -> None:
        """Restore the state, and save it before the first container is started after a boot. If the file is missing,
        the boot in which containers were started is unknown, and their devices are probably lost as well: all
        containers count as lost."""
        if self._file is None:
            return
        self._recovered_at = self._clock.now()
        before = await anyio.to_thread.run_sync(_read, self._file)
        if before is not None and before.boot_id == self._state.boot_id:
            present = {pod.uid for pod in pods}
            gone = {uid: names for uid, names in before.lost.items() if uid in present}
        else:
            gone = {pod.uid: names for pod in pods if (names := _ended_by_reboot(pod))}
        self._state = _State(self._state.boot_id, gone)
        if self._state != before:
            await anyio.to_thread.run_sync(_write, self._file, self._state)

    async def runs(self, pod: Pod) -> Mapping[ContainerName, Run]:
        if pod.uid not in self._runs:
            self._runs[pod.uid] = self._remembered(pod)
        runs = self._runs[pod.uid]
        for container in pod.containers:
            if (run := runs.get(container.name)) and run.is_running:
                runs[container.name] = self._at_present(pod, container, run)
        return dict(runs)

    async def start(self, pod: Pod, container: Container, number: int, config: Config | None) -> Run:
        """Start the container. Raise NotCreated if it cannot have its CDI devices."""
        ending(pod, container)  # otherwise a mistake in an annotation would show only later
        wanted = Wanted(pod, container, config)
        description = await self._descriptions.make(wanted)
        run = Run(f"none://{pod.uid}/{container.name}", number, self._clock.now())
        self._runs.setdefault(pod.uid, {})[container.name] = self._at_present(pod, container, run)
        self._configs.setdefault(pod.uid, {})[container.name] = config
        self._descriptions.keep(wanted, description)
        return self._runs[pod.uid][container.name]

    async def stop(self, pod: Pod) -> None:
        now = self._clock.now()
        for name, run in (await self.runs(pod)).items():
            if run.is_running:
                self._runs[pod.uid][name] = msgspec.structs.replace(run, exit=_exit(0, now), ends_at=None)

    async def forget(self, pod: PodUID) -> None:
        self._runs.pop(pod, None)
        self._descriptions.forget(pod)
        self._configs.pop(pod, None)

    def config(self, pod: PodUID, container: ContainerName) -> Config | None:
        """Return what the container would have got when it was last started."""
        return self._configs.get(pod, {}).get(container)

    def oci(self, pod: PodUID, container: ContainerName) -> Document | None:
        """Return the OCI spec that the container would have had when it was last started. Return None if it is unknown,
        as after a restart of devlet until `described` is called."""
        found = self._descriptions.get(pod, container)
        return found.oci if found is not None else None

    async def described(self, wanted: Sequence[Wanted]) -> list[Description]:
        """Describe what each container would have got, or what it would get now if it was started before a restart of
        devlet. If a container cannot be started, the description says why."""
        return await self._descriptions.all(wanted, lasting=self._is_running)

    def _is_running(self, wanted: Wanted) -> bool:
        run = self._runs.get(wanted.pod.uid, {}).get(wanted.container.name)
        return run is not None and run.is_running

    def _at_present(self, pod: Pod, container: Container, run: Run) -> Run:
        """Return the run as of now. Annotations may change while a container runs; invalid ones are ignored then."""
        try:
            end = ending(pod, container)
        except InvalidInput:
            return run
        if end is None:
            return msgspec.structs.replace(run, ends_at=None)
        at = run.started_at + end.after
        ended = _exit(end.code, at) if at <= self._clock.now() else None
        return msgspec.structs.replace(run, exit=ended, ends_at=None if ended else at)

    def _remembered(self, pod: Pod) -> Runs:
        """Return the runs in the pod's status, with those that a reboot ended as lost."""
        gone = self._state.lost.get(pod.uid, {})
        runs: Runs = {}
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            run = _run(status)
            if run is not None and run.number <= gone.get(status.name, -1):
                run = msgspec.structs.replace(run, exit=lost(self._recovered_at))
            if run is not None:
                runs[status.name] = run
        return runs


class _End(Struct, frozen=True):
    after: timedelta
    code: int


def ending(pod: Pod, container: Container) -> _End | None:
    """Return when and how a container of the pod ends by itself, or None if it does not. Raise InvalidInput for an
    invalid annotation."""
    is_init = any(each.name == container.name for each in pod.spec.init_containers)
    after = _annotation(pod, RUN_FOR, container, own_only=is_init)
    code = _annotation(pod, EXIT_CODE, container, own_only=is_init)
    if after is None and code is None and (not is_init or container.is_sidecar):
        return None
    return _End(_seconds(after), _code(code))


def _exit(code: int, at: datetime) -> Exit:
    return Exit(code, at, reason_for(code))


def _annotation(pod: Pod, key: str, container: Container, *, own_only: bool) -> str | None:
    annotations = pod.metadata.annotations
    own = annotations.get(f"{key}.{container.name}")
    return own if own is not None or own_only else annotations.get(key)


def _seconds(text: str | None) -> timedelta:
    try:
        return timedelta(seconds=min(durations.parse(text if text is not None else "0"), _LONGEST))
    except ValueError as e:
        raise InvalidInput(f"annotation {RUN_FOR}: {e}") from e


def _code(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 255):
        raise InvalidInput(f'annotation {EXIT_CODE}: "{text[:32]}" is not an exit code from 0 to 255')
    return int(text)


def _run(status: ContainerStatus) -> Run | None:
    """Return the run of a container, or None if it was never started."""
    ended = status.state.terminated or (status.last_state.terminated if not status.state.running else None)
    if status.state.running is not None:
        return Run(status.container_id, status.restart_count, _moment(status.state.running.started_at))
    if ended is None or not (status.container_id or ended.container_id):
        return None
    return Run(status.container_id, status.restart_count, _moment(ended.started_at), _ended(ended))


def _ended(state: ContainerStateTerminated) -> Exit:
    return Exit(state.exit_code, _moment(state.finished_at), state.reason, state.message)


def _moment(text: str | None) -> datetime:
    return parse_time(text or "1970-01-01T00:00:00Z")


def _ended_by_reboot(pod: Pod) -> dict[ContainerName, int]:
    """Return the runs that a reboot ends. Containers that had ended for good keep their state, except for init
    containers, which run again."""
    if pod.is_finished:
        return {}
    containers = {container.name: container for container in pod.spec.containers}
    found = {status.name: status.restart_count for status in pod.status.init_container_statuses if _run(status)}
    for status in pod.status.container_statuses:
        ended, container = status.state.terminated, containers.get(status.name, Container())
        if _run(status) and (ended is None or is_restarted(pod, container, ended.exit_code)):
            found[status.name] = status.restart_count
    return found


def _read(path: Path) -> _State | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as e:
        log.warning("state of the runtime not read", extra=facts(path=path, err=e))
        return None


def _write(path: Path, state: _State) -> None:
    try:
        atomic_file.write(path, msgspec.json.encode(state))
    except OSError as e:
        raise Unavailable(f"{path} cannot be written: {e.strerror or e}") from e
