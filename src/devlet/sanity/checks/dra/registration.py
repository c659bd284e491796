"""How a driver makes itself known: a socket in `plugins_registry`, and what it answers there."""

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
    "It can be registered soon after it was started",
    rule="a driver has a socket in plugins_registry, serves Registration there, and DRAPlugin on its endpoint",
    how=f"{_INFO}; then NotifyRegistrationStatus; then call NodePrepareResources on its endpoint",
)
async def registers(rig: DraRig) -> Outcome:
    if rig.unready:
        return Failed(rig.unready)
    return Passed(f"registered {rig.name}")


@checks.add(
    "DRA-REG-2",
    "It introduces itself as a DRA driver",
    rule="PluginInfo.type is DRAPlugin: it decides what a kubelet calls next",
    source=sources.REGISTRATION_API,
    how=_INFO,
)
async def type_(rig: DraRig) -> Outcome:
    found = rig.greeting.type
    return Passed() if found == "DRAPlugin" else Failed(f"its type is {found!r}, expected 'DRAPlugin'")


@checks.add(
    "DRA-REG-3",
    "Its name is that of a DRA driver",
    rule="a driver's name is a DNS subdomain in lower case with at most 63 characters, as in its slices",
    source=sources.RESOURCE_API,
    how=_INFO,
)
async def name(rig: DraRig) -> Outcome:
    found = rig.greeting.name
    problems = names.driver_name(found) if found else ["it is empty"]
    if problems or found != found.lower():
        return Failed(f"its name is {found!r}: {problems[0] if problems else 'it has letters in upper case'}")
    return Passed()


@checks.add(
    "DRA-REG-4",
    "Its endpoint is the path of a socket",
    rule="PluginInfo.endpoint is the whole path of the socket that serves, or empty if it is the same one",
    source=sources.REGISTRATION_API,
    how=_INFO,
)
async def endpoint(rig: DraRig) -> Outcome:
    found = rig.greeting
    if found.endpoint and not Path(found.endpoint).is_absolute():
        return Failed(f"its endpoint {found.endpoint!r} is not the whole path of a socket")
    if not found.path.is_socket():
        return Failed(f"its endpoint {found.endpoint} is no socket")
    return Passed()


@checks.add(
    "DRA-REG-5",
    "It offers a service that kubelets know",
    rule="one of PluginInfo.supported_versions is v1.DRAPlugin or v1beta1.DRAPlugin, or the kubelet refuses it",
    source=sources.DRA_MANAGER,
    how=_INFO,
)
async def versions(rig: DraRig) -> Outcome:
    found = rig.greeting
    if not found.service:
        return Failed(f"its versions are {', '.join(found.versions) or 'none'}, expected one of {', '.join(SERVICES)}")
    return Passed(f"{', '.join(found.versions)}")


@checks.add(
    "DRA-REG-6",
    "It offers nothing that nobody knows",
    rule="supported_versions are short names such as v1.DRAPlugin, and not those of gRPC services or releases",
    source=sources.DRA_MANAGER,
    how=_INFO,
)
async def known_versions(rig: DraRig) -> Outcome:
    unknown = [each for each in rig.greeting.versions if each not in _KNOWN]
    return Warned(f"no kubelet knows {', '.join(unknown)}") if unknown else Passed()


@checks.add(
    "DRA-REG-7",
    "The newest service comes first",
    rule="kubelets since 1.34 take the first service of supported_versions that they know: v1 before v1beta1",
    source=sources.DRA_MANAGER,
    how=_INFO,
)
async def order(rig: DraRig) -> Outcome:
    offered = [each for each in rig.greeting.versions if each in SERVICES]
    if offered != sorted(offered, key=list(SERVICES).index):
        return Warned(f"it offers {', '.join(offered)} in this order, and is called by {offered[0]}")
    return Passed()


@checks.add(
    "DRA-REG-8",
    "It serves what it offers",
    rule="a kubelet does not try another service if the one that it chose is unimplemented",
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
            return Failed(f"it offers {version}, and {e.message}")
        except PluginError:
            continue  # of no concern here: it is there
    return Passed()


@checks.add(
    "DRA-REG-9",
    "It serves before it can be found",
    rule="the kubelet may call as soon as it has registered a driver, and pods wait for what is not answered",
    how="watch plugins_registry; connect to the endpoint as soon as the socket is there",
)
async def serves_first(rig: DraRig) -> Outcome:
    late = [each for each in rig.greetings if each.late]
    if late:
        return Warned(f"when {late[0].found_at.name} was found, nobody listened on {late[0].path}")
    return Passed()


@checks.add(
    "DRA-REG-10",
    "It says the same of itself each time",
    rule="GetInfo is called at each registration, and must not depend on how often it was",
    how=f"{_INFO}, several times",
)
async def stable(rig: DraRig) -> Outcome:
    path = rig.greeting.found_at
    answers = [await rig.kubelet.ask(path) for _ in range(4)]
    for each in answers[1:]:
        if each != answers[0]:
            return Failed(f"first it said {line(answers[0])}, and then {line(each)}")
    return Passed()


@checks.add(
    "DRA-REG-11",
    "A refused registration is not its end",
    rule="the kubelet says plugin_registered=false if it cannot take a driver, and tries again",
    how="call NotifyRegistrationStatus with plugin_registered=false, then GetInfo and NotifyRegistrationStatus again",
    fresh=True,
)
async def refused(rig: DraRig) -> Outcome:
    rig.need_driver()
    before, rig.kubelet.refusals = rig.kubelet.count, 1
    await rig.restart_kubelet()
    if not await rig.ready_again(before + 1):
        problems = [each.problem for each in rig.greetings[-1:]]
        return Failed(f"it was refused once, and could not be registered afterwards: {''.join(problems)}")
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-REG-12",
    "It learns of its registration without complaint",
    rule="a driver that answers NotifyRegistrationStatus(plugin_registered=true) with an error is not registered",
    how=f"{_INFO}, then NotifyRegistrationStatus with plugin_registered=true",
)
async def told(rig: DraRig) -> Outcome:
    found = [each for each in rig.greetings if each.told]
    if found:
        return Failed(f"it was told that it is registered: {found[0].told}")
    return Passed()
