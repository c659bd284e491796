"""What a plugin answers to Allocate."""

from collections.abc import Iterable, Sequence
from functools import partial

import anyio

from devlet.errors import InvalidInput, PluginError, PluginRefused
from devlet.objects.names import annotation_key, env_var_name
from devlet.runtime.cdi import names as cdi_names
from devlet.sanity import host, sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks import wire
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.checks.moments import duration
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_HOW = "call /v1beta1.DevicePlugin/Allocate on its socket"
_TRIED = 16  # devices that are looked at one by one
_ALWAYS = 2
_BUDGET = 20.0  # seconds, for looking at them
_UNKNOWN = "devlet-sanity-no-such-device"

Answer = pb.ContainerAllocateResponse


async def _grants(rig: DevicePluginRig, plugin: PluginClient) -> dict[str, Answer]:
    """What goes with each of some devices; of a slow plugin with fewer, but two if there are two."""
    ids, began = rig.dice.some(await plugin.healthy(), _TRIED, _TRIED), anyio.current_time()
    granted: dict[str, Answer] = {}
    for id in ids:
        if len(granted) < _ALWAYS or anyio.current_time() - began < _BUDGET:
            granted[id] = _only(id, await plugin.allocate([id]))
    return dict(sorted(granted.items()))


def _only(id: str, answer: pb.AllocateResponse) -> Answer:
    if len(answer.container_responses) != 1:
        raise CannotTell(f"for {id} it gave {len(answer.container_responses)} answers instead of one: see DP-ALLOC-3")
    return answer.container_responses[0]


def _first(problems: Iterable[str]) -> Outcome:
    return next((Failed(problem) for problem in problems if problem), Passed())


