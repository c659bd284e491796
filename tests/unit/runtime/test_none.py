import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devlet.errors import InvalidInput, NotCreated, Unavailable
from devlet.objects.documents import view
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.containers import Config, Run
from devlet.runtime.description import Wanted
from devlet.runtime.none import NoneRuntime, ending
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

MAIN = ContainerName("main")
AT = "2024-12-31T23:59:00Z"


def pod(annotations: dict[str, str] | None = None, *, policy: str = "Always", **status: Any) -> Pod:
    containers = {
        "containers": [{"name": "main"}, {"name": "other"}],
        "initContainers": [{"name": "prepare"}, {"name": "helper", "restartPolicy": "Always"}],
    }
    return view(
        Pod,
        {
            "metadata": {"uid": "u1", "name": "p", "namespace": "default", "annotations": annotations or {}},
            "spec": {**containers, "restartPolicy": policy},
            "status": status,
        },
    )


def container(one: Pod, name: str) -> Container:
    return next(each for each in one.containers if each.name == name)


def running(name: str = "main", count: int = 0) -> dict[str, Any]:
    state = {"running": {"startedAt": AT}}
    return {"name": name, "state": state, "restartCount": count, "containerID": f"none://u1/{name}"}


def ended(name: str = "main", code: int = 0, count: int = 0) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "startedAt": AT, "finishedAt": AT, "reason": "Completed"}}
    return {"name": name, "state": state, "restartCount": count, "containerID": f"none://u1/{name}"}


async def run(runtime: NoneRuntime, one: Pod, name: str = "main") -> Run:
    return (await runtime.runs(one))[ContainerName(name)]


async def start(runtime: NoneRuntime, one: Pod, name: str = "main", number: int = 0) -> Run:
    return await runtime.start(one, container(one, name), number, None)


async def test_a_container_runs_as_soon_as_it_is_started() -> None:
    clock = FakeClock()
    runtime, one = NoneRuntime(clock), pod()
    assert await runtime.runs(one) == {}
    await start(runtime, one)
    assert await run(runtime, one) == Run("none://u1/main", 0, clock.now())
    await clock.advance(1e6)
    assert (await run(runtime, one)).is_running


async def test_init_containers_end_at_once_with_zero_and_sidecars_run_on() -> None:
    runtime, one = NoneRuntime(FakeClock()), pod()
    prepared = await start(runtime, one, "prepare")
    assert prepared.exit is not None and prepared.exit.code == 0
    assert (await start(runtime, one, "helper")).is_running


async def test_annotations_end_containers_after_a_time_with_a_code() -> None:
    clock = FakeClock()
    runtime, one = NoneRuntime(clock), pod({"devlet.dev/run-for": "30s", "devlet.dev/exit-code": "3"})
    first = await start(runtime, one)
    assert first.is_running and first.ends_at == clock.now() + timedelta(seconds=30)
    await clock.advance(31)
    exit = (await run(runtime, one)).exit
    assert exit is not None and (exit.code, exit.reason) == (3, "Error")
    assert exit.finished_at == first.ends_at


async def test_an_annotation_for_one_container_takes_precedence() -> None:
    one = pod({"devlet.dev/exit-code": "1", "devlet.dev/exit-code.main": "2", "devlet.dev/run-for.prepare": "5s"})
    codes = {name: end.code if (end := ending(one, container(one, name))) else None for name in ("main", "other")}
    assert codes == {"main": 2, "other": 1}
    prepare = ending(one, container(one, "prepare"))
    assert prepare is not None and (prepare.after, prepare.code) == (timedelta(seconds=5), 0)
    assert ending(one, container(one, "helper")) is None


async def test_an_annotation_may_be_set_while_the_container_runs() -> None:
    clock = FakeClock()
    runtime = NoneRuntime(clock)
    await start(runtime, pod())
    await clock.advance(10)
    exit = (await run(runtime, pod({"devlet.dev/run-for": "4s"}))).exit
    assert exit is not None and exit.code == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run-for", "soon"),
        ("run-for", "-1s"),
        ("run-for", ""),
        ("exit-code", "256"),
        ("exit-code", "-1"),
        ("exit-code", "x"),
    ],
)
async def test_an_invalid_annotation_is_named_when_the_container_is_started(key: str, value: str) -> None:
    one = pod({f"devlet.dev/{key}": value})
    with pytest.raises(InvalidInput, match=f"annotation devlet.dev/{key}"):
        await start(NoneRuntime(FakeClock()), one)


