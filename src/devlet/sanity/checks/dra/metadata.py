"""Device metadata that containers can read: a file for each request, mounted by a CDI device."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from devlet.errors import DevletError, NotFound
from devlet.objects.claims.from_template import ENTRY_ANNOTATION
from devlet.runtime.cdi.registry import edits
from devlet.runtime.cdi.spec import Mount
from devlet.sanity import sources
from devlet.sanity.check import CannotTell, Checks, Failed, Outcome, Passed
from devlet.sanity.checks.dra.answers import ids_of
from devlet.sanity.claim_maker import MadeClaim, Want
from devlet.sanity.rig_dra import DraRig
from devlet.sdk import metadata
from devlet.sdk.metadata import DeviceMetadata, ObjectName

checks = Checks[DraRig](sources.KEP_5304)

_HOW = "call NodePrepareResources; read the file that its CDI device mounts below"
_ENTRY = "from-template"


async def _mounts(rig: DraRig, claim: MadeClaim) -> list[Mount]:
    """Return the mounts of metadata. Raises CannotTell if there are none: a driver need not provide metadata."""
    try:
        known = rig.cdi.devices(ids_of(await rig.client.prepared(claim.ref)))
    except NotFound as e:
        raise CannotTell(f"see DRA-CDI-2: {e}") from e
    inside = metadata.CONTAINER_DIRECTORY
    mounts = [each for each in edits(known).mounts if PurePosixPath(each.container_path).is_relative_to(inside)]
    if not mounts:
        raise CannotTell(f"the driver provides no device metadata: it mounts nothing below {inside}")
    return mounts


async def _read(rig: DraRig, claim: MadeClaim) -> list[DeviceMetadata]:
    mounts = await _mounts(rig, claim)
    try:
        return [metadata.read(Path(each.host_path)) for each in mounts]
    except DevletError as e:
        raise CannotTell(f"see DRA-META-1: {e}") from e


@checks.add(
    "DRA-META-1",
    "Device metadata can be read",
    rule="a stream of JSON objects, of which a reader uses the first with a known apiVersion; any other error "
    f"before it makes the file unreadable: {metadata.KIND} of {metadata.V1ALPHA1}",
    how=f"{_HOW} {metadata.CONTAINER_DIRECTORY}",
)
async def readable(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        for each in await _mounts(rig, claim):
            try:
                metadata.read(Path(each.host_path))
            except DevletError as e:
                return Failed(f"{each.container_path}: {e}")
    return Passed()


@checks.add(
    "DRA-META-2",
    "Device metadata describes the claim and its devices",
    rule="metadata has the name, namespace and UID of the claim and a generation of at least 1; requests list the "
    "allocated devices, by driver, pool and name",
    how=f"{_HOW} {metadata.CONTAINER_DIRECTORY}; compare it with the claim",
)
async def of_claim(rig: DraRig) -> Outcome:
    wants = [Want("one"), Want("two")] if len(rig.offers()) > 1 else [Want("one")]
    async with rig.claim(*wants) as claim:
        found = await _read(rig, claim)
        for each in found:
            if problem := _name_problem(each.metadata, claim):
                return Failed(problem)
        listed = sorted(
            (part.name, device.driver, device.pool, device.name)
            for each in found
            for part in each.requests
            for device in part.devices
        )
    given = sorted((each["request"], each["driver"], each["pool"], each["device"]) for each in claim.results)
    return Passed() if listed == given else Failed(f"the claim was allocated {given}, but its metadata lists {listed}")


def _name_problem(name: ObjectName, claim: MadeClaim) -> str:
    named, true = (name.namespace, name.name, name.uid), (claim.ref.namespace, claim.name, claim.ref.uid)
    if named != true:
        return f"claim {true} is called {named} in its metadata"
    return "" if name.generation >= 1 else f"the generation is {name.generation}, expected at least 1"


@checks.add(
    "DRA-META-3",
    "Device metadata is mounted where containers look for it",
    rule="…/resourceclaims/CLAIM/REQUEST/DRIVER-metadata.json, or …/resourceclaimtemplates/ENTRY/… for a claim "
    f"created from a template for an entry of its pod, below {metadata.CONTAINER_DIRECTORY}; read-only",
    how=f"call NodePrepareResources for a claim, and for one with the annotation {ENTRY_ANNOTATION}; check the "
    "mounts of its CDI devices",
)
async def in_place(rig: DraRig) -> Outcome:
    async with rig.claim() as claim:
        request = claim.results[0]["request"]
        if problem := _place_problem(await _mounts(rig, claim), metadata.claim_file(rig.name, claim.name, request)):
            return Failed(problem)
    async with rig.claim(annotations={ENTRY_ANNOTATION: _ENTRY}) as claim:
        wanted = metadata.template_file(rig.name, _ENTRY, request)
        if problem := _place_problem(await _mounts(rig, claim), wanted):
            return Failed(f"for a claim created from a template: {problem}")
    return Passed()


def _place_problem(mounts: Sequence[Mount], wanted: PurePosixPath) -> str:
    found = {each.container_path: each for each in mounts}
    if str(wanted) not in found:
        return f"expected a mount at {wanted}, found {', '.join(found)}"
    options = found[str(wanted)].options
    return "" if "ro" in options else f"{wanted} is mounted with {', '.join(options) or 'no options'}, expected ro"
