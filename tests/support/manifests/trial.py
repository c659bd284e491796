"""Take a manifest from `kubectl apply` to its documented outcome, and back to nothing.

    async with environment(binaries, root, control="reference", api="embedded") as world:
        await trial(manifest(Path("tests/peers/manifests/selectors.yaml")), world)

The outcome is in NAME.expected.yaml beside it: see `expected`. Waiting for an outcome proves nothing
about what happens later, so a stage in which something stays as it is needs an event or a status that says so.
"""

import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from devlet.errors import DevletError
from devlet.objects.documents import Document
from devlet.testing.waiting import until
from tests.support.manifests.choices import Choices
from tests.support.manifests.environment import Environment
from tests.support.manifests.expected import Stage, differences, read_stages

__all__ = ["Manifest", "at_stage", "for_scheduler", "manifest", "manifests", "trial"]

STAGE = "stage"  # the label
EXPECTED = ".expected.yaml"
PATIENCE = 80.0  # seconds for a stage; after an outage kube-scheduler may look away for 30 s

Disturb = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    documents: tuple[Document, ...]
    stages: tuple[Stage, ...]


def manifest(path: Path) -> Manifest:
    """Of a file that has another one with its outcome beside it."""
    documents = tuple(yaml.safe_load_all(path.read_text()))
    return Manifest(path.stem, documents, read_stages(path.with_name(path.stem + EXPECTED)))


def manifests(folder: Path) -> list[Path]:
    """All that have an outcome, by name."""
    expected = sorted(folder.glob(f"*{EXPECTED}"))
    return [path.with_name(path.name.removesuffix(EXPECTED) + ".yaml") for path in expected]


def at_stage(documents: Iterable[Document], label: str) -> list[Document]:
    return [each for each in documents if each["metadata"].get("labels", {}).get(STAGE, "") == label]


def for_scheduler(document: Document, name: str) -> Document:
    """The same, but a pod asks for the scheduler of this name; without a name it stays as it is."""
    if document["kind"] != "Pod" or not name:
        return document
    return {**document, "spec": {**document["spec"], "schedulerName": name}}


async def undisturbed(point: str) -> None:
    pass


async def trial(manifest: Manifest, world: Environment, disturb: Disturb = undisturbed) -> None:
    """AssertionError if a stage does not come out as documented, or anything is left in the end.

    `disturb` is called when a stage has been `applied`, when the last one has been `reached` (and then it must still be
    so afterwards), and when everything has been `deleted`, but may not be gone yet."""
    documents = [for_scheduler(each, world.scheduler_name) for each in manifest.documents]
    try:
        await _there(manifest, documents, world, disturb)
    finally:  # also for the sake of the next one
        await world.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", documents=documents)
    await disturb("deleted")
    await world.until_clean()


async def _there(manifest: Manifest, documents: Sequence[Document], world: Environment, disturb: Disturb) -> None:
    choices, index = Choices(), 0
    for index, stage in enumerate(manifest.stages):
        await _act(stage, documents if index == 0 or stage.apply else [], world)
        if not stage.passing:
            await disturb("applied")
        choices = await _outcome(manifest, index, choices, world)
    await disturb("reached")
    await _outcome(manifest, index, choices, world)


async def _act(stage: Stage, documents: Sequence[Document], world: Environment) -> None:
    if chosen := at_stage(documents, stage.apply):
        await world.kubectl("apply", "-f", "-", documents=chosen)
    for what in stage.delete:
        await world.kubectl("delete", "--ignore-not-found", "--wait=false", what)
    for patch in stage.patch:
        flags = ["--type=merge", *([f"--subresource={patch.subresource}"] if patch.subresource else [])]
        await world.kubectl("patch", patch.what, *flags, "--patch", json.dumps(patch.content))


async def _outcome(manifest: Manifest, index: int, choices: Choices, world: Environment) -> Choices:
    """The choices, with what was chosen in this stage."""
    learned = choices

    async def otherwise() -> list[str]:
        nonlocal learned
        try:
            seen = await world.seen()
        except DevletError as e:  # something that was killed is not back yet
            return [str(e)]
        learned = choices.with_uids({name: claim.uid for name, claim in seen.claims.items()})
        return differences(manifest.stages[index], seen, learned, world.control)

    try:
        if world.rescue is not None:
            await _rescued(otherwise, world.rescue)
        await until(otherwise, lambda found: not found, within=PATIENCE)
    except AssertionError as e:
        raise AssertionError(f"{manifest.name}, stage {index + 1}: {e}") from e
    return learned


async def _rescued(otherwise: Callable[[], Awaitable[list[str]]], rescue: Callable[[], Awaitable[None]]) -> None:
    """Restart kube-scheduler once if the outcome does not come.

    It has been seen to leave a pod pending for good in two cases: after an outage of the API server, and while all
    devices were free, shortly after claims for extended resources were deleted. A new process schedules the pod."""
    try:
        await until(otherwise, lambda found: not found, within=PATIENCE)
    except AssertionError as e:
        sys.stdout.write(f"kube-scheduler is started again: {e}\n")
        await rescue()
