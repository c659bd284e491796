"""The responses of a plugin to Allocate."""

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
_TRIED = 16  # devices that are allocated one by one
_ALWAYS = 2
_BUDGET = 20.0  # seconds, for allocating them
_UNKNOWN = "devlet-sanity-no-such-device"

Answer = pb.ContainerAllocateResponse


async def _grants(rig: DevicePluginRig, plugin: PluginClient) -> dict[str, Answer]:
    """Allocate some devices one by one: fewer if the plugin is slow, but at least two if there are two."""
    ids, began = rig.dice.some(await plugin.healthy(), _TRIED, _TRIED), anyio.current_time()
    granted: dict[str, Answer] = {}
    for id in ids:
        if len(granted) < _ALWAYS or anyio.current_time() - began < _BUDGET:
            granted[id] = _only(id, await plugin.allocate([id]))
    return dict(sorted(granted.items()))


def _only(id: str, answer: pb.AllocateResponse) -> Answer:
    if len(answer.container_responses) != 1:
        raise CannotTell(f"{len(answer.container_responses)} responses for {id}, expected one: see DP-ALLOC-3")
    return answer.container_responses[0]


def _first(problems: Iterable[str]) -> Outcome:
    return next((Failed(problem) for problem in problems if problem), Passed())


@checks.add(
    "DP-ALLOC-1",
    "Every healthy device can be allocated",
    rule="Allocate is called with IDs that the plugin lists as Healthy, and returns what the container gets",
    how=f"{_HOW} with one ID from its list",
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
            return Failed(f"{id} is listed as Healthy, but allocating it failed: {e.message}")
    if longest > rig.settings.answer:
        return Warned(f"Allocate took {longest:.0f} s, during which the kubelet admits no other pod")
    return Passed()


@checks.add(
    "DP-ALLOC-2",
    "All healthy devices can be allocated together, in any order",
    rule="a container may request all devices of a node; the kubelet passes their IDs in no particular order",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with all IDs from its list",
)
@every_plugin
async def all_together(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = rig.dice.shuffled(await plugin.healthy(2))
    answer = await plugin.allocate(ids)
    if len(answer.container_responses) != 1:
        return Failed(
            f"{len(answer.container_responses)} responses for one container with all {len(ids)} devices, expected one"
        )
    return Passed()


@checks.add(
    "DP-ALLOC-3",
    "Allocate returns one response per container, in order",
    rule="AllocateResponse has one ContainerAllocateResponse for each ContainerAllocateRequest",
    how=f"{_HOW} with two container requests of one ID each; compare with the responses to each alone",
)
@every_plugin
async def one_answer_each(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = (await plugin.healthy())[:3]
    alone = [await plugin.allocate([id]) for id in ids]
    together = await plugin.allocate(*([id] for id in ids))
    counts = [len(answer.container_responses) for answer in (*alone, together)]
    if counts != [1] * len(ids) + [len(ids)]:
        return Failed(f"{counts[-1]} responses for {len(ids)} containers, and {counts[0]} for one container")
    for id, one, answer in zip(ids, alone, together.container_responses, strict=True):
        if _sorted(one.container_responses[0]) != _sorted(answer):
            return Failed(f"the response for {id} differs if the call contains other containers as well")
    return Passed()


@checks.add(
    "DP-ALLOC-4",
    "Allocating an unknown device fails",
    rule="a device may disappear between list and Allocate: an error keeps the container from starting without it",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with an ID that it does not list",
)
@every_plugin
async def unknown(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    known = await plugin.healthy()
    for ids in ([_UNKNOWN], [known[0], _UNKNOWN]):
        try:
            await plugin.allocate(ids)
        except PluginRefused:
            continue
        return Failed(f"allocating {', '.join(ids)} succeeded, although {_UNKNOWN} is not listed")
    return Passed()


@checks.add(
    "DP-ALLOC-5",
    "The plugin survives a failed Allocate",
    rule="a failed Allocate fails one pod; the plugin continues to serve others",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with an ID that it does not list, then with one that it lists",
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
        return Failed(f"after a request for an unknown device, allocating {ids[0]} failed: {e.message}")
    if plugin.watch.ended:
        return Failed(f"after a request for an unknown device, ListAndWatch ended: {plugin.watch.ended}")
    return Passed()


@checks.add(
    "DP-ALLOC-6",
    "A device can be allocated again",
    rule="no call reports that a device is free again, so a plugin must not track allocations itself",
    how=f"{_HOW} twice with the same ID",
)
@every_plugin
async def again(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = (await plugin.healthy())[:1]
    before = await plugin.allocate(ids)
    try:
        after = await plugin.allocate(ids)
    except PluginError as e:
        return Failed(f"{ids[0]} was allocated once, and allocating it again failed: {e.message}")
    if [_sorted(one) for one in before.container_responses] != [_sorted(one) for one in after.container_responses]:
        return Warned(
            f"the second response for {ids[0]} differs from the first: a restarted container would get something else"
        )
    return Passed()


@checks.add(
    "DP-ALLOC-7",
    "Concurrent calls of Allocate do not affect each other",
    rule="calls may overlap, and each returns the response to its own request",
    how=f"{_HOW} many times concurrently with different IDs; compare with the responses to each alone",
)
@every_plugin
async def at_once(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    began = anyio.current_time()
    alone = await _grants(rig, plugin)
    times = 4 if anyio.current_time() - began < 1.0 else 1  # a slow plugin may answer one call after the other
    wrong: list[str] = []

    async def ask(id: str) -> None:
        try:
            answer = await plugin.allocate([id])
        except PluginError as e:
            wrong.append(f"{id}: {e.message}")
            return
        if [_sorted(one) for one in answer.container_responses] != [_sorted(alone[id])]:
            wrong.append(f"{id}: the response differs from that to a single call")

    async with anyio.create_task_group() as tasks:
        for id in list(alone) * times:
            tasks.start_soon(ask, id)
    return Failed(f"{len(wrong)} of {times * len(alone)} concurrent calls failed; {wrong[0]}") if wrong else Passed()


@checks.add(
    "DP-ALLOC-8",
    "Environment variables have valid names",
    rule="ContainerAllocateResponse.envs is added to the container's environment, as name=value",
    how=f"{_HOW}, and check envs",
)
@every_plugin
async def environment(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    granted = await _grants(rig, plugin)
    return _first(
        f"{id}: environment variable {name!r}: {'; '.join(env_var_name(name)) or 'its value contains a zero byte'}"
        for id, answer in granted.items()
        for name, value in sorted(answer.envs.items())
        if env_var_name(name) or "\0" in value
    )


@checks.add(
    "DP-ALLOC-9",
    "Device nodes exist on this host",
    rule="DeviceSpec names an existing device, with absolute paths and permissions from r, w and m",
    how=f"{_HOW}, and check devices",
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
    "Mounted paths exist on this host",
    rule="Mount.host_path is mounted into the container; if it does not exist, the container does not start",
    how=f"{_HOW}, and check mounts",
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
    "Container paths are unique",
    rule="of several mounts or devices with the same container path the kubelet uses the first and drops the rest",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW} with all IDs from its list, and look for duplicate container paths",
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
                    return Failed(f"{kind} {part.container_path} in the container maps to {other} and {part.host_path}")
    return Passed()


@checks.add(
    "DP-ALLOC-12",
    "CDI devices have fully qualified names",
    rule="CDIDevice.name is vendor.com/class=name: CDIDevice",
    how=f"{_HOW}, and check cdi_devices",
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
    "CDI devices are defined in CDI specs on this host",
    rule="the runtime looks up CDI devices in the specs on the host; without one, the container does not start",
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
    "Paths in CDI specs exist on this host",
    rule="the device nodes and mounts of a CDI spec are passed to the container by their paths on the host",
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
    "Annotations have valid keys",
    rule="ContainerAllocateResponse.annotations are passed to the runtime with the container",
    how=f"{_HOW}, and check annotations",
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
    "Different devices get different responses",
    rule="a container knows its devices only from the response: if two are equal, it cannot tell the devices apart",
    source=sources.PRACTICE,
    how=f"{_HOW} with each ID alone, and compare the responses",
)
@every_plugin
async def distinct(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await plugin.healthy(2)
    granted = await _grants(rig, plugin)
    different = {str(_sorted(answer)) for answer in granted.values()}
    if len(different) == 1:
        content = " ".join(str(next(iter(granted.values()))).split())[:200] or "an empty response"
        return Warned(f"all {len(granted)} devices that were tried have the same response: {content}")
    return Passed()


@checks.add(
    "DP-ALLOC-17",
    "A response is at most 4 MiB",
    rule="gRPC receives at most 4 MiB by default: a longer response is an error for the kubelet, and the pod fails",
    source=sources.GRPC,
    how=f"{_HOW} with all IDs from its list; add up the bytes of the response",
)
@every_plugin
async def answer_size(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    ids = await plugin.healthy()
    return wire.fits(await plugin.allocate(ids), f"the response for all {len(ids)} devices")


def _of(id: str, problem: str) -> str:
    return f"{id}: {problem}" if problem else ""


def _cdi(granted: dict[str, Answer]) -> list[tuple[str, str]]:
    found = [(id, device.name) for id, answer in granted.items() for device in answer.cdi_devices]
    if not found:
        raise CannotTell("the responses contain no CDI devices")
    return found


def _sorted(answer: Answer) -> Sequence[object]:
    """Return a comparable form of a response, without the order of its parts, which has no meaning."""
    parts = (answer.mounts, answer.devices, answer.cdi_devices)
    return (
        dict(answer.envs),
        dict(answer.annotations),
        *(sorted(part.SerializeToString(deterministic=True) for part in each) for each in parts),
    )