@checks.add(
    "DP-ALLOC-1",
    "Each healthy device can be allocated",
    rule="Allocate is called with ids that the plugin lists as Healthy, and answers what the container is to get",
    how=f"{_HOW} with one id of its list",
)
@every_plugin
async def each(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids, began, longest = rig.dice.some(await plugin.healthy(), _TRIED, _TRIED), anyio.current_time(), 0.0
    for id in ids:
        if anyio.current_time() - began > _BUDGET:
            break
        try:
            longest = max(longest, await duration(partial(plugin.allocate, [id])))
        except PluginError as e:
            return Failed(f"{id} is listed as Healthy, but {e.message}")
    if longest > rig.settings.answer:
        return Warned(f"it takes {longest:.0f} s to answer, and the kubelet admits no other pod meanwhile")
    return Passed()


@checks.add(
    "DP-ALLOC-2",
    "All healthy devices can be allocated together, in any order",
    rule="a container may want all of a node's devices; the kubelet names their ids in no particular order",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with all ids of its list",
)
@every_plugin
async def all_together(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = rig.dice.shuffled(await plugin.healthy(2))
    answer = await plugin.allocate(ids)
    if len(answer.container_responses) != 1:
        return Failed(f"for all {len(ids)} devices at once it gave {len(answer.container_responses)} answers, not one")
    return Passed()


@checks.add(
    "DP-ALLOC-3",
    "There is one answer for each container, in their order",
    rule="AllocateResponse has one ContainerAllocateResponse for each ContainerAllocateRequest",
    how=f"{_HOW} with two container requests of one id each; compare with the answers to each alone",
)
@every_plugin
async def one_answer_each(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = (await plugin.healthy())[:3]
    alone = [await plugin.allocate([id]) for id in ids]
    together = await plugin.allocate(*([id] for id in ids))
    counts = [len(answer.container_responses) for answer in (*alone, together)]
    if counts != [1] * len(ids) + [len(ids)]:
        return Failed(f"for {len(ids)} containers it gave {counts[-1]} answers, for one {counts[0]}")
    for id, one, answer in zip(ids, alone, together.container_responses, strict=True):
        if _sorted(one.container_responses[0]) != _sorted(answer):
            return Failed(f"the answer for {id} is another one when other containers are asked for in the same call")
    return Passed()


@checks.add(
    "DP-ALLOC-4",
    "An unknown device is refused",
    rule="a device that went between list and Allocate cannot be had: an error keeps the container from starting",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with an id that it does not list",
)
@every_plugin
async def unknown(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    known = await plugin.healthy()
    for ids in ([_UNKNOWN], [known[0], _UNKNOWN]):
        try:
            await plugin.allocate(ids)
        except PluginRefused:
            continue
        return Failed(f"it granted {', '.join(ids)}, though it does not list {_UNKNOWN}")
    return Passed()


@checks.add(
    "DP-ALLOC-5",
    "An error is not its end",
    rule="a refused Allocate fails one pod; the plugin goes on to serve the others",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with an id that it does not list, then with one that it does",
)
@every_plugin
async def after_an_error(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    try:
        await plugin.allocate([_UNKNOWN])
    except PluginError:
        pass
    try:
        await plugin.allocate(ids[:1])
    except PluginError as e:
        return Failed(f"after it was asked for an unknown device, {ids[0]} cannot be had: {e.message}")
    return Failed(f"its stream ended: {plugin.watch.ended}") if plugin.watch.ended else Passed()


@checks.add(
    "DP-ALLOC-6",
    "A device can be allocated again",
    rule="nobody tells a plugin that a device is free again: there is no call for it, so it must not keep accounts",
    how=f"{_HOW} twice with the same id",
)
@every_plugin
async def again(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = (await plugin.healthy())[:1]
    before = await plugin.allocate(ids)
    try:
        after = await plugin.allocate(ids)
    except PluginError as e:
        return Failed(f"{ids[0]} was allocated before and cannot be allocated again: {e.message}")
    if [_sorted(one) for one in before.container_responses] != [_sorted(one) for one in after.container_responses]:
        return Warned(
            f"the second answer for {ids[0]} is not the first one; a restarted container would get something else"
        )
    return Passed()


@checks.add(
    "DP-ALLOC-7",
    "Several pods may be allocated at once",
    rule="calls may overlap; each gets the answer to what it asked",
    how=f"{_HOW} many times at once with different ids; compare with the answers to each alone",
)
@every_plugin
async def at_once(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    began = anyio.current_time()
    alone = await _grants(rig, plugin)
    times = 4 if anyio.current_time() - began < 1.0 else 1  # it may answer one after the other
    wrong: list[str] = []

    async def ask(id: str) -> None:
        try:
            answer = await plugin.allocate([id])
        except PluginError as e:
            wrong.append(f"{id}: {e.message}")
            return
        if [_sorted(one) for one in answer.container_responses] != [_sorted(alone[id])]:
            wrong.append(f"{id}: the answer is another one than when it is asked for alone")

    async with anyio.create_task_group() as tasks:
        for id in list(alone) * times:
            tasks.start_soon(ask, id)
    return Failed(f"{len(wrong)} of {times * len(alone)} calls at once went wrong; {wrong[0]}") if wrong else Passed()


@checks.add(
    "DP-ALLOC-8",
    "Environment variables have names",
    rule="ContainerAllocateResponse.envs goes into the container's environment, as name=value",
    how=f"{_HOW}, and look at envs",
)
@every_plugin
async def environment(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    granted = await _grants(rig, plugin)
    return _first(
        f"{id}: environment variable {name!r}: {'; '.join(env_var_name(name)) or 'its value has a zero byte'}"
        for id, answer in granted.items()
        for name, value in sorted(answer.envs.items())
        if env_var_name(name) or "\0" in value
    )


@checks.add(
    "DP-ALLOC-9",
    "Device nodes are devices of this host",
    rule="DeviceSpec names an existing device, with absolute paths and permissions of r, w and m",
    how=f"{_HOW}, and look at devices",
)
@every_plugin
async def device_nodes(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    granted = await _grants(rig, plugin)
    return _first(
        _of(id, host.device_problem(node.host_path, node.container_path, node.permissions))
        for id, answer in granted.items()
        for node in answer.devices
    )


@checks.add(
    "DP-ALLOC-10",
    "Mounts are of paths that exist on this host",
    rule="Mount.host_path is mounted into the container; if it does not exist no container starts",
    how=f"{_HOW}, and look at mounts",
)
@every_plugin
async def mounts(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    granted = await _grants(rig, plugin)
    return _first(
        _of(id, host.mount_problem(mount.host_path, mount.container_path))
        for id, answer in granted.items()
        for mount in answer.mounts
    )


@checks.add(
    "DP-ALLOC-11",
    "One path in the container is one thing",
    rule="of several mounts or devices with one path in the container the kubelet takes the first, drops the rest",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with all ids of its list, and look for paths that come twice",
)
@every_plugin
async def no_conflicts(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    answer = await plugin.allocate(await plugin.healthy())
    for one in answer.container_responses:
        for kind, parts in (("device", one.devices), ("mount", one.mounts)):
            seen: dict[str, str] = {}
            for part in parts:
                other = seen.setdefault(part.container_path, part.host_path)
                if other != part.host_path:
                    return Failed(f"{kind} {part.container_path} in the container is both {other} and {part.host_path}")
    return Passed()


@checks.add(
    "DP-ALLOC-12",
    "CDI devices have fully qualified names",
    rule="CDIDevice.name is vendor.com/class=name: CDIDevice",
    how=f"{_HOW}, and look at cdi_devices",
)
@every_plugin
async def cdi_device_names(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    for id, name in _cdi(await _grants(rig, plugin)):
        try:
            cdi_names.parse(name)
        except InvalidInput as e:
            return Failed(f"{id}: {e}")
    return Passed()


@checks.add(
    "DP-ALLOC-13",
    "CDI devices are in CDI specs of this host",
    rule="the runtime looks a CDI device up in the specs of its directories; one that is not there stops the container",
    source=sources.CDI,
    how=f"{_HOW}, and look for each of cdi_devices in /etc/cdi and /var/run/cdi",
)
@every_plugin
async def cdi_devices(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    wanted = [name for _, name in _cdi(await _grants(rig, plugin))]
    resolution = rig.cdi().resolve(wanted)
    return _first(f"CDI device {name}: {reason}" for name, reason in resolution.missing.items())


@checks.add(
    "DP-ALLOC-14",
    "CDI specs name devices of this host",
    rule="a CDI spec's device nodes and mounts are given to the container by their paths on the host",
    source=sources.CDI,
    how=f"{_HOW}, and look up the containerEdits of each of cdi_devices",
)
@every_plugin
async def cdi_edits(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    found = rig.cdi().resolve([name for _, name in _cdi(await _grants(rig, plugin))])
    for known in found.devices:
        edits = known.file.spec.container_edits + known.device.container_edits
        nodes = [(node.host_path or node.path, node.path) for node in edits.device_nodes or ()]
        mounted = [(mount.host_path, mount.container_path) for mount in edits.mounts or ()]
        for problem in (host.mount_problem(*paths) for paths in (*nodes, *mounted)):
            if problem:
                return Failed(f"CDI device {known.name}: {problem}")
    return Passed()


@checks.add(
    "DP-ALLOC-15",
    "Annotations have keys of annotations",
    rule="ContainerAllocateResponse.annotations are handed to the runtime with the container",
    how=f"{_HOW}, and look at annotations",
)
@every_plugin
async def annotations(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    granted = await _grants(rig, plugin)
    return _first(
        f"{id}: annotation {key!r}: {'; '.join(annotation_key(key))}"
        for id, answer in granted.items()
        for key in sorted(answer.annotations)
        if annotation_key(key)
    )


@checks.add(
    "DP-ALLOC-16",
    "Different devices are told apart",
    rule="the answer is all that a container learns of its devices: the same for two means that it gets the same one",
    source=sources.PRACTICE,
    how=f"{_HOW} with each id alone, and compare the answers",
)
@every_plugin
async def told_apart(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await plugin.healthy(2)
    granted = await _grants(rig, plugin)
    different = {str(_sorted(answer)) for answer in granted.values()}
    if len(different) == 1:
        same = f"all {len(granted)} devices that were tried are answered with the same"
        return Warned(f"{same}: {' '.join(str(next(iter(granted.values()))).split())[:200] or 'nothing'}")
    return Passed()


@checks.add(
    "DP-ALLOC-17",
    "Its answers have at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default: a longer answer is an error for the kubelet, and the pod fails",
    source=sources.GRPC,
    how=f"{_HOW} with all ids of its list; add up the bytes of the answer",
)
@every_plugin
async def answer_size(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    return wire.fits(await plugin.allocate(ids), f"the answer for all {len(ids)} devices")


def _of(id: str, problem: str) -> str:
    return f"{id}: {problem}" if problem else ""


def _cdi(granted: dict[str, Answer]) -> list[tuple[str, str]]:
    found = [(id, device.name) for id, answer in granted.items() for device in answer.cdi_devices]
    if not found:
        raise CannotTell("it does not give CDI devices")
    return found


def _sorted(answer: Answer) -> Sequence[object]:
    """Without the order of its parts, which means nothing."""
    parts = (answer.mounts, answer.devices, answer.cdi_devices)
    return (
        dict(answer.envs),
        dict(answer.annotations),
        *(sorted(part.SerializeToString(deterministic=True) for part in each) for each in parts),
    )
