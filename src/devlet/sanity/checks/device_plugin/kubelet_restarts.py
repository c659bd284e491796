"""Restarts of the kubelet, which removes the plugin's socket and creates a new kubelet.sock."""

import anyio

from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.rig import until
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGINS)

_RULE = "a starting kubelet removes all sockets in the directory; plugins notice this, or the new kubelet.sock, and"
_HOW = "stop the kubelet, remove the sockets in device-plugins, serve kubelet.sock again, and wait for Register"


def _needs_directory(rig: DevicePluginRig) -> None:
    if rig.by_registry:
        raise CannotTell("the plugin is found in the registry directory, which a kubelet does not clear")


@checks.add(
    "DP-AGAIN-1",
    "The plugin registers again after a kubelet restart",
    rule=f"{_RULE} register again: Registration",
    how=_HOW,
    fresh=True,
)
async def again(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources, before = rig.resources, rig.kubelet.count
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        return Failed(
            f"after a kubelet restart {_missing(rig, resources)} was not registered within {rig.settings.wait:g} s"
        )
    return Passed()


@checks.add(
    "DP-AGAIN-2",
    "All devices are listed again after a kubelet restart",
    rule="the first list after a registration replaces all that the kubelet knew: pods keep only listed devices",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}; compare the IDs from ListAndWatch with the earlier ones",
    fresh=True,
)
async def same_devices(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources, before = rig.resources, rig.kubelet.count
    ids = {name: {device.ID for device in await rig.plugin(name).devices()} for name in resources}
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        raise CannotTell("the plugin did not register again: see DP-AGAIN-1")
    for name in sorted(resources):
        now = {device.ID for device in await rig.plugin(name).devices()}
        if gone := ids[name] - now:
            return Failed(f"{name}: {_some(gone)} are no longer listed after a kubelet restart, only {_some(now)}")
    return Passed()


@checks.add(
    "DP-AGAIN-3",
    "The plugin waits for a kubelet that comes back late",
    rule=f"{_RULE} register again; the kubelet may be away for any length of time",
    how="stop the kubelet, remove the sockets, wait a few seconds, serve kubelet.sock, and wait for Register",
    fresh=True,
)
async def late_kubelet(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources, before = rig.resources, rig.kubelet.count
    await rig.restart_kubelet(late=rig.settings.late)
    if not await rig.ready_again(resources, before):
        missed = (
            f"kubelet.sock was gone for {rig.settings.late:g} s; then {_missing(rig, resources)} was not registered"
        )
        return Failed(f"{missed} within {rig.settings.wait:g} s")
    return Passed()


@checks.add(
    "DP-AGAIN-4",
    "The plugin registers after each of several kubelet restarts",
    rule=f"{_RULE} register again, every time",
    how=f"{_HOW}; repeat this three times",
    fresh=True,
)
async def again_and_again(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources = rig.resources
    for number in range(1, 4):
        before = rig.kubelet.count
        await rig.restart_kubelet()
        if not await rig.ready_again(resources, before):
            return Failed(
                f"after restart {number} of the kubelet the plugin did not register within {rig.settings.wait:g} s"
            )
    return Passed()


@checks.add(
    "DP-AGAIN-5",
    "The plugin can start before the kubelet",
    rule="kubelet and plugins start in any order: a plugin waits for kubelet.sock, or exits and is restarted",
    how="start it in a directory without kubelet.sock, and serve kubelet.sock a few seconds later",
    fresh=True,
)
async def first_of_all(rig: DevicePluginRig) -> Outcome:
    resources, before = rig.resources, rig.kubelet.count
    await rig.driver.kill()
    await rig.kubelet.stop()
    rig.remove_sockets()
    await rig.driver.start()
    await until(
        lambda: bool(rig.leftovers() or rig.driver.ending), rig.settings.dial
    )  # some wait for the kubelet first
    await anyio.sleep(rig.settings.late)
    await rig.kubelet.start(clean=True)
    if not await rig.ready_again(resources, before):
        return Failed(
            f"started {rig.settings.late:g} s before the kubelet, the plugin neither registered nor exited "
            f"within {rig.settings.wait:g} s"
        )
    return Passed()


def _missing(rig: DevicePluginRig, resources: set[str]) -> str:
    return " and ".join(sorted(resources - set(rig.kubelet.plugins))) or "the plugin"


def _some(ids: set[str]) -> str:
    shown = ", ".join(sorted(ids)[:5]) or "none"
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more"
