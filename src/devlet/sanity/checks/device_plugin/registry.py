"""Plugins that are found in `plugins_registry`, where the kubelet calls them."""

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
        raise CannotTell("it registers by itself, and is not found in the registry directory")
    return found


@checks.add(
    "DP-WATCH-1",
    "It introduces itself as a device plugin",
    rule="PluginInfo.type is DevicePlugin, CSIPlugin or DRAPlugin, and decides what a kubelet calls next",
    how=_HOW,
)
async def type_(rig: DevicePluginRig) -> Outcome:
    for each in _found(rig):
        if each.type != "DevicePlugin":
            return Failed(f"its type is {each.type!r}; {each.problem or 'expected DevicePlugin'}")
    return Passed()


@checks.add(
    "DP-WATCH-2",
    "It supports v1beta1",
    rule="one of PluginInfo.supported_versions is v1beta1, or the kubelet refuses it",
    how=_HOW,
)
async def versions(rig: DevicePluginRig) -> Outcome:
    for each in _found(rig):
        if "v1beta1" not in each.versions:
            return Failed(f"its versions are {', '.join(each.versions) or 'none'}, without v1beta1")
    return Passed()


@checks.add(
    "DP-WATCH-3",
    "Its endpoint is the path of a socket",
    rule="PluginInfo.endpoint is the whole path of the socket that serves, or empty if it is the same one",
    how=_HOW,
)
async def endpoint(rig: DevicePluginRig) -> Outcome:
    for each in _found(rig):
        if each.endpoint and not Path(each.endpoint).is_absolute():
            return Failed(f"its endpoint {each.endpoint!r} is not the whole path of a socket")
        if each.problem:
            return Failed(f"its endpoint {each.endpoint or each.found_at}: {each.problem}")
    return Passed()


@checks.add(
    "DP-WATCH-4",
    "It introduces itself to each kubelet",
    rule="a kubelet that was restarted finds the socket, and calls the same methods as the first did",
    source=sources.PLUGIN_MANAGER,
    how=f"{_HOW}, then NotifyRegistrationStatus; do both again",
    fresh=True,
)
async def again(rig: DevicePluginRig) -> Outcome:
    resources, before = {each.resource for each in _found(rig)}, rig.kubelet.count
    await rig.kubelet.stop()
    await rig.kubelet.start()
    if not await rig.ready_again(resources, before):
        problems = [each.problem for each in rig.registrations if each.problem]
        return Failed(f"it was found by one kubelet and not by the next: {problems[-1] if problems else 'no socket'}")
    return Passed()


@checks.add(
    "DP-WATCH-5",
    "It says the same of itself each time",
    rule="GetInfo is called at each registration, and must not depend on how often it was",
    source=sources.PLUGIN_MANAGER,
    how=f"{_HOW}, several times",
)
async def stable(rig: DevicePluginRig) -> Outcome:
    for path in sorted({each.found_at for each in _found(rig) if each.found_at}):
        first, *others = [await rig.kubelet.ask(path) for _ in range(4)]
        for each in others:
            if each != first:
                return Failed(f"first it said {_line(first)}, and then {_line(each)}")
    return Passed()


def _line(message: object) -> str:
    return " ".join(str(message).split())


@checks.add(
    "DP-WATCH-6",
    "A refused registration is not its end",
    rule="the kubelet says plugin_registered=false if it cannot take a plugin, and tries again",
    source=sources.PLUGIN_MANAGER,
    how=f"{_HOW}, then NotifyRegistrationStatus with plugin_registered=false; then both again, with true",
    fresh=True,
)
async def refused(rig: DevicePluginRig) -> Outcome:
    resources, before = {each.resource for each in _found(rig)}, rig.kubelet.count
    await rig.kubelet.stop()
    rig.kubelet.refusals = 1
    await rig.kubelet.start()
    if not await rig.ready_again(resources, before + 1):
        last = rig.registrations[-1].problem
        return Failed(f"it was refused once, and could not be registered afterwards: {last or 'no socket'}")
    return Passed()