async def test_a_very_long_time_is_not_an_error() -> None:
    one = pod({"devlet.dev/run-for": f"{'9' * 60}h"})
    assert (await start(NoneRuntime(FakeClock()), one)).is_running


async def test_an_invalid_annotation_does_not_affect_a_running_container() -> None:
    runtime = NoneRuntime(FakeClock())
    await start(runtime, pod())
    assert (await run(runtime, pod({"devlet.dev/run-for": "soon"}))).is_running


async def test_stopping_ends_running_containers_with_zero() -> None:
    clock = FakeClock()
    runtime, one = NoneRuntime(clock), pod({"devlet.dev/exit-code.other": "7"})
    for name in ("main", "other", "helper"):
        await start(runtime, one, name)
    await clock.advance(5)
    for _ in range(2):
        await runtime.stop(one)
    codes = {name: each.exit.code if each.exit else None for name, each in (await runtime.runs(one)).items()}
    assert codes == {"main": 0, "other": 7, "helper": 0}


async def test_the_config_of_a_container_is_kept_until_its_pod_is_forgotten() -> None:
    runtime, one = NoneRuntime(FakeClock()), pod()
    wanted = Config(env=(("A", "1"),))
    await runtime.start(one, container(one, "main"), 0, wanted)
    assert runtime.config(one.uid, MAIN) == wanted
    await runtime.forget(one.uid)
    assert runtime.config(one.uid, MAIN) is None and await runtime.runs(one) == {}


async def test_after_a_restart_start_times_are_taken_from_the_status(root: Path) -> None:
    clock = FakeClock()
    one = pod({"devlet.dev/run-for": "50s"}, containerStatuses=[running(count=2)])
    await NoneRuntime(clock, "b1", root / "state").recover([])
    runtime = NoneRuntime(clock, "b1", root / "state")
    await runtime.recover([one])
    found = await run(runtime, one)
    assert found.number == 2 and found.exit is not None
    assert found.exit.finished_at == clock.now() - timedelta(seconds=10)


