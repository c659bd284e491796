"""Registration of device plugins that the kubelet finds in `plugins_registry`."""

from pathlib import Path

from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.kubelet import Registration
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.REGISTRATION_API)

_HOW = "call /pluginregistration.Registration/GetInfo on its socket in plugins_registry"


def _found(rig: DevicePluginRig) -> list[Registration]:
    found = [each for each in rig.registrations if each.found_at]
    if not found:
        raise CannotTell("the plugin calls Register and has no socket in the registry directory")
    return found


@checks.add(
    "DP-WATCH-1",
    "GetInfo reports the type DevicePlugin",
    rule="PluginInfo.type is DevicePlugin, CSIPlugin or DRAPlugin, and determines what a kubelet calls next",
    how=_HOW,
)
async def type_(rig: DevicePluginRig) -> Outcome:
    for each in _found(rig):
        if each.type != "DevicePlugin":
            return Failed(f"the type is {each.type!r}; {each.problem or 'expected DevicePlugin'}")
    return Passed()


@checks.add(
    "DP-WATCH-2",
    "GetInfo reports support for v1beta1",
    rule="PluginInfo.supported_versions contains v1beta1, or the kubelet refuses the plugin",
    how=_HOW,
)
async def versions(rig: DevicePluginRig) -> Outcome:
    for each in _found(rig):
        if "v1beta1" not in each.versions:
            return Failed(f"the supported versions are {', '.join(each.versions) or 'none'}, expected v1beta1")
    return Passed()


@checks.add(
    "DP-WATCH-3",
    "The endpoint is the path of a socket",
    rule="PluginInfo.endpoint is the absolute path of the socket that serves, or empty for the same socket",
    how=_HOW,
)
async def endpoint(rig: DevicePluginRig) -> Outcome:
    for each in _found(rig):
        if each.endpoint and not Path(each.endpoint).is_absolute():
            return Failed(f"the endpoint {each.endpoint!r} is not the absolute path of a socket")
        if each.problem:
            return Failed(f"the endpoint {each.endpoint or each.found_at}: {each.problem}")
    return Passed()


@checks.add(
    "DP-WATCH-4",
    "The plugin can be registered by a restarted kubelet",
    rule="a restarted kubelet finds the socket and calls the same methods as the first one did",
    source=sources.PLUGIN_MANAGER,
    how=f"{_HOW}, then NotifyRegistrationStatus; repeat both",
    fresh=True,
)
async def again(rig: DevicePluginRig) -> Outcome:
    resources, before = {each.resource for each in _found(rig)}, rig.kubelet.count
    await rig.kubelet.stop()
    await rig.kubelet.start()
    if not await rig.ready_again(resources, before):
        problems = [each.problem for each in rig.registrations if each.problem]
        return Failed(f"the next kubelet could not register the plugin: {problems[-1] if problems else 'no socket'}")
    return Passed()


@checks.add(
    "DP-WATCH-5",
    "GetInfo always returns the same answer",
    rule="GetInfo is called at each registration and must not depend on earlier calls",
    source=sources.PLUGIN_MANAGER,
    how=f"{_HOW}, several times",
)
async def stable(rig: DevicePluginRig) -> Outcome:
    for path in sorted({each.found_at for each in _found(rig) if each.found_at}):
        first, *others = [await rig.kubelet.ask(path) for _ in range(4)]
        for each in others:
            if each != first:
                return Failed(f"GetInfo first returned {_line(first)}, and then {_line(each)}")
    return Passed()


def _line(message: object) -> str:
    return " ".join(str(message).split())


@checks.add(
    "DP-WATCH-6",
    "The plugin survives a refused registration",
    rule="the kubelet sends plugin_registered=false if it cannot register a plugin, and retries",
    source=sources.PLUGIN_MANAGER,
    how=f"{_HOW}, then NotifyRegistrationStatus with plugin_registered=false; repeat both, with true",
    fresh=True,
)
async def refused(rig: DevicePluginRig) -> Outcome:
    resources, before = {each.resource for each in _found(rig)}, rig.kubelet.count
    await rig.kubelet.stop()
    rig.kubelet.refusals = 1
    await rig.kubelet.start()
    if not await rig.ready_again(resources, before + 1):
        last = rig.registrations[-1].problem
        return Failed(f"after one refusal the plugin could not be registered: {last or 'no socket'}")
    return Passed()
