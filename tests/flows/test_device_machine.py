"""Everything that can happen to a device manager, in any order, with crashes before and after each write.

Whatever happens: no device has two pods, none is lost, a pod that was told that it has its devices still has them after
a crash, and the file on disk says what the manager says.
"""

import asyncio
import json
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from devlet.errors import NotAllocated, PluginError, Unavailable
from devlet.kit.backoff import Backoff
from devlet.kit.clock import SystemClock
from devlet.kit.parts import running
from devlet.node.devices.manager import DeviceManager, Settings
from devlet.objects.identifiers import ContainerName, DeviceID, ResourceName
from devlet.objects.types.container import Container, ResourceRequirements
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import Pod, PodSpec
from devlet.plugins.device_plugin import Offer
from devlet.plugins.devices import Device
from devlet.state import device_checkpoint
from devlet.state.checkpoint_file import CheckpointFile
from devlet.testing.fake_device_plugin import FakeDevicePlugin
from devlet.testing.waiting import deadline, until

MAIN = ContainerName("main")
RESOURCES = [ResourceName("vendor.com/gpu"), ResourceName("vendor.com/nic")]
DEVICES = 4
PODS = [f"pod-{number}" for number in range(6)]
QUICK = Settings(reconnect=Backoff(0.01, 0.05))


class Crash(Exception):
    """The process ends here: whatever it would have written later is not written."""


