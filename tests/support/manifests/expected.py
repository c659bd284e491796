"""The outcome of a manifest, as the file beside it has it, and where the world differs from it.

    stages:                                   # one after the other; each is the whole picture at its end
    - apply: second                           # documents with this label `stage`; without: those that have none
      delete: [pod/sharer]
      patch: [{what: resourceclaim/slow, subresource: status, with: {...}}]
      passing: true                           # the next stage comes by itself
      pods: {train: {phase: Running, node: n1, ended: [init]}}
      claims:                                 # POD/ENTRY if made for a pod; {} is a claim without devices
        train/gpu: {reserved: [train], results: [{request: gpu, device: 'gpu.example.com/n1/gpu-{a}'}]}
      containers:                             # all that devices bring to each, POD/NAME
        train/main: {env: ['GPU_{a}=gpu-{a}'], mounts: [...], devices: [...]}
      events: {train: {FailedScheduling: pattern}}   # or {reference: pattern, devlet: pattern}
      rules: {broken: {status: "False", reason: Completed}}

What is not listed must not be there, except for events. Containers that run are ready, others are not; a pod names
those where it is otherwise as `amiss`. `{a}` is what was free to choose: see `Choices`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import Struct, field

from devlet.errors import InvalidInput
from devlet.objects.values.quantity import Quantity
from tests.support.manifests.choices import Choices
from tests.support.manifests.seen import Claim, Container, Event, Pod, Result, Rule, Seen

__all__ = ["ExpectedClaim", "ExpectedContainer", "Patch", "Stage", "differences", "read_stages"]

W = TypeVar("W")
F = TypeVar("F")


class _Strict(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Patch(_Strict, frozen=True):
    what: str
    content: dict[str, Any] = field(name="with")
    subresource: str = ""


class ExpectedPod(_Strict, frozen=True):
    phase: str
    node: str = ""
    ended: tuple[str, ...] = ()
    amiss: tuple[str, ...] = ()


class ExpectedResult(_Strict, frozen=True):
    request: str
    device: str
    share: str = ""
    consumed: dict[str, str] = {}
    admin: bool = False
    awaits: tuple[str, ...] = ()


class ExpectedClaim(_Strict, frozen=True):
    reserved: tuple[str, ...] = ()
    results: tuple[ExpectedResult, ...] = ()


class Mount(_Strict, frozen=True):
    path: str
    source: str
    options: tuple[str, ...] = ()


class DeviceNode(_Strict, frozen=True):
    path: str
    access: str


class ExpectedContainer(_Strict, frozen=True):
    env: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()


class ExpectedRule(_Strict, frozen=True):
    status: str
    reason: str
    message: str = ""  # a pattern


class Stage(_Strict, frozen=True):
    apply: str = ""
    delete: tuple[str, ...] = ()
    patch: tuple[Patch, ...] = ()
    passing: bool = False
    pods: dict[str, ExpectedPod] = {}
    claims: dict[str, ExpectedClaim] = {}
    containers: dict[str, ExpectedContainer] = {}
    events: dict[str, dict[str, str | dict[str, str]]] = {}
    rules: dict[str, ExpectedRule] = {}


class _File(_Strict, frozen=True):
    stages: tuple[Stage, ...]


def read_stages(path: Path) -> tuple[Stage, ...]:
    try:
        return msgspec.convert(yaml.safe_load(path.read_text()), _File).stages
    except (msgspec.ValidationError, yaml.YAMLError) as e:
        raise InvalidInput(f"{path}: {e}") from e


def differences(stage: Stage, seen: Seen, choices: Choices, control: str) -> list[str]:
    """What is otherwise than expected, a line each. `choices` learn the letters, so give them a copy."""
    return [
        *_each("pod", stage.pods, seen.pods, _pod),
        *_each("claim", stage.claims, _wanted(seen.claims, control), lambda want, found: _claim(want, found, choices)),
        *_each("container", stage.containers, seen.containers, lambda want, found: _container(want, found, choices)),
        *_each("rule", stage.rules, seen.rules, _rule),
        *_events(stage, seen.events, control),
    ]


def _wanted(claims: Mapping[str, Claim], control: str) -> Mapping[str, Claim]:
    """The reference makes a claim again if the answer to its write was lost. The other one stays until its pod goes."""
    if control != "reference":
        return claims
    return {name: claim for name, claim in claims.items() if not claim.spare or claim.results}


def _each(
    kind: str, wanted: Mapping[str, W], found: Mapping[str, F], compare: Callable[[W, F], Iterator[str]]
) -> Iterator[str]:
    for name in found.keys() - wanted.keys():
        yield f"{kind} {name}: should not be there: {found[name]}"
    for name, want in wanted.items():
        if name not in found:
            yield f"{kind} {name}: is not there"
        else:
            yield from (f"{kind} {name}: {text}" for text in compare(want, found[name]))


def _pod(want: ExpectedPod, found: Pod) -> Iterator[str]:
    expected = Pod(want.phase, want.node, want.ended, want.amiss)
    if found != expected:
        yield f"{found} instead of {expected}"


def _claim(want: ExpectedClaim, found: Claim, choices: Choices) -> Iterator[str]:
    if found.reserved != want.reserved:
        yield f"reserved for {found.reserved} instead of {want.reserved}"
    if len(found.results) != len(want.results):
        yield f"has {found.results} instead of {want.results}"
        return
    for expected, result in zip(want.results, found.results, strict=True):
        if not _is(expected, result, choices):
            yield f"has {result} instead of {choices.fill(str(expected))}"


def _is(want: ExpectedResult, found: Result, choices: Choices) -> bool:
    return (
        (want.request, want.admin, want.awaits) == (found.request, found.admin, found.awaits)
        and _amounts(want.consumed) == _amounts(dict(found.consumed))
        and choices.takes(want.device, found.device)
        and choices.takes(want.share, found.share)
    )


def _amounts(texts: Mapping[str, str]) -> dict[str, Quantity]:
    """60G and 58593750Ki are the same, and both are written."""
    return {name: Quantity.parse(text) for name, text in texts.items()}


def _container(want: ExpectedContainer, found: Container, choices: Choices) -> Iterator[str]:
    mounts = tuple((each.path, each.source, each.options) for each in want.mounts)
    nodes = tuple((each.path, each.access) for each in want.devices)
    env = tuple(sorted(map(choices.fill, want.env)))
    for what, expected, there in (
        ("environment", env, found.env),
        ("mounts", mounts, found.mounts),
        ("device nodes", nodes, found.devices),
        ("more", (), found.more),
    ):
        yield from _apart(what, expected, there)


def _apart(what: str, wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[str]:
    if list(wanted) == list(found):
        return
    missing = [each for each in wanted if each not in found]
    extra = [each for each in found if each not in wanted]
    yield f"{what}: without {missing}, with {extra}" if missing or extra else f"{what}: {found} instead of {wanted}"


def _rule(want: ExpectedRule, found: Rule) -> Iterator[str]:
    if (want.status, want.reason) != (found.status, found.reason) or not re.search(want.message, found.message):
        yield f"{found} instead of {want}"


def _events(stage: Stage, events: Sequence[Event], control: str) -> Iterator[str]:
    for about, reasons in stage.events.items():
        for reason, text in reasons.items():
            pattern = text if isinstance(text, str) else text[control]
            told = [each.message for each in events if (each.about, each.reason) == (about, reason)]
            if not any(re.search(pattern, message) for message in told):
                yield f"event {reason} of {about}: none like {pattern!r}, only {told}"
