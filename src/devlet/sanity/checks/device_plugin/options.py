"""What a plugin says it wants, and what it does when it is taken at its word."""

from collections.abc import Sequence

from devlet.errors import PluginError, PluginRefused
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_PREFERRED = "call /v1beta1.DevicePlugin/GetPreferredAllocation on its socket, with ids of its list"


@checks.add(
    "DP-OPT-1",
    "It says its options, always the same",
    rule="the kubelet calls GetDevicePluginOptions before it takes a plugin; without an answer it is not registered",
    source=sources.DEVICE_MANAGER,
    how="call /v1beta1.DevicePlugin/GetDevicePluginOptions on its socket, several times",
)
@every_plugin
async def options(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    different = sorted({" ".join(str(await plugin.options()).split()) or "none" for _ in range(3)})
    return Failed(f"it answered with different options: {' and '.join(different)}") if len(different) > 1 else Passed()


async def _asked(rig: DevicePluginRig, plugin: PluginClient) -> list[tuple[list[str], list[str], int, list[str]]]:
    """Requests as a kubelet makes them, with their answers: available, must include, size, preferred."""
    if not (await plugin.options()).get_preferred_allocation_available:
        raise CannotTell("it does not offer GetPreferredAllocation")
    ids = await plugin.healthy()
    asked = []
    for size in sorted({1, max(1, len(ids) // 2), max(1, len(ids) - 1)}):
        available = rig.dice.some(ids, min(len(ids), size + 1), len(ids))
        must = rig.dice.some(available, 0, min(2, size)) if size > 1 else []
        asked.append((available, must, size, await plugin.preferred(available, must, size)))
    return asked


@checks.add(
    "DP-PREF-1",
    "It answers GetPreferredAllocation if it offers it",
    rule="an error of GetPreferredAllocation fails the pod: there is no other choice instead",
    source=sources.DEVICE_MANAGER,
    how=_PREFERRED,
)
@every_plugin
async def answers(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    await _asked(rig, plugin)
    return Passed()


@checks.add(
    "DP-PREF-2",
    "It prefers devices that are available",
    rule="preferred devices are a subset of available_deviceIDs; others are dropped by the kubelet",
    how=_PREFERRED,
)
@every_plugin
async def available_ones(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    for available, _, size, preferred in await _asked(rig, plugin):
        if foreign := sorted(set(preferred) - set(available)):
            return Failed(f"of {available} it was to prefer {size}, and chose {', '.join(foreign)}")
    return Passed()


@checks.add(
    "DP-PREF-3",
    "It prefers what must be included",
    rule="preferred devices include all of must_include_deviceIDs, which the container has already",
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
                f"it had to include {', '.join(wanted)}, and preferred {preferred} without {', '.join(missing)}"
            )
    return Passed()


@checks.add(
    "DP-PREF-4",
    "It prefers as many as are wanted",
    rule="allocation_size says how many devices are wanted, those that must be included counted",
    how=_PREFERRED,
)
@every_plugin
async def right_size(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    short = ""
    for available, _, size, preferred in await _asked(rig, plugin):
        if len(preferred) > size:
            return Failed(f"{size} of {len(available)} devices were wanted, it preferred {len(preferred)}")
        if 0 < len(preferred) < size:
            short = (
                f"{size} of {len(available)} devices were wanted, it preferred {len(preferred)}; the rest is by chance"
            )
    return Warned(short) if short else Passed()


@checks.add(
    "DP-PREF-5",
    "It prefers no device twice",
    rule="preferred devices are a set: one that is named twice is taken once, and another by chance",
    how=_PREFERRED,
)
@every_plugin
async def no_doubles(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    asked = await _asked(rig, plugin)
    ids = await plugin.healthy(2)
    asked.append((ids, [], 2, await plugin.preferred(ids, [], 2)))
    for _, _, _, preferred in asked:
        if len(set(preferred)) < len(preferred):
            return Failed(f"it preferred {preferred}")
    return Passed()


@checks.add(
    "DP-PREF-6",
    "It offers GetPreferredAllocation if it has preferences",
    rule="without get_preferred_allocation_available the kubelet never asks, and the preferences count for nothing",
    how=_PREFERRED,
)
@every_plugin
async def offered(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    if (await plugin.options()).get_preferred_allocation_available:
        return Passed("it does")
    ids = await plugin.healthy(2)
    preferred: Sequence[str] = ()
    try:
        preferred = await plugin.preferred(ids, [], 1)
    except PluginRefused:
        return Passed("it has none")
    except PluginError as e:
        raise CannotTell(f"{e.message}, which no kubelet calls, as it does not offer it") from e
    return (
        Warned(f"it prefers {', '.join(preferred)}, which no kubelet will ask for")
        if preferred
        else Passed("it has none")
    )


_PRE_START = "call /v1beta1.DevicePlugin/PreStartContainer on its socket, with ids of its list"


@checks.add(
    "DP-PRE-1",
    "It answers PreStartContainer if it requires it",
    rule="with pre_start_required no container starts before PreStartContainer has been answered, within 30 seconds",
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
    "It answers PreStartContainer before each start",
    rule="a container that is started again keeps its devices: PreStartContainer comes again, Allocate does not",
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
        raise CannotTell("it does not require PreStartContainer")
