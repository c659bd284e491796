"""A plugin that is stopped with SIGTERM, as the runtime stops a pod that is deleted."""

from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.PRACTICE)

_HOW = "send it SIGTERM"


async def _terminated(rig: DevicePluginRig) -> bool:
    return await rig.terminate(rig.settings.stop)


@checks.add(
    "DP-STOP-1",
    "The plugin exits on SIGTERM",
    rule="a pod that is deleted gets SIGTERM, and SIGKILL after its grace period of 30 seconds",
    source=sources.POD_LIFE,
    how=f"{_HOW}; it should exit in less than 30 seconds",
    fresh=True,
)
async def ends(rig: DevicePluginRig) -> Outcome:
    if not await _terminated(rig):
        return Failed(f"the plugin still runs {rig.settings.stop:g} s after SIGTERM")
    return Passed()


@checks.add(
    "DP-STOP-2",
    "The plugin removes its sockets when it exits",
    rule="a socket without a listener looks like a plugin, and is in the way of the next one",
    how=f"{_HOW}; look into device-plugins and plugins_registry",
    fresh=True,
)
async def removes_sockets(rig: DevicePluginRig) -> Outcome:
    await _terminated(rig)
    left = [str(path) for path in rig.leftovers() if path.is_socket()]
    return Failed(f"left over after SIGTERM: {', '.join(left)}") if left else Passed()


@checks.add(
    "DP-STOP-3",
    "The plugin leaves no files in the kubelet's directories",
    rule="device-plugins belongs to the kubelet, and no other program removes files that plugins leave there",
    source=sources.DEVICE_PLUGINS,
    how=f"{_HOW}; look into device-plugins and plugins_registry",
    fresh=True,
)
async def leaves_nothing(rig: DevicePluginRig) -> Outcome:
    await _terminated(rig)
    left = [str(path) for path in rig.leftovers() if not path.is_socket()]
    return Failed(f"left over after SIGTERM: {', '.join(left)}") if left else Passed()


@checks.add(
    "DP-STOP-4",
    "The plugin exits even if streams are open",
    rule="the kubelet never closes ListAndWatch: a plugin that waits for its streams to end waits forever",
    source=sources.DEVICE_MANAGER,
    how=f"call ListAndWatch and keep it open; {_HOW}",
    fresh=True,
)
async def ends_with_streams(rig: DevicePluginRig) -> Outcome:
    for plugin in rig.plugins:
        for _ in range(2):
            stream = plugin.follow()
            await stream.until(lambda watch: watch.count > 0, rig.settings.answer)
    if not await _terminated(rig):
        return Failed(f"with open streams the plugin still runs {rig.settings.stop:g} s after SIGTERM")
    return Passed()


@checks.add(
    "DP-STOP-5",
    "The plugin can be started again after it was stopped",
    rule="a rolling update stops and starts the plugin, and the new instance registers like the old one",
    how=f"{_HOW}, start it again and wait for Register",
    fresh=True,
)
async def starts_again(rig: DevicePluginRig) -> Outcome:
    resources, before = rig.resources, rig.kubelet.count
    await _terminated(rig)
    await rig.start_again()
    if not await rig.ready_again(resources, before):
        return Failed(f"stopped and started again, the plugin did not register within {rig.settings.wait:g} s")
    return Passed()
