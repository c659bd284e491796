"""What a plugin does when the kubelet is restarted: its socket is removed, and kubelet.sock is another one."""

import anyio

from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.rig import until
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGINS)

_RULE = "a kubelet that starts removes all sockets of the directory; plugins notice that, or the new kubelet.sock, and"
_HOW = "stop the kubelet, remove the sockets in device-plugins, serve kubelet.sock anew, and wait for Register"


def _needs_directory(rig: DevicePluginRig) -> None:
    if rig.by_registry:
        raise CannotTell("it is found in the registry directory, which a kubelet does not clear")


@checks.add(
    "DP-AGAIN-1",
    "It registers again after the kubelet was restarted",
    rule=f"{_RULE} register again: Registration",
    how=_HOW,
    fresh=True,
)
async def again(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources, before = rig.resources, rig.kubelet.count
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        return Failed(f"{_missing(rig, resources)} was not registered again within {rig.settings.wait:g} s")
    return Passed()


@checks.add(
    "DP-AGAIN-2",
    "It is complete again after the kubelet was restarted",
    rule="the first list after a registration replaces all that the kubelet knew: pods keep only listed devices",
    source=sources.DEVICE_MANAGER,
    how=f"{_HOW}; compare the ids that ListAndWatch sends with those from before",
    fresh=True,
)
async def same_devices(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources, before = rig.resources, rig.kubelet.count
    ids = {name: {device.ID for device in await rig.plugin(name).devices()} for name in resources}
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        raise CannotTell("it did not register again")
    for name in sorted(resources):
        now = {device.ID for device in await rig.plugin(name).devices()}
        if gone := ids[name] - now:
            return Failed(f"{name}: {_some(gone)} are not listed any more, only {_some(now)}")
    return Passed()


@checks.add(
    "DP-AGAIN-3",
    "It waits for a kubelet that takes its time to come back",
    rule=f"{_RULE} register again; between the two the kubelet may take any time",
    how="stop the kubelet, remove the sockets, wait some seconds, serve kubelet.sock, and wait for Register",
    fresh=True,
)
async def late_kubelet(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources, before = rig.resources, rig.kubelet.count
    await rig.restart_kubelet(late=rig.settings.late)
    if not await rig.ready_again(resources, before):
        missed = (
            f"kubelet.sock was away for {rig.settings.late:g} s; then {_missing(rig, resources)} was not registered"
        )
        return Failed(f"{missed} within {rig.settings.wait:g} s")
    return Passed()


@checks.add(
    "DP-AGAIN-4",
    "It registers after each of several restarts",
    rule=f"{_RULE} register again, every time",
    how=f"{_HOW}; do it three times",
    fresh=True,
)
async def again_and_again(rig: DevicePluginRig) -> Outcome:
    _needs_directory(rig)
    resources = rig.resources
    for number in range(1, 4):
        before = rig.kubelet.count
        await rig.restart_kubelet()
        if not await rig.ready_again(resources, before):
            return Failed(f"it did not register after restart {number} of the kubelet, within {rig.settings.wait:g} s")
    return Passed()


@checks.add(
    "DP-AGAIN-5",
    "It can be started before the kubelet",
    rule="nobody orders the start of kubelet and plugins: a plugin waits for kubelet.sock, or ends and is restarted",
    how="start it in a directory without kubelet.sock, and serve kubelet.sock some seconds later",
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
            f"it was started {rig.settings.late:g} s before the kubelet, and neither registered nor ended "
            f"within {rig.settings.wait:g} s"
        )
    return Passed()


def _missing(rig: DevicePluginRig, resources: set[str]) -> str:
    return " and ".join(sorted(resources - set(rig.kubelet.plugins))) or "it"


def _some(ids: set[str]) -> str:
    shown = ", ".join(sorted(ids)[:5]) or "none"
    return shown if len(ids) <= 5 else f"{shown} and {len(ids) - 5} more"
