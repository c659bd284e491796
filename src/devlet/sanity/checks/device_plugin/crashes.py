"""A plugin that is killed between calls, or during one, and started again."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.POD_LIFE)

_RULE = "a pod may be killed at any time; its container is restarted and finds what the killed one left behind"
_AGAIN = "start it again and wait for Register"
_CALLERS = 8  # started one after the other, so that a call is always in progress
_KILLS = 3


async def _killed(rig: DevicePluginRig) -> Outcome | None:
    """Kill and restart the plugin and wait until it is registered. Return an outcome if it does not come back."""
    resources, before = rig.resources, rig.kubelet.count
    await rig.driver.kill()
    stale = [path.name for path in rig.leftovers()]
    await rig.driver.start()
    if await rig.ready_again(resources, before):
        await rig.kubelet.registrations.settle(rig.settings.settle)
        return None
    left = f", with {', '.join(stale)} left over" if stale else ""
    return Failed(f"killed and started again{left}, the plugin did not register within {rig.settings.wait:g} s")


@checks.add(
    "DP-KILL-1",
    "The plugin registers again after it was killed",
    rule=f"{_RULE}, such as a socket without a listener",
    how=f"kill -9 it; its socket stays; {_AGAIN}",
    fresh=True,
)
async def killed(rig: DevicePluginRig) -> Outcome:
    return await _killed(rig) or Passed()


@checks.add(
    "DP-KILL-2",
    "Device IDs stay the same after the plugin was killed",
    rule="the kubelet identifies devices by ID: with a new ID it is another device, and its pod has lost the old one",
    source=sources.DEVICE_MANAGER,
    how=f"kill -9 it; {_AGAIN}; compare the IDs in its lists",
    fresh=True,
)
async def same_ids(rig: DevicePluginRig) -> Outcome:
    before = {plugin.resource: {device.ID for device in await plugin.devices()} for plugin in rig.plugins}
    if await _killed(rig):
        raise CannotTell("the plugin did not register again after it was killed: see DP-KILL-1")
    for resource, ids in before.items():
        now = {device.ID for device in await rig.plugin(resource).devices()}
        if now != ids:
            return Failed(f"{resource} had {sorted(ids)[:5]} before the restart, and {sorted(now)[:5]} after it")
    return Passed()


@checks.add(
    "DP-KILL-3",
    "Allocated devices can be allocated again after the plugin was killed",
    rule="the kubelet allocates a device again for another container, whatever the plugin knew before",
    source=sources.DEVICE_MANAGER,
    how=f"call Allocate, kill -9 it after the response, {_AGAIN}; call Allocate with the same IDs",
    fresh=True,
)
async def after_allocate(rig: DevicePluginRig) -> Outcome:
    async def allocated(plugin: PluginClient, ids: list[str]) -> None:
        await plugin.allocate(ids)

    return await _interrupted(rig, allocated, "after Allocate")


@checks.add(
    "DP-KILL-4",
    "The plugin survives being killed during Allocate",
    rule=f"{_RULE}, such as half-written files",
    how=f"call Allocate, kill -9 it before the response, {_AGAIN}; call Allocate with the same IDs",
    fresh=True,
)
async def during_allocate(rig: DevicePluginRig) -> Outcome:
    async def allocating(plugin: PluginClient, ids: list[str]) -> None:
        began = anyio.current_time()
        await plugin.allocate(ids)
        took = anyio.current_time() - began

        async def ask(index: int) -> None:
            await anyio.sleep(took * index / _CALLERS)
            with suppress(PluginError):
                while True:
                    await plugin.allocate(ids)

        async with anyio.create_task_group() as tasks:
            for index in range(_CALLERS):
                tasks.start_soon(ask, index)
            await anyio.sleep(took * (1 + rig.dice.number(0, 100) / 100))
            await rig.driver.kill()

    for _ in range(_KILLS):
        outcome = await _interrupted(rig, allocating, "during Allocate")
        if not isinstance(outcome, Passed):
            return outcome
    return Passed()


@checks.add(
    "DP-KILL-5",
    "The plugin survives being killed before a container starts",
    rule="PreStartContainer may be the first call to a restarted plugin, long after Allocate",
    source=sources.DEVICE_PLUGIN_API,
    how=f"call Allocate, kill -9 it, {_AGAIN}; call PreStartContainer with the same IDs",
    fresh=True,
)
async def before_pre_start(rig: DevicePluginRig) -> Outcome:
    wanting = [plugin for plugin in rig.plugins if (await plugin.options()).pre_start_required]
    if not wanting:
        raise CannotTell("the plugin does not require PreStartContainer")
    ids = {plugin.resource: (await plugin.healthy())[:1] for plugin in wanting}
    for plugin in wanting:
        await plugin.allocate(ids[plugin.resource])
    if outcome := await _killed(rig):
        return outcome
    for resource, wanted in ids.items():
        try:
            await rig.plugin(resource).pre_start(wanted)
        except PluginError as e:
            return Failed(f"{wanted[0]} was allocated before the kill; PreStartContainer after it failed: {e.message}")
    return Passed()


async def _with_devices(rig: DevicePluginRig) -> PluginClient:
    for plugin in rig.plugins:
        if any(device.health == "Healthy" for device in await plugin.devices()):
            return plugin
    raise CannotTell("the plugin has no healthy devices")


async def _interrupted(
    rig: DevicePluginRig, act: Callable[[PluginClient, list[str]], Awaitable[None]], when: str
) -> Outcome:
    plugin = await _with_devices(rig)
    ids = await plugin.healthy()
    await act(plugin, ids)
    if outcome := await _killed(rig):
        return outcome
    try:
        await rig.plugin(plugin.resource).allocate(ids)
    except PluginError as e:
        return Failed(f"killed {when} and started again, the plugin fails to allocate: {e.message}")
    return Passed()
