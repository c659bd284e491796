"""How a plugin registers with `kubelet.sock`."""

from collections import Counter

import anyio

from devlet.kit import socket_paths
from devlet.objects.names import extended_resource_name
from devlet.plugins.registration_server import SOCKET
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.device_plugin.every import every_plugin
from devlet.sanity.kubelet import Registration
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

checks = Checks[DevicePluginRig](sources.DEVICE_PLUGIN_API)

_LISTEN = "serve /v1beta1.Registration/Register on kubelet.sock, start the driver and print the RegisterRequest"


def _own(rig: DevicePluginRig) -> list[Registration]:
    """Those on kubelet.sock."""
    found = [each for each in rig.registrations if not each.found_at]
    if not found:
        raise CannotTell("it does not register by itself: it is found in the registry directory")
    return found


@checks.add(
    "DP-REG-1",
    "It registers soon after it was started",
    rule="a device plugin makes itself known by a call of Register: Registration",
    how="start it beside a kubelet and wait for its resource in the node's capacity",
)
async def registers(rig: DevicePluginRig) -> Outcome:
    if rig.unready:
        return Failed(rig.unready)
    return Passed(f"registered {', '.join(sorted(rig.resources))}")


@checks.add(
    "DP-REG-2",
    "It registers with API version v1beta1",
    rule="the kubelet supports exactly v1beta1 and refuses anything else: RegisterRequest.version",
    how=_LISTEN,
)
async def version(rig: DevicePluginRig) -> Outcome:
    for each in rig.registrations:
        if each.package not in ("v1beta1", "pluginregistration"):
            return Failed(f"it called /{each.package}.Registration/Register: {each.problem}")
        if "v1beta1" not in each.versions:
            given = ", ".join(map(repr, each.versions))
            return Failed(f"its version is {given or 'not to be read'}; {each.problem or 'expected v1beta1'}")
    return Passed()


@checks.add(
    "DP-REG-3",
    "Its endpoint is the name of a socket in the kubelet's directory",
    rule="RegisterRequest.endpoint is a file name below the device plugin directory, to which the kubelet joins it",
    how=_LISTEN,
)
async def endpoint(rig: DevicePluginRig) -> Outcome:
    for each in _own(rig):
        if not each.endpoint or "/" in each.endpoint or each.endpoint in (".", "..", SOCKET):
            wrong = f"the endpoint is {each.endpoint!r}, not the name of its socket in {rig.places.device_plugins}"
            return Failed(wrong)
        usual = f"/var/lib/kubelet/device-plugins/{each.endpoint}"
        if len(usual.encode()) > socket_paths.MAX_BYTES:
            return Failed(
                f"{usual} has {len(usual.encode())} bytes, a socket path has at most {socket_paths.MAX_BYTES}"
            )
    return Passed()


@checks.add(
    "DP-REG-4",
    "The resource has the name of an extended resource",
    rule="a resource is called domain/name outside of kubernetes.io, or the kubelet answers that its name is invalid",
    source=sources.DEVICE_PLUGINS,
    how=_LISTEN,
)
async def resource_name(rig: DevicePluginRig) -> Outcome:
    for each in rig.registrations:
        if wrong := extended_resource_name(each.resource):
            return Failed(f"the resource name {each.resource!r}: {'; '.join(wrong)}")
    return Passed()


@checks.add(
    "DP-REG-5",
    "It serves before it registers",
    rule="the kubelet connects and asks for options before it answers Register, so the plugin must be serving already",
    source=sources.DEVICE_MANAGER,
    how="do not answer Register before you have connected to the endpoint",
)
async def serves_first(rig: DevicePluginRig) -> Outcome:
    for each in rig.registrations:
        if each.problem:
            return Failed(f"{each.resource or 'a plugin'} could not be connected while it registered: {each.problem}")
    return Passed()


@checks.add(
    "DP-REG-6",
    "It registers with the options that it answers",
    rule="kubelets from 1.10 to 1.24 take the options of RegisterRequest, later ones call GetDevicePluginOptions",
    source=sources.DEVICE_MANAGER,
    how=f"{_LISTEN}; compare its options with the answer to GetDevicePluginOptions",
)
@every_plugin
async def same_options(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    given = [each.options for each in _own(rig) if each.resource == plugin.resource]
    answered = await plugin.options()
    if given and given[-1] != answered:
        return Warned(f"it registered with {_words(given[-1])} and answered {_words(answered)}")
    return Passed()


def _words(options: object) -> str:
    return " ".join(str(options).split()) or "none"


@checks.add(
    "DP-REG-7",
    "It does not register again without a cause",
    rule="each registration replaces the one before: the kubelet connects anew and takes its devices to be new",
    source=sources.DEVICE_MANAGER,
    how="count calls of Register while nothing happens",
)
async def registers_once(rig: DevicePluginRig) -> Outcome:
    before = {each.resource for each in rig.registrations}
    count = rig.kubelet.count
    await anyio.sleep(rig.settings.quiet)
    again = [
        each for each in rig.kubelet.registrations.since(count) if each.resource in before
    ]  # others are merely late
    if again:
        return Failed(f"it registered {len(again)} more times in {rig.settings.quiet:g} s in which nothing happened")
    counts = Counter(each.resource for each in rig.registrations if not each.problem)
    if not rig.by_registry and counts and max(counts.values()) > 1:
        name, times = counts.most_common(1)[0]
        return Failed(f"it registered {name} {times} times, though the first was answered with success")
    return Passed()


@checks.add(
    "DP-REG-8",
    "Each resource has a socket of its own",
    rule="ListAndWatch and Allocate do not say for which resource: one socket can serve only one",
    how=f"{_LISTEN}; compare the endpoints",
)
async def own_sockets(rig: DevicePluginRig) -> Outcome:
    by_path: dict[str, set[str]] = {}
    for each in rig.registrations:
        by_path.setdefault(str(each.path), set()).add(each.resource)
    for path, names in by_path.items():
        if len(names) > 1:
            return Failed(f"{' and '.join(sorted(names))} are all registered with the endpoint {path}")
    return Passed()


@checks.add(
    "DP-REG-9",
    "A slow answer to Register does not drive it away",
    rule="Register is answered when the kubelet has connected, for which it takes up to 10 seconds",
    source=sources.DEVICE_MANAGER,
    how="answer Register after some seconds only",
    fresh=True,
)
async def slow_answer(rig: DevicePluginRig) -> Outcome:
    _own(rig)
    resources, before = rig.resources, rig.kubelet.count
    rig.kubelet.slowness = rig.settings.slow
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        return Failed(f"it was not registered within {rig.settings.wait:g} s, as Register took {rig.settings.slow:g} s")
    lists = [await rig.plugin(name).devices() for name in sorted(resources)]
    return Passed() if lists else Failed("it registered and listed nothing")


@checks.add(
    "DP-REG-10",
    "A refused registration is tried again",
    rule="the kubelet refuses what it cannot connect to; a plugin tries again, or ends so that it is started again",
    source=sources.DEVICE_MANAGER,
    how="answer the first Register with an error, and wait for the next",
    fresh=True,
)
async def refused(rig: DevicePluginRig) -> Outcome:
    _own(rig)
    resources, before = rig.resources, rig.kubelet.count
    rig.kubelet.refusals = len(resources)
    await rig.restart_kubelet()
    within = rig.settings.refused
    if not await rig.ready_again(resources, before, within):
        return Failed(f"its registration was refused once, and in {within:g} s it neither tried again nor ended")
    return Passed()
