"""The CDI devices that a driver answers with, and the files that they are in."""

import os
from collections import Counter

import anyio

from devlet.errors import InvalidInput, NotFound
from devlet.runtime.cdi import names, versions
from devlet.runtime.cdi.registry import KnownDevice, edits
from devlet.runtime.cdi.spec import ContainerEdits
from devlet.sanity import host, sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed, Warned
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import MadeClaim, Want
from devlet.sanity.rig_dra import DraRig

checks = Checks[DraRig](sources.CDI)

_HOW = "call NodePrepareResources, and look into the CDI directory"
_LOOK = 0.002  # seconds between two looks at the directory
_COMMON = "0.5.0"  # known to all runtimes that get CDI devices from a kubelet


async def _ids(rig: DraRig, claim: MadeClaim) -> list[str]:
    """CannotTell if there are none: a driver need not use CDI."""
    if not (ids := ids_of(await rig.client.prepared(claim.ref))):
        raise CannotTell("it answers without CDI devices")
    return ids


async def _known(rig: DraRig, claim: MadeClaim) -> tuple[KnownDevice, ...]:
    ids = await _ids(rig, claim)
    try:
        return rig.cdi.devices(ids)
    except NotFound as e:
        raise CannotTell(f"see DRA-CDI-2: {e}") from e


def _all_edits(known: tuple[KnownDevice, ...]) -> ContainerEdits:
    return edits(known)


