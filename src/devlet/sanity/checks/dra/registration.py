"""Registration of a DRA driver: a socket in `plugins_registry`, and its responses there."""

from contextlib import aclosing
from pathlib import Path

import anyio

from devlet.errors import PluginError, PluginUnimplemented
from devlet.objects import names
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.dra.answers import line
from devlet.sanity.dra_client import HEALTH_SERVICES, SERVICES
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.PLUGIN_MANAGER)

_INFO = "call /pluginregistration.Registration/GetInfo on its socket in plugins_registry"
_KNOWN = (*SERVICES, *HEALTH_SERVICES)


@checks.add(
    "DRA-REG-1",
    "The driver can be registered soon after it starts",
    rule="a driver serves Registration on a socket in plugins_registry, and DRAPlugin on its endpoint",
    how=f"{_INFO}; then NotifyRegistrationStatus; then call NodePrepareResources on its endpoint",
)
async def registers(rig: DraRig) -> Outcome:
    if rig.unready:
        return Failed(rig.unready)
    return Passed(f"registered {rig.name}")


@checks.add(
    "DRA-REG-2",
    "GetInfo reports the type DRAPlugin",
    rule="PluginInfo.type is DRAPlugin, which determines what a kubelet calls next",
    source=sources.REGISTRATION_API,
    how=_INFO,
)
async def type_(rig: DraRig) -> Outcome:
    found = rig.greeting.type
    return Passed() if found == "DRAPlugin" else Failed(f"the type is {found!r}, expected 'DRAPlugin'")


@checks.add(
    "DRA-REG-3",
    "The driver name is valid",
    rule="a driver name is a lowercase DNS subdomain of at most 63 characters, as in its slices",
    source=sources.RESOURCE_API,
    how=_INFO,
)
async def name(rig: DraRig) -> Outcome:
    found = rig.greeting.name
    problems = names.driver_name(found) if found else ["it is empty"]
    if problems or found != found.lower():
        return Failed(f"the name is {found!r}: {problems[0] if problems else 'it contains uppercase letters'}")
    return Passed()


@checks.add(
    "DRA-REG-4",
    "The endpoint is the path of a socket",
    rule="PluginInfo.endpoint is the absolute path of the socket that serves, or empty for the same socket",
    source=sources.REGISTRATION_API,
    how=_INFO,
)
async def endpoint(rig: DraRig) -> Outcome:
    found = rig.greeting
    if found.endpoint and not Path(found.endpoint).is_absolute():
        return Failed(f"the endpoint {found.endpoint!r} is not the absolute path of a socket")
    if not found.path.is_socket():
        return Failed(f"the endpoint {found.endpoint} is not a socket")
    return Passed()


@checks.add(
    "DRA-REG-5",
    "The driver offers a service that kubelets know",
    rule="PluginInfo.supported_versions contain v1.DRAPlugin or v1beta1.DRAPlugin, or the kubelet refuses the driver",
    source=sources.DRA_MANAGER,
    how=_INFO,
)
async def versions(rig: DraRig) -> Outcome:
    found = rig.greeting
    if not found.service:
        return Failed(
            f"the supported versions are {', '.join(found.versions) or 'none'}, expected one of {', '.join(SERVICES)}"
        )
    return Passed(f"{', '.join(found.versions)}")


@checks.add(
    "DRA-REG-6",
    "The driver offers only known services",
    rule="supported_versions are short names such as v1.DRAPlugin, not names of gRPC services or releases",
    source=sources.DRA_MANAGER,
    how=_INFO,
)
async def known_versions(rig: DraRig) -> Outcome:
    unknown = [each for each in rig.greeting.versions if each not in _KNOWN]
    return Warned(f"the driver offers {', '.join(unknown)}, which no kubelet knows") if unknown else Passed()


@checks.add(
    "DRA-REG-7",
    "The newest service is listed first",
    rule="kubelets since 1.34 use the first service in supported_versions that they know: v1 before v1beta1",
    source=sources.DRA_MANAGER,
    how=_INFO,
)
async def order(rig: DraRig) -> Outcome:
    offered = [each for each in rig.greeting.versions if each in SERVICES]
    if offered != sorted(offered, key=list(SERVICES).index):
        return Warned(f"the driver offers {', '.join(offered)} in this order, so kubelets use {offered[0]}")
    return Passed()


@checks.add(
    "DRA-REG-8",
    "Every offered service is implemented",
    rule="a kubelet does not fall back to another service if the one that it chose is unimplemented",
    source=sources.DRA_MANAGER,
    how="call NodePrepareResources and NodeUnprepareResources of each of supported_versions, without claims",
)
async def serves(rig: DraRig) -> Outcome:
    for version in rig.greeting.versions:
        try:
            if version in SERVICES:
                await rig.client.by(version).prepare()
                await rig.client.by(version).unprepare()
            elif version in HEALTH_SERVICES:
                with anyio.move_on_after(rig.settings.quiet):
                    async with aclosing(rig.client.health(version)) as lists:
                        await anext(lists)
        except PluginUnimplemented as e:
            return Failed(f"the driver offers {version}, but does not implement it: {e.message}")
        except PluginError:
            continue  # it is implemented, which is all that matters here
    return Passed()


@checks.add(
    "DRA-REG-9",
    "The driver serves before it can be found",
    rule="the kubelet may call a driver as soon as it is registered, and pods wait if the call fails",
    how="watch plugins_registry; connect to the endpoint as soon as the socket exists",
)
async def serves_first(rig: DraRig) -> Outcome:
    late = [each for each in rig.greetings if each.late]
    if late:
        return Warned(f"when {late[0].found_at.name} was found, the driver did not yet listen on {late[0].path}")
    return Passed()


@checks.add(
    "DRA-REG-10",
    "GetInfo always returns the same answer",
    rule="GetInfo is called at each registration and must not depend on earlier calls",
    how=f"{_INFO}, several times",
)
async def stable(rig: DraRig) -> Outcome:
    path = rig.greeting.found_at
    answers = [await rig.kubelet.ask(path) for _ in range(4)]
    for each in answers[1:]:
        if each != answers[0]:
            return Failed(f"GetInfo first returned {line(answers[0])}, and then {line(each)}")
    return Passed()


@checks.add(
    "DRA-REG-11",
    "The driver survives a refused registration",
    rule="the kubelet sends plugin_registered=false if it cannot register a driver, and retries",
    how="call NotifyRegistrationStatus with plugin_registered=false, then GetInfo and NotifyRegistrationStatus again",
    fresh=True,
)
async def refused(rig: DraRig) -> Outcome:
    rig.need_driver()
    before, rig.kubelet.refusals = rig.kubelet.count, 1
    await rig.restart_kubelet()
    if not await rig.ready_again(before + 1):
        problems = [each.problem for each in rig.greetings[-1:]]
        return Failed(f"after one refusal the driver could not be registered: {''.join(problems)}")
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-REG-12",
    "NotifyRegistrationStatus succeeds",
    rule="a driver that answers NotifyRegistrationStatus(plugin_registered=true) with an error is not registered",
    how=f"{_INFO}, then NotifyRegistrationStatus with plugin_registered=true",
)
async def notified(rig: DraRig) -> Outcome:
    found = [each for each in rig.greetings if each.notified]
    if found:
        return Failed(f"NotifyRegistrationStatus with plugin_registered=true failed: {found[0].notified}")
    return Passed()