async def test_a_container_that_waits_for_its_restart_is_restored_from_its_last_state() -> None:
    waiting = ended(code=1, count=3) | {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    waiting["lastState"] = ended(code=1)["state"]
    found = await run(NoneRuntime(FakeClock()), pod(containerStatuses=[waiting]))
    assert found.number == 3 and found.exit is not None and found.exit.code == 1


async def test_a_container_that_was_never_started_has_no_run() -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert await NoneRuntime(FakeClock()).runs(pod(containerStatuses=[waiting])) == {}


@pytest.mark.spec("DP-9.11")
async def test_containers_from_before_a_reboot_are_lost(root: Path) -> None:
    clock, file = FakeClock(), root / "state"
    one = pod(containerStatuses=[running()], initContainerStatuses=[ended("prepare"), running("helper")])
    await NoneRuntime(clock, "b1", file).recover([])
    same = NoneRuntime(clock, "b1", file)
    await same.recover([one])
    assert not any(each.exit and each.exit.is_lost for each in (await same.runs(one)).values())
    rebooted = NoneRuntime(clock, "b2", file)
    await rebooted.recover([one])
    assert all(each.exit and each.exit.is_lost for each in (await rebooted.runs(one)).values())


async def test_lost_containers_are_remembered_across_restarts_after_the_reboot(root: Path) -> None:
    clock, file = FakeClock(), root / "state"
    before, again = pod(containerStatuses=[running()]), pod(containerStatuses=[running(count=1)])
    await NoneRuntime(clock, "b1", file).recover([])
    await NoneRuntime(clock, "b2", file).recover([before])
    later = NoneRuntime(clock, "b2", file)
    await later.recover([before])
    exit = (await run(later, before)).exit
    assert exit is not None and exit.is_lost
    newest = NoneRuntime(clock, "b2", file)
    await newest.recover([again])
    assert (await run(newest, again)).is_running


@pytest.mark.parametrize(
    ("policy", "code", "lost"),
    [("Always", 0, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
async def test_containers_that_had_ended_for_good_are_not_changed_by_a_reboot(
    root: Path, policy: str, code: int, lost: bool
) -> None:
    one = pod(policy=policy, containerStatuses=[ended(code=code), running("other")])
    await NoneRuntime(FakeClock(), "b1", root / "state").recover([])
    runtime = NoneRuntime(FakeClock(), "b2", root / "state")
    await runtime.recover([one])
    exit, other = (await run(runtime, one)).exit, (await run(runtime, one, "other")).exit
    assert exit is not None and exit.is_lost == lost
    assert other is not None and other.is_lost


@pytest.mark.parametrize(("code", "lost"), [(42, True), (1, False), (0, False)])
async def test_a_container_with_restart_rules_that_would_restart_it_is_lost_with_a_reboot(
    root: Path, code: int, lost: bool
) -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    own = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    document = {
        "metadata": {"uid": "u1", "name": "p", "namespace": "default"},
        "spec": {"containers": [own, {"name": "other"}], "restartPolicy": "Always"},
        "status": {"containerStatuses": [ended(code=code), running("other")]},
    }
    one = view(Pod, document)
    await NoneRuntime(FakeClock(), "b1", root / "state").recover([])
    runtime = NoneRuntime(FakeClock(), "b2", root / "state")
    await runtime.recover([one])
    exit = (await run(runtime, one)).exit
    assert exit is not None and exit.is_lost == lost


async def test_without_its_file_all_containers_count_as_lost(root: Path) -> None:
    for content in (None, b"", b"\xff{", b'{"bootID": 1}'):
        if content is not None:
            (root / "state").write_bytes(content)
        one = pod(containerStatuses=[running()])
        runtime = NoneRuntime(FakeClock(), "b1", root / "state")
        await runtime.recover([one])
        exit = (await run(runtime, one)).exit
        assert exit is not None and exit.is_lost


async def test_a_file_that_cannot_be_written_is_an_error(root: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be written"):
        await NoneRuntime(FakeClock(), "b1", root / "missing" / "state").recover([])


async def test_the_runtime_has_a_name_and_a_version() -> None:
    assert NoneRuntime(FakeClock()).version.startswith("none://")


# CDI devices


GPUS = {
    "cdiVersion": "1.1.0",
    "kind": "vendor.com/gpu",
    "containerEdits": {"env": ["DRIVER=7"], "mounts": [{"hostPath": "/opt/gpu", "containerPath": "/usr/lib/gpu"}]},
    "devices": [
        {
            "name": name,
            "containerEdits": {
                "env": [f"GPU_{name}=1"],
                "deviceNodes": [{"path": f"/dev/gpu{name}", "hostPath": "/dev/null", "permissions": "rw"}],
            },
        }
        for name in ("0", "1")
    ],
}
NIC = {
    "cdiVersion": "1.1.0",
    "kind": "vendor.com/nic",
    "devices": [
        {
            "name": "eth",
            "containerEdits": {
                "hooks": [{"hookName": "createRuntime", "path": "/bin/link", "args": ["link", "up"], "timeout": 5}],
                "additionalGids": [44],
                "netDevices": [{"hostInterfaceName": "eth7", "name": "net0"}],
            },
        }
    ],
}
NULL = {"type": "c", "major": 1, "minor": 3}


def cdi(folder: Path, **specs: Any) -> NoneRuntime:
    for name, spec in specs.items():
        (folder / f"{name}.json").write_text(json.dumps(spec))
    return NoneRuntime(FakeClock(), cdi=Cache([folder]))


def named(*devices: str) -> Config:
    return Config(cdi_devices=tuple(f"vendor.com/{device}" for device in devices))


@pytest.mark.spec("DN-7.1.3")
async def test_cdi_devices_are_resolved_when_a_container_starts(root: Path) -> None:
    runtime, one = cdi(root, gpu=GPUS, nic=NIC), pod()
    config = Config(
        env=(("PLUGIN", "x"),),
        cdi_devices=named("gpu=1", "nic=eth").cdi_devices,
        annotations=(("cdi.k8s.io/a", "vendor.com/gpu=0"),),
    )
    await runtime.start(one, container(one, "main"), 0, config)
    found = runtime.oci(one.uid, MAIN)
    assert found is not None
    mode = found["linux"]["devices"][0]["fileMode"]  # of this machine
    assert found == {
        "ociVersion": "1.3.0",
        "process": {
            "env": ["PLUGIN=x", "DRIVER=7", "GPU_1=1", "GPU_0=1"],
            "user": {"additionalGids": [44]},
        },
        "mounts": [{"destination": "/usr/lib/gpu", "source": "/opt/gpu"}],
        "hooks": {"createRuntime": [{"path": "/bin/link", "args": ["link", "up"], "timeout": 5}]},
        "linux": {
            "devices": [{"path": path, **NULL, "fileMode": mode} for path in ("/dev/gpu1", "/dev/gpu0")],
            "resources": {"devices": [{"allow": True, **NULL, "access": "rw"}] * 2},
            "netDevices": {"eth7": {"name": "net0"}},
        },
        "annotations": {"cdi.k8s.io/a": "vendor.com/gpu=0"},
    }
    await runtime.forget(one.uid)
    assert runtime.oci(one.uid, MAIN) is None


@pytest.mark.spec("DN-7.3.4")
async def test_a_container_whose_cdi_device_is_unknown_is_not_started(root: Path) -> None:
    runtime, one = cdi(root, gpu=GPUS), pod()
    with pytest.raises(
        NotCreated, match=r"unresolvable CDI devices vendor\.com/gpu=9 \(vendor\.com/gpu=9: no such device\)"
    ):
        await runtime.start(one, container(one, "main"), 0, named("gpu=0", "gpu=9"))
    assert await runtime.runs(one) == {}
    assert (runtime.oci(one.uid, MAIN), runtime.config(one.uid, MAIN)) == (None, None)


@pytest.mark.spec("DN-7.3.3")
async def test_a_container_with_a_conflicting_cdi_device_is_not_started_until_the_conflict_ends(root: Path) -> None:
    runtime, one = cdi(root, gpu=GPUS, again=GPUS), pod()
    with pytest.raises(NotCreated, match=r"in conflict, it is defined in .*again\.json and .*gpu\.json"):
        await runtime.start(one, container(one, "main"), 0, named("gpu=0"))
    (root / "again.json").unlink()
    assert (await runtime.start(one, container(one, "main"), 0, named("gpu=0"))).is_running


async def test_a_container_with_a_cdi_device_without_its_node_is_not_started(root: Path) -> None:
    node = {"deviceNodes": [{"path": "/dev/no-such-gpu"}]}
    runtime, one = cdi(root, gpu=GPUS | {"devices": [{"name": "0", "containerEdits": node}]}), pod()
    with pytest.raises(NotCreated, match=r"CDI devices vendor\.com/gpu=0: device node /dev/no-such-gpu has no type"):
        await runtime.start(one, container(one, "main"), 0, named("gpu=0"))


async def test_a_changed_file_affects_only_the_next_start(root: Path) -> None:
    runtime, one = cdi(root, gpu=GPUS), pod()
    await runtime.start(one, container(one, "main"), 0, named("gpu=0"))
    cdi(root, gpu=GPUS | {"containerEdits": {"env": ["DRIVER=8"]}})
    await runtime.start(one, container(one, "other"), 0, named("gpu=0"))
    values = {
        name: next(
            each for each in (runtime.oci(one.uid, ContainerName(name)) or {})["process"]["env"] if "DRIVER" in each
        )
        for name in ("main", "other")
    }
    assert values == {"main": "DRIVER=7", "other": "DRIVER=8"}
    await runtime.start(one, container(one, "main"), 1, named("gpu=0"))
    assert "DRIVER=8" in (runtime.oci(one.uid, MAIN) or {})["process"]["env"]


async def test_after_a_restart_a_running_container_is_described_again_and_kept(root: Path) -> None:
    runtime, one = cdi(root, gpu=GPUS), pod(containerStatuses=[running()])
    await runtime.runs(one)
    assert runtime.oci(one.uid, MAIN) is None
    wanted = [Wanted(one, container(one, "main"), named("gpu=0")), Wanted(one, container(one, "other"), named("gpu=9"))]
    first, second = await runtime.described(wanted)
    assert first.added["process"]["env"] == ["DRIVER=7", "GPU_0=1"]
    assert second.notes[0].startswith("cannot be started: unresolvable CDI devices vendor.com/gpu=9")
    (root / "gpu.json").unlink()
    assert (await runtime.described(wanted))[0] is first
    assert runtime.oci(one.uid, MAIN) is first.oci


async def test_without_cdi_directories_cdi_devices_are_not_resolved() -> None:
    runtime, one = NoneRuntime(FakeClock()), pod()
    assert (await runtime.start(one, container(one, "main"), 0, named("gpu=0"))).is_running
    assert runtime.oci(one.uid, MAIN) is None
