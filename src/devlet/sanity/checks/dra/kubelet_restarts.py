"""Restarts of the kubelet, which close all connections and register the driver again."""

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import same
from devlet.sanity.checks.dra.slices import settled
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.PLUGIN_MANAGER)

_RULE = "a starting kubelet registers every driver whose socket is in plugins_registry"
_HOW = "close all connections; then call GetInfo and NotifyRegistrationStatus again"


async def _again(rig: DraRig) -> Outcome | None:
    """Restart the kubelet. Return an outcome if the driver could not be registered by it."""
    rig.need_driver()
    before = rig.kubelet.count
    await rig.restart_kubelet()
    if await rig.ready_again(before):
        return None
    last = rig.greetings[-1].problem if rig.kubelet.count > before else "there is no socket in plugins_registry"
    return Failed(f"after a kubelet restart the driver was not registered within {rig.settings.wait:g} s: {last}")


@checks.add(
    "DRA-AGAIN-1",
    "The driver can be registered again after a kubelet restart",
    rule=_RULE,
    how=_HOW,
    fresh=True,
)
async def again(rig: DraRig) -> Outcome:
    await rig.client.prepare()
    if found := await _again(rig):
        return found
    await rig.client.prepare()
    return Passed()


@checks.add(
    "DRA-AGAIN-2",
    "Prepared claims stay prepared over a kubelet restart",
    rule="a restarted kubelet prepares the claims of running pods again, and expects the same answer",
    source=sources.KEP_4381,
    how=f"call NodePrepareResources; {_HOW}; call it again and compare",
    fresh=True,
)
async def still_prepared(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        first = await rig.client.prepared(claim.ref)
        if found := await _again(rig):
            return found
        try:
            second = await rig.client.prepared(claim.ref)
        except PluginError as e:
            return Failed(f"a claim prepared before the kubelet restart cannot be prepared again: {e.message}")
        return same(first, second, "before and after a kubelet restart")


@checks.add(
    "DRA-AGAIN-3",
    "Slices do not change when the kubelet restarts",
    rule="the devices have not changed, and every unnecessary write makes all schedulers examine them again",
    source=sources.PRACTICE,
    how=f"{_HOW}; compare resourceVersions of its slices",
    fresh=True,
)
async def same_slices(rig: DraRig) -> Outcome:
    before = await settled(rig)
    if found := await _again(rig):
        return found
    await anyio.sleep(rig.settings.quiet)
    if (after := rig.versions()) != before:
        return Failed(f"the slices had versions {before} before the kubelet restart, and {after} after it")
    return Passed()


@checks.add(
    "DRA-AGAIN-4",
    "The driver can be registered after each of several kubelet restarts",
    rule=f"{_RULE}, every time",
    how=f"{_HOW}; repeat this three times",
    fresh=True,
)
async def again_and_again(rig: DraRig) -> Outcome:
    for number in range(1, 4):
        if isinstance(found := await _again(rig), Failed):
            return Failed(f"restart {number}: {found.seen}")
    return Passed()


@checks.add(
    "DRA-AGAIN-5",
    "The driver can start before the kubelet",
    rule="kubelet and drivers start in any order: a driver waits until it is found",
    how="start it without a kubelet, and call GetInfo a few seconds later",
    fresh=True,
)
async def first_of_all(rig: DraRig) -> Outcome:
    before = rig.kubelet.count
    rig.need_driver()
    await rig.driver.kill()
    await rig.kubelet.stop()
    for path in rig.leftovers():
        path.unlink(missing_ok=True)
    await rig.driver.start()
    await rig.found_in_registry()
    await anyio.sleep(rig.settings.late)
    await rig.kubelet.start()
    if not await rig.ready_again(before):
        return Failed(
            f"ready {rig.settings.late:g} s before the kubelet, the driver could not be registered "
            f"within {rig.settings.wait:g} s"
        )
    return Passed()