@checks.add(
    "DRA-CDI-1",
    "Its CDI ids are names of CDI devices",
    rule="vendor/class=device: letters, digits and a few other characters; the vendor begins with a letter",
    how="call NodePrepareResources, and look at cdi_device_ids",
)
async def valid_names(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for each in await _ids(rig, claim):
            try:
                names.parse(each)
            except InvalidInput as e:
                return Failed(f"{each!r}: {e}")
    return Passed()


@checks.add(
    "DRA-CDI-2",
    "Its CDI devices are there when it answers",
    rule="the container is created right after the answer: a runtime that does not find the device fails",
    how=_HOW,
)
async def resolvable(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for _ in range(3):
            ids = await _ids(rig, claim)
            if missing := rig.cdi.now().resolve(ids).missing:
                where = ", ".join(map(str, rig.cdi.directories))
                return Failed(f"not in {where}: {'; '.join(f'{name}: {why}' for name, why in missing.items())}")
            await rig.client.unprepared(claim.ref)
    return Passed()


@checks.add(
    "DRA-CDI-3",
    "Its CDI files are valid",
    rule="a runtime ignores the whole file if something in it is unknown, wrong, or newer than its cdiVersion",
    how=f"{_HOW}: `cdi validate`",
)
async def valid_files(rig: DraRig) -> Outcome:
    async with rig.claim(Want(offers=rig.maker.take_up_to(2))) as claim:
        await rig.client.prepared(claim.ref)
        errors = rig.cdi.errors()
    if errors:
        return Failed("; ".join(text for texts in errors.values() for text in texts)[:1000])
    return Passed()


@checks.add(
    "DRA-CDI-4",
    "Its CDI files name the lowest version that will do",
    rule="runtimes lag behind: a file with a newer cdiVersion than it needs is refused by some for nothing",
    how=f"{_HOW}: cdiVersion",
)
async def lowest_version(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for each in await _known(rig, claim):
            spec = each.file.spec
            lowest, named = versions.minimum(spec), versions.normalised(spec.cdi_version) or spec.cdi_version
            if named not in (lowest, *versions.KNOWN[: versions.KNOWN.index(_COMMON) + 1]):
                return Warned(f"{each.file.path.name} says {spec.cdi_version}, and {lowest} would do")
    return Passed()


@checks.add(
    "DRA-CDI-5",
    "Nobody sees half a CDI file",
    rule="runtimes read the directory at any time: a file is written under another name and renamed",
    how="watch the CDI directory with inotifywait while NodePrepareResources is called",
)
async def atomic(rig: DraRig) -> Outcome:
    torn: list[str] = []
    before = rig.cdi.errors()
    done = anyio.Event()

    async def read() -> None:
        while not done.is_set():
            found = await anyio.to_thread.run_sync(rig.cdi.errors)
            torn.extend(text for path, texts in found.items() if path not in before for text in texts)
            await anyio.sleep(_LOOK)  # without it the answers that are waited for might never be read

    async with rig.claim() as claim:
        with rig.cdi.watched() as traffic:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                for _ in range(10):
                    await rig.client.prepared(claim.ref)
                    await rig.client.unprepared(claim.ref)
                done.set()
    if torn:
        return Failed(f"seen while claims were prepared: {torn[0]}")
    if traffic.written:
        return Warned(f"written where runtimes read it: {', '.join(sorted(map(str, traffic.written))[:3])}")
    return Passed()


@checks.add(
    "DRA-CDI-6",
    "Its device nodes and mounts exist on the host",
    rule="the runtime looks them up when it creates the container, and fails if they are not there",
    how=f"{_HOW}: deviceNodes and mounts",
)
async def exist(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        found = _all_edits(await _known(rig, claim))
        for node in found.device_nodes:
            complete = node.type and (node.major or node.type == "p")
            if not complete and (problem := _node_problem(node.host_path or node.path, node.path, node.permissions)):
                return Failed(problem)
        for mount in found.mounts:
            is_bind = mount.type in ("", "bind", "none") or "bind" in mount.options
            if is_bind and (problem := host.mount_problem(mount.host_path, mount.container_path)):
                return Failed(problem)
    return Passed()


def _node_problem(host_path: str, path: str, permissions: str) -> str:
    return host.device_problem(host_path, path, "rwm" if permissions in ("", "none") else permissions)


@checks.add(
    "DRA-CDI-7",
    "Its hooks are programs on the host",
    rule="a hook that is not there keeps the container from starting",
    how=f"{_HOW}: hooks",
)
async def hooks(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for hook in _all_edits(await _known(rig, claim)).hooks:
            if not os.access(hook.path, os.X_OK):
                return Failed(f"hook {hook.hook_name}: {hook.path} is no program")
    return Passed()


@checks.add(
    "DRA-CDI-8",
    "The claim is in the name of its CDI device",
    rule="runtimes may remember devices by name: with the claim's UID in it none is ever taken for an older one",
    source=sources.PRACTICE,
    how="call NodePrepareResources, and look at cdi_device_ids",
)
async def own_names(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        ids = [each for each in await _ids(rig, claim) if not _is_metadata(each)]
    if ids and not any(claim.ref.uid in each for each in ids):
        return Warned(f"claim {claim.ref.uid} got {', '.join(ids[:3])}: another claim may get the same names")
    return Passed()


def _is_metadata(name: str) -> bool:
    """They always have the UID, and say nothing of what the driver itself does."""
    return name.partition("=")[0].endswith("/metadata")


@checks.add(
    "DRA-CDI-9",
    "A container can have all devices of a claim",
    rule="the edits of all devices are applied together: of two values of a variable only the last one is left",
    how=f"{_HOW}, with two devices in the claim: compare env",
)
async def together(rig: DraRig) -> Outcome:
    async with rig.claim(Want(count=2)) as claim:
        found = _all_edits(await _known(rig, claim))
    values: dict[str, str] = {}
    for each in found.env:
        name, _, value = each.partition("=")
        if values.setdefault(name, value) != value:
            return Warned(f"two devices of a claim set {name}, to {values[name]!r} and to {value!r}")
    return Passed()


@checks.add(
    "DRA-CDI-10",
    "No CDI device is answered twice for one device",
    rule="a runtime applies the edits of each id that it gets: twice, a path is mounted twice",
    how="call NodePrepareResources, and look at cdi_device_ids",
)
async def unique(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for device in await rig.client.prepared(claim.ref):
            twice = [id for id, count in Counter(device.cdi_device_ids).items() if count > 1]
            if twice:
                return Warned(f"for {device.device_name} more than once: {', '.join(twice[:3])}")
    return Passed()
