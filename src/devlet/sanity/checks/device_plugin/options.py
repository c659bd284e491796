"""The options of a plugin, and the optional methods GetPreferredAllocation and PreStartContainer."""

from collections.abc import Sequence

from devlet.errors import PluginError, PluginRefused
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_PREFERRED = "call /v1beta1.DevicePlugin/GetPreferredAllocation on its socket, with IDs from its list"


@checks.add(
    "DP-OPT-1",
    "GetDevicePluginOptions always returns the same options",
    rule="the kubelet calls GetDevicePluginOptions before it registers a plugin; without an answer it refuses it",
    source=sources.DEVICE_MANAGER,
    how="call /v1beta1.DevicePlugin/GetDevicePluginOptions on its socket, several times",
)
@every_plugin
async def options(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    different = sorted({" ".join(str(await plugin.options()).split()) or "none" for _ in range(3)})
    return Failed(f"different options were returned: {' and '.join(different)}") if len(different) > 1 else Passed()


async def _asked(rig: DevicePluginRig, plugin: PluginClient) -> list[tuple[list[str], list[str], int, list[str]]]:
    """Send requests as a kubelet does, and return each with its response: available, must include, size, preferred."""
    if not (await plugin.options()).get_preferred_allocation_available:
        raise CannotTell("the plugin does not offer GetPreferredAllocation")
    ids = await plugin.healthy()
    asked = []
    for size in sorted({1, max(1, len(ids) // 2), max(1, len(ids) - 1)}):
        available = rig.dice.some(ids, min(len(ids), size + 1), len(ids))
        must = rig.dice.some(available, 0, min(2, size)) if size > 1 else []
        asked.append((available, must, size, await plugin.preferred(available, must, size)))
    return asked


@checks.add(
    "DP-PREF-1",
    "GetPreferredAllocation succeeds if it is offered",
    rule="an error of GetPreferredAllocation fails the pod: the kubelet does not choose devices itself instead",
    source=sources.DEVICE_MANAGER,
    how=_PREFERRED,
)
@every_plugin
async def answers(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await _asked(rig, plugin)
    return Passed()


@checks.add(
    "DP-PREF-2",
    "Preferred devices are available",
    rule="preferred devices are a subset of available_deviceIDs; the kubelet drops others",
    how=_PREFERRED,
)
@every_plugin
async def available_ones(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    for available, _, size, preferred in await _asked(rig, plugin):
        if foreign := sorted(set(preferred) - set(available)):
            return Failed(f"{size} of {available} were requested, but {', '.join(foreign)} was preferred")
    return Passed()


@checks.add(
    "DP-PREF-3",
    "Preferred devices include those that must be included",
    rule="preferred devices include all of must_include_deviceIDs, which the container already has",
    how=_PREFERRED,
)
@every_plugin
async def must_include(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    asked = await _asked(rig, plugin)
    ids = await plugin.healthy(2)
    must = ids[-1:]
    asked.append((ids, must, 1, await plugin.preferred(ids, must, 1)))
    for _, wanted, _, preferred in asked:
        if missing := sorted(set(wanted) - set(preferred)) if preferred else []:
            return Failed(
                f"{', '.join(wanted)} had to be included, but {preferred} was preferred, without {', '.join(missing)}"
            )
    return Passed()


@checks.add(
    "DP-PREF-4",
    "As many devices are preferred as requested",
    rule="allocation_size is the number of requested devices, including those that must be included",
    how=_PREFERRED,
)
@every_plugin
async def right_size(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    short = ""
    for available, _, size, preferred in await _asked(rig, plugin):
        if len(preferred) > size:
            return Failed(f"{size} of {len(available)} devices were requested, but {len(preferred)} were preferred")
        if 0 < len(preferred) < size:
            short = (
                f"{size} of {len(available)} devices were requested, but {len(preferred)} were preferred; the kubelet"
                " chooses the rest"
            )
    return Warned(short) if short else Passed()


@checks.add(
    "DP-PREF-5",
    "Preferred devices are unique",
    rule="preferred devices are a set: a device named twice counts once, and the kubelet chooses another one",
    how=_PREFERRED,
)
@every_plugin
async def no_doubles(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    asked = await _asked(rig, plugin)
    ids = await plugin.healthy(2)
    asked.append((ids, [], 2, await plugin.preferred(ids, [], 2)))
    for _, _, _, preferred in asked:
        if len(set(preferred)) < len(preferred):
            return Failed(f"a device was preferred twice: {preferred}")
    return Passed()


@checks.add(
    "DP-PREF-6",
    "GetPreferredAllocation is offered if the plugin implements it",
    rule="without get_preferred_allocation_available the kubelet never calls the method, so it has no effect",
    how=_PREFERRED,
)
@every_plugin
async def offered(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    if (await plugin.options()).get_preferred_allocation_available:
        return Passed("it is offered")
    ids = await plugin.healthy(2)
    preferred: Sequence[str] = ()
    try:
        preferred = await plugin.preferred(ids, [], 1)
    except PluginRefused:
        return Passed("it is not implemented")
    except PluginError as e:
        raise CannotTell(f"GetPreferredAllocation is not offered, and a call failed: {e.message}") from e
    return (
        Warned(f"GetPreferredAllocation returns {', '.join(preferred)}, but is not offered, so no kubelet calls it")
        if preferred
        else Passed("it has no preferences")
    )


_PRE_START = "call /v1beta1.DevicePlugin/PreStartContainer on its socket, with IDs from its list"


@checks.add(
    "DP-PRE-1",
    "PreStartContainer succeeds if it is required",
    rule="with pre_start_required no container starts before PreStartContainer has succeeded, within 30 seconds",
    how=_PRE_START,
)
@every_plugin
async def pre_start(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await _required(plugin)
    ids = await plugin.healthy()
    await plugin.allocate(ids[:1])
    await plugin.pre_start(ids[:1])
    return Passed()


@checks.add(
    "DP-PRE-2",
    "PreStartContainer can be called before each start",
    rule="a restarted container keeps its devices: PreStartContainer is called again, Allocate is not",
    how=f"{_PRE_START}, several times",
)
@every_plugin
async def pre_start_again(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await _required(plugin)
    ids = await plugin.healthy()
    await plugin.allocate(ids)
    for number in range(1, 4):
        try:
            await plugin.pre_start(ids)
        except PluginError as e:
            return Failed(f"call {number} for the same devices: {e.message}")
    return Passed()


async def _required(plugin: PluginClient) -> None:
    if not (await plugin.options()).pre_start_required:
        raise CannotTell("the plugin does not require PreStartContainer")
