"""The CDI devices in a driver's responses, and the files that define them."""

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

_HOW = "call NodePrepareResources and inspect the CDI directory"
_POLL = 0.002  # seconds between two reads of the directory
_COMMON = "0.5.0"  # supported by all runtimes that get CDI devices from a kubelet


async def _ids(rig: DraRig, claim: MadeClaim) -> list[str]:
    """Prepare the claim and return its CDI IDs. Raises CannotTell if there are none: a driver need not use CDI."""
    if not (ids := ids_of(await rig.client.prepared(claim.ref))):
        raise CannotTell("the response contains no CDI devices")
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
    "CDI device IDs are valid names",
    rule="vendor/class=device, of letters, digits and a few other characters; the vendor begins with a letter",
    how="call NodePrepareResources and check cdi_device_ids",
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
    "CDI devices exist when the response is sent",
    rule="the container is created right after the response: if the runtime does not find the device, that fails",
    how=_HOW,
)
async def resolvable(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for _ in range(3):
            ids = await _ids(rig, claim)
            if missing := rig.cdi.now().resolve(ids).missing:
                where = ", ".join(map(str, rig.cdi.directories))
                return Failed(f"not found in {where}: {'; '.join(f'{name}: {why}' for name, why in missing.items())}")
            await rig.client.unprepared(claim.ref)
    return Passed()


@checks.add(
    "DRA-CDI-3",
    "CDI files are valid",
    rule="a runtime ignores a file as a whole if anything in it is unknown, invalid or newer than its cdiVersion",
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
    "CDI files declare the lowest version that they need",
    rule="runtimes lag behind: some reject a file that declares a newer cdiVersion than it needs",
    how=f"{_HOW}: cdiVersion",
)
async def lowest_version(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for each in await _known(rig, claim):
            spec = each.file.spec
            lowest, named = versions.minimum(spec), versions.normalised(spec.cdi_version) or spec.cdi_version
            if named not in (lowest, *versions.KNOWN[: versions.KNOWN.index(_COMMON) + 1]):
                return Warned(f"{each.file.path.name} declares cdiVersion {spec.cdi_version}, but needs only {lowest}")
    return Passed()


@checks.add(
    "DRA-CDI-5",
    "CDI files are written atomically",
    rule="runtimes read the directory at any time, so a file is written under another name and then renamed",
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
            await anyio.sleep(_POLL)  # otherwise the awaited responses might never be read

    async with rig.claim() as claim:
        with rig.cdi.watched() as traffic:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                for _ in range(10):
                    await rig.client.prepared(claim.ref)
                    await rig.client.unprepared(claim.ref)
                done.set()
    if torn:
        return Failed(f"a runtime could read an incomplete file while claims were prepared: {torn[0]}")
    if traffic.written:
        return Warned(f"written in place, not renamed: {', '.join(sorted(map(str, traffic.written))[:3])}")
    return Passed()


@checks.add(
    "DRA-CDI-6",
    "Device nodes and mounts exist on the host",
    rule="the runtime looks them up when it creates the container, and fails if they do not exist",
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
    "Hooks are executable programs on the host",
    rule="a missing hook keeps the container from starting",
    how=f"{_HOW}: hooks",
)
async def hooks(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for hook in _all_edits(await _known(rig, claim)).hooks:
            if not os.access(hook.path, os.X_OK):
                return Failed(f"hook {hook.hook_name}: {hook.path} is not an executable file")
    return Passed()


@checks.add(
    "DRA-CDI-8",
    "CDI device names contain the claim's UID",
    rule="runtimes may cache devices by name: with the claim's UID in it, a name is never reused",
    source=sources.PRACTICE,
    how="call NodePrepareResources and check cdi_device_ids",
)
async def own_names(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        ids = [each for each in await _ids(rig, claim) if not _is_metadata(each)]
    if ids and not any(claim.ref.uid in each for each in ids):
        return Warned(f"claim {claim.ref.uid} got {', '.join(ids[:3])}, which do not contain its UID")
    return Passed()


def _is_metadata(name: str) -> bool:
    """Return whether the name is that of a metadata device, which always contains the UID."""
    return name.partition("=")[0].endswith("/metadata")


@checks.add(
    "DRA-CDI-9",
    "A container can use all devices of a claim",
    rule="the edits of all devices are applied together: of two values of a variable only the last one remains",
    how=f"{_HOW}, with two devices in the claim: compare env",
)
async def together(rig: DraRig) -> Outcome:
    async with rig.claim(Want(count=2)) as claim:
        found = _all_edits(await _known(rig, claim))
    values: dict[str, str] = {}
    for each in found.env:
        name, _, value = each.partition("=")
        if values.setdefault(name, value) != value:
            return Warned(f"two devices of a claim set {name} to different values, {values[name]!r} and {value!r}")
    return Passed()


@checks.add(
    "DRA-CDI-10",
    "CDI device IDs are unique within a device",
    rule="a runtime applies the edits of every ID that it gets: with a duplicate, paths are mounted twice",
    how="call NodePrepareResources and check cdi_device_ids",
)
async def unique(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for device in await rig.client.prepared(claim.ref):
            twice = [id for id, count in Counter(device.cdi_device_ids).items() if count > 1]
            if twice:
                return Warned(f"{device.device_name} has duplicate CDI IDs: {', '.join(twice[:3])}")
    return Passed()
