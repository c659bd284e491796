"""Registration of a device plugin with `kubelet.sock`."""

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
    """Return the registrations on kubelet.sock."""
    found = [each for each in rig.registrations if not each.found_at]
    if not found:
        raise CannotTell("the plugin does not call Register: it is found in the registry directory")
    return found


@checks.add(
    "DP-REG-1",
    "The plugin registers soon after it starts",
    rule="a device plugin announces itself by calling Register: Registration",
    how="start it beside a kubelet and wait for its resource in the node's capacity",
)
async def registers(rig: DevicePluginRig) -> Outcome:
    if rig.unready:
        return Failed(rig.unready)
    return Passed(f"registered {', '.join(sorted(rig.resources))}")


@checks.add(
    "DP-REG-2",
    "The plugin registers with API version v1beta1",
    rule="the kubelet supports exactly v1beta1 and refuses anything else: RegisterRequest.version",
    how=_LISTEN,
)
async def version(rig: DevicePluginRig) -> Outcome:
    for each in rig.registrations:
        if each.package not in ("v1beta1", "pluginregistration"):
            return Failed(f"the plugin called /{each.package}.Registration/Register: {each.problem}")
        if "v1beta1" not in each.versions:
            given = ", ".join(map(repr, each.versions))
            return Failed(f"the version is {given or 'unreadable'}; {each.problem or 'expected v1beta1'}")
    return Passed()


@checks.add(
    "DP-REG-3",
    "The endpoint is the name of a socket in the kubelet's directory",
    rule="RegisterRequest.endpoint is a file name, which the kubelet joins to the device plugin directory",
    how=_LISTEN,
)
async def endpoint(rig: DevicePluginRig) -> Outcome:
    for each in _own(rig):
        if not each.endpoint or "/" in each.endpoint or each.endpoint in (".", "..", SOCKET):
            wrong = f"the endpoint is {each.endpoint!r}, expected the name of a socket in {rig.places.device_plugins}"
            return Failed(wrong)
        usual = f"/var/lib/kubelet/device-plugins/{each.endpoint}"
        if len(usual.encode()) > socket_paths.MAX_BYTES:
            return Failed(
                f"{usual} has {len(usual.encode())} bytes, but a socket path has at most {socket_paths.MAX_BYTES}"
            )
    return Passed()


@checks.add(
    "DP-REG-4",
    "The resource name is valid for an extended resource",
    rule="a resource name is domain/name, outside of kubernetes.io; the kubelet rejects all other names",
    source=sources.DEVICE_PLUGINS,
    how=_LISTEN,
)
async def resource_name(rig: DevicePluginRig) -> Outcome:
    for each in rig.registrations:
        if wrong := extended_resource_name(each.resource):
            return Failed(f"the resource name {each.resource!r} is invalid: {'; '.join(wrong)}")
    return Passed()


@checks.add(
    "DP-REG-5",
    "The plugin serves before it registers",
    rule="the kubelet connects and asks for options before it answers Register, so the plugin must already be serving",
    source=sources.DEVICE_MANAGER,
    how="connect to the endpoint before answering Register",
)
async def serves_first(rig: DevicePluginRig) -> Outcome:
    for each in rig.registrations:
        if each.problem:
            return Failed(f"connecting to {each.resource or 'a plugin'} while it registered failed: {each.problem}")
    return Passed()


@checks.add(
    "DP-REG-6",
    "The options in the registration match GetDevicePluginOptions",
    rule="kubelets from 1.10 to 1.24 use the options of RegisterRequest, later ones call GetDevicePluginOptions",
    source=sources.DEVICE_MANAGER,
    how=f"{_LISTEN}; compare its options with the answer to GetDevicePluginOptions",
)
@every_plugin
async def same_options(rig: DevicePluginRig, plugin: PluginClient) -> Outcome:
    given = [each.options for each in _own(rig) if each.resource == plugin.resource]
    answered = await plugin.options()
    if given and given[-1] != answered:
        return Warned(
            f"RegisterRequest has options {_words(given[-1])}, but GetDevicePluginOptions returned {_words(answered)}"
        )
    return Passed()


def _words(options: object) -> str:
    return " ".join(str(options).split()) or "none"


@checks.add(
    "DP-REG-7",
    "The plugin does not register again without a reason",
    rule="each registration replaces the previous one: the kubelet connects again and treats all devices as new",
    source=sources.DEVICE_MANAGER,
    how="count calls of Register while nothing happens",
)
async def registers_once(rig: DevicePluginRig) -> Outcome:
    before = {each.resource for each in rig.registrations}
    count = rig.kubelet.count
    await anyio.sleep(rig.settings.quiet)
    again = [
        each for each in rig.kubelet.registrations.since(count) if each.resource in before
    ]  # a resource that registers for the first time is merely late
    if again:
        return Failed(f"the plugin registered {len(again)} more times in {rig.settings.quiet:g} s without any change")
    counts = Counter(each.resource for each in rig.registrations if not each.problem)
    if not rig.by_registry and counts and max(counts.values()) > 1:
        name, times = counts.most_common(1)[0]
        return Failed(f"the plugin registered {name} {times} times, although the first registration succeeded")
    return Passed()


@checks.add(
    "DP-REG-8",
    "Each resource has its own socket",
    rule="ListAndWatch and Allocate do not name the resource, so a socket can serve only one",
    how=f"{_LISTEN}; compare the endpoints",
)
async def own_sockets(rig: DevicePluginRig) -> Outcome:
    by_path: dict[str, set[str]] = {}
    for each in rig.registrations:
        by_path.setdefault(str(each.path), set()).add(each.resource)
    for path, names in by_path.items():
        if len(names) > 1:
            return Failed(f"{' and '.join(sorted(names))} are registered with the same endpoint {path}")
    return Passed()


@checks.add(
    "DP-REG-9",
    "The plugin tolerates a slow response to Register",
    rule="the kubelet answers Register after it has connected, which takes up to 10 seconds",
    source=sources.DEVICE_MANAGER,
    how="delay the answer to Register by a few seconds",
    fresh=True,
)
async def slow_answer(rig: DevicePluginRig) -> Outcome:
    _own(rig)
    resources, before = rig.resources, rig.kubelet.count
    rig.kubelet.slowness = rig.settings.slow
    await rig.restart_kubelet()
    if not await rig.ready_again(resources, before):
        return Failed(
            f"Register took {rig.settings.slow:g} s, and the plugin was not registered within {rig.settings.wait:g} s"
        )
    lists = [await rig.plugin(name).devices() for name in sorted(resources)]
    return Passed() if lists else Failed("the plugin registered, but listed no devices")


@checks.add(
    "DP-REG-10",
    "A refused registration is retried",
    rule="the kubelet refuses a plugin that it cannot connect to; the plugin retries, or exits to be restarted",
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
        return Failed(f"after one refused registration the plugin neither retried nor exited within {within:g} s")
    return Passed()