class FragileFile(CheckpointFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.crash = ""  # before or after the next write
        self.dead = False

    def write(self, content: bytes) -> None:
        if self.dead:
            raise Crash
        if self.crash == "before":
            self.dead = True
            raise Crash
        super().write(content)
        if self.crash == "after":
            self.dead = True
            raise Crash


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = Path(tempfile.mkdtemp(prefix="dv"))
        self.plugins: dict[ResourceName, FakeDevicePlugin] = {}
        self.wanted: dict[str, Pod] = {}  # pods that exist
        self.promised: dict[str, set[str]] = {}  # what they were told that they have
        self.do(self.start())

    def teardown(self) -> None:
        try:
            self.do(self.everything_is_free_in_the_end())
        finally:
            self.do(self.end())
            for plugin in self.plugins.values():
                self.do(plugin.stop())
            self.runner.close()
            shutil.rmtree(self.directory)

    def do(self, work: Any) -> Any:
        return self.runner.run(_bounded(work))

    # The manager's life

    async def start(self) -> None:
        """In a task of its own, which may die of a crash."""
        self.file = FragileFile(self.directory / device_checkpoint.FILE_NAME)
        self.manager = DeviceManager(self.directory, SystemClock(), QUICK, file=self.file)
        self.stop, ready = anyio.Event(), anyio.Event()
        self.task = asyncio.get_running_loop().create_task(self.live(ready))
        await ready.wait()
        await self.manager.retain([pod.uid for pod in self.wanted.values()])
        for plugin in self.plugins.values():
            await self.register(plugin)

    async def live(self, ready: anyio.Event) -> None:
        try:
            async with running(self.manager.run):
                ready.set()
                await self.stop.wait()
        except* Crash:
            pass

    async def end(self) -> None:
        self.stop.set()
        await self.task

    async def back_after_a_crash(self) -> None:
        if self.file.dead:
            await self.end()
            await self.start()

    @rule()
    def restart(self) -> None:
        self.do(self.end())
        self.do(self.start())

    @rule(when=st.sampled_from(["before", "after"]))
    def crash_at_the_next_write(self, when: str) -> None:
        self.file.crash = when

    # Plugins

    async def register(self, plugin: FakeDevicePlugin) -> None:
        try:
            await self.manager.register(Offer(ResourceName(plugin.resource), plugin.path))
        except (PluginError, Unavailable):
            return
        await self.listed(plugin)

    async def listed(self, plugin: FakeDevicePlugin) -> None:
        expected = sum(device.is_healthy for device in plugin.devices)
        await until(self.dead_or_listed(plugin, expected))

    def dead_or_listed(self, plugin: FakeDevicePlugin, expected: int) -> Any:
        async def read() -> bool:
            found = self.manager.capacity().allocatable.get(ResourceName(plugin.resource))
            return self.file.dead or found == expected

        return read

    @rule(resource=st.sampled_from(RESOURCES))
    def plugin_comes(self, resource: ResourceName) -> None:
        async def come() -> None:
            if (old := self.plugins.pop(resource, None)) is not None:
                await old.stop()
            plugin = FakeDevicePlugin(self.directory, resource, DEVICES)
            await plugin.start()
            self.plugins[resource] = plugin
            await self.register(plugin)
            await self.back_after_a_crash()

        self.do(come())

    @precondition(lambda self: self.plugins)
    @rule(data=st.data())
    def plugin_dies(self, data: st.DataObject) -> None:
        plugin = self.plugins.pop(data.draw(st.sampled_from(sorted(self.plugins))))

        async def die() -> None:
            await plugin.stop()
            await until(self.dead_or_listed(plugin, 0))
            await self.back_after_a_crash()

        self.do(die())

    @precondition(lambda self: self.plugins)
    @rule(data=st.data(), sick=st.sets(st.integers(0, DEVICES - 1)), gone=st.sets(st.integers(0, DEVICES - 1)))
    def list_changes(self, data: st.DataObject, sick: set[int], gone: set[int]) -> None:
        plugin = self.plugins[data.draw(st.sampled_from(sorted(self.plugins)))]
        ids = [number for number in range(DEVICES) if number not in gone]
        plugin.set_devices(Device(DeviceID(f"dev-{n}"), "Sick" if n in sick else "Healthy") for n in ids)

        async def change() -> None:
            await self.listed(plugin)
            await self.back_after_a_crash()

        self.do(change())

    # Pods

    @rule(
        names=st.lists(st.sampled_from(PODS), unique=True, min_size=1),
        resource=st.sampled_from(RESOURCES),
        count=st.integers(1, 2),
        fails=st.booleans(),
    )
    def admit(self, names: list[str], resource: ResourceName, count: int, fails: bool) -> None:
        """Several at once; the plugin may refuse."""
        plugin = self.plugins.get(resource)
        if plugin is not None and fails:
            plugin.fail("Allocate")

        async def together() -> None:
            async with anyio.create_task_group() as tasks:
                for name in names:
                    pod = self.wanted.setdefault(name, _pod(name, resource, count))
                    tasks.start_soon(self.admit_one, name, pod)
            await self.back_after_a_crash()

        self.do(together())
        if plugin is not None:
            plugin.recover("Allocate")

    async def admit_one(self, name: str, pod: Pod) -> None:
        try:
            async with self.manager.attempt(pod) as attempt:
                await attempt.allocate(pod.spec.containers[0], None)
                await attempt.commit()
        except (NotAllocated, PluginError, Unavailable):
            return
        held = {str(id) for ids in self.manager.container_devices(pod.uid, MAIN).values() for id in ids}
        if held or name in self.promised:  # nothing, for a resource that nobody has heard of yet
            assert self.promised.setdefault(name, held) == held

    @precondition(lambda self: self.wanted)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        pod = self.wanted.pop(name := data.draw(st.sampled_from(sorted(self.wanted))))
        self.promised.pop(name, None)

        async def release() -> None:
            await self.manager.release(pod.uid)
            await self.back_after_a_crash()

        self.do(release())

    # What holds

    @invariant()
    def a_device_has_one_pod(self) -> None:
        owners: dict[tuple[str, str], str] = {}
        for name, pod in self.wanted.items():
            for resource, ids in self.manager.container_devices(pod.uid, MAIN).items():
                for id in ids:
                    assert owners.setdefault((resource, id), name) == name
        shown = {(r.resource, r.id): r.pod for r in self.manager.device_records() if r.pod}
        assert shown == owners

    @invariant()
    def a_promise_is_kept(self) -> None:
        for name, promised in self.promised.items():
            held = self.manager.container_devices(self.wanted[name].uid, MAIN)
            assert {id for ids in held.values() for id in ids} == promised

    @invariant()
    def the_disk_says_the_same(self) -> None:
        self.do(self.compare_with_disk())

    async def compare_with_disk(self) -> None:
        if self.file.crash:
            return
        await self.manager.checkpoint.save()
        found = json.loads(self.file.path.read_bytes())["Data"]["PodDeviceEntries"] or []
        on_disk = {entry["PodUID"]: {id for ids in entry["DeviceIDs"].values() for id in ids} for entry in found}
        in_memory = {r.pod for r in self.manager.device_records() if r.pod}
        assert on_disk.keys() == in_memory
        for uid, ids in on_disk.items():
            assert {r.id for r in self.manager.device_records() if r.pod == uid} == ids

    async def everything_is_free_in_the_end(self) -> None:
        self.file.crash = ""
        await self.manager.retain([])
        self.wanted, self.promised = {}, {}
        for resource in RESOURCES:
            if (plugin := self.plugins.get(resource)) is None:
                continue
            plugin.set_devices(DEVICES)
            await self.listed(plugin)
            pod = self.wanted[resource] = _pod(f"all-{resource}", resource, DEVICES)
            await self.admit_one(resource, pod)
            assert len(self.promised[resource]) == DEVICES


async def _bounded(work: Any) -> Any:
    async with AsyncExitStack() as stack:
        stack.enter_context(deadline())
        return await work


def _pod(name: str, resource: str, count: int) -> Pod:
    container = Container(name=MAIN, resources=ResourceRequirements(limits={resource: str(count)}))
    return Pod(metadata=ObjectMeta(uid=name, name=name), spec=PodSpec(containers=(container,)))


Machine.TestCase.settings = settings(
    max_examples=settings().max_examples // 5,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_devices_are_never_lost_or_given_twice = Machine.TestCase
