"""What a driver does when the kubelet is restarted: its connections break, and it is registered anew."""

import anyio

from devlet.errors import PluginError
from devlet.sanity import sources
from devlet.sanity.check import Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import same
from devlet.sanity.checks.dra.slices import settled
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.PLUGIN_MANAGER)

_RULE = "a kubelet that starts looks into plugins_registry, and registers whatever is there"
_HOW = "close all connections; then call GetInfo and NotifyRegistrationStatus again"


async def _again(rig: DraRig) -> Outcome | None:
    """An outcome if it could not be registered by the next kubelet."""
    rig.need_driver()
    before = rig.kubelet.count
    await rig.restart_kubelet()
    if await rig.ready_again(before):
        return None
    last = rig.greetings[-1].problem if rig.kubelet.count > before else "there is no socket in plugins_registry"
    return Failed(f"it was not registered again within {rig.settings.wait:g} s: {last}")


@checks.add(
    "DRA-AGAIN-1",
    "It can be registered again after the kubelet was restarted",
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
    "What was prepared is prepared for the next kubelet too",
    rule="a kubelet that was restarted prepares the claims of running pods again, and expects the same answer",
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
            return Failed(f"prepared before the kubelet was restarted; then {e.message}")
        return same(first, second, "before and after the kubelet was restarted")


@checks.add(
    "DRA-AGAIN-3",
    "Its slices stay as they are when the kubelet is restarted",
    rule="the devices have not changed: each needless write makes every scheduler look at all of them again",
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
        return Failed(f"its slices had versions {before}, and have {after} after the kubelet was restarted")
    return Passed()


@checks.add(
    "DRA-AGAIN-4",
    "It can be registered after each of several restarts",
    rule=f"{_RULE}, every time",
    how=f"{_HOW}; do it three times",
    fresh=True,
)
async def again_and_again(rig: DraRig) -> Outcome:
    for number in range(1, 4):
        if isinstance(found := await _again(rig), Failed):
            return Failed(f"restart {number}: {found.seen}")
    return Passed()


@checks.add(
    "DRA-AGAIN-5",
    "It can be started before the kubelet",
    rule="nobody orders the start of kubelet and drivers: a driver waits to be found",
    how="start it while nobody looks at plugins_registry, and call GetInfo some seconds later",
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
            f"it was ready {rig.settings.late:g} s before the kubelet, and could not be registered "
            f"within {rig.settings.wait:g} s"
        )
    return Passed()
