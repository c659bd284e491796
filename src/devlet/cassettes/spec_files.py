"""The CDI specs of a cassette, in files that are there while it is played.

Several may be played at once, and one may be killed: each holds a lock while it runs, and what belongs to a lock that
nobody holds is removed by whoever comes next.
"""

import fcntl
import logging
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from devlet.cassettes import absent
from devlet.errors import DevletError, InvalidInput
from devlet.kit import atomic_file
from devlet.kit.facts import facts
from devlet.runtime.cdi import codec, spec_dir
from devlet.runtime.cdi.spec import Spec
from devlet.runtime.cdi.versions import minimum

__all__ = ["spec_files"]

log = logging.getLogger(__name__)

_PREFIX: Final = "devlet-play-"
_LOCK: Final = ".lock"  # which no runtime takes for a spec


@contextmanager
def spec_files(specs: Sequence[Spec], directory: Path, *, strict: bool = False) -> Iterator[None]:
    """Devices that are in somebody else's file are left to that: in two files of a directory they could not be used at
    all. `strict`: with nodes and files that this machine does not have. InvalidInput if they cannot be written."""
    with ExitStack() as stack:
        try:
            _remove_leftovers(directory)
            if specs:
                owner = stack.enter_context(_owner(directory))
                _write_all(specs, directory, owner, strict=strict)
        except OSError as e:
            raise InvalidInput(f"CDI specs cannot be written to {directory}: {e.strerror or e}") from e
        yield


@contextmanager
def _owner(directory: Path) -> Iterator[str]:
    """A prefix of names of files, all of which are removed in the end."""
    directory.mkdir(0o755, parents=True, exist_ok=True)
    owner = f"{_PREFIX}{secrets.token_hex(4)}"
    hidden = directory / f".{owner}"
    with _locked(hidden):
        try:
            hidden.rename(directory / f"{owner}{_LOCK}")  # nobody sees it who could take it for a leftover
            yield owner
        finally:
            _remove(directory, owner)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """BlockingIOError if somebody else has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _remove_leftovers(directory: Path) -> None:
    for lock in directory.glob(f"{_PREFIX}*{_LOCK}"):
        try:
            with _locked(lock):
                _remove(directory, lock.name.removesuffix(_LOCK))
        except BlockingIOError:
            pass  # it is being played


def _remove(directory: Path, owner: str) -> None:
    """The lock last: without it nobody would know whose the others are."""
    for path in directory.glob(f"{owner}-*.json"):
        path.unlink(missing_ok=True)
    (directory / f"{owner}{_LOCK}").unlink(missing_ok=True)


def _write_all(specs: Sequence[Spec], directory: Path, owner: str, *, strict: bool) -> None:
    taken = set(_names(directory))
    for number, spec in enumerate(specs):
        if left := _left(spec, taken, strict=strict):
            path = directory / f"{owner}-{number}.json"
            atomic_file.write(path, codec.encode(left), 0o644, durable=False)
            taken |= {f"{left.kind}={device.name}" for device in left.devices}


def _left(spec: Spec, taken: set[str], *, strict: bool) -> Spec | None:
    devices = []
    for device in spec.devices:
        edits = device.container_edits if strict else absent.present_edits(device.container_edits)
        if f"{spec.kind}={device.name}" in taken:
            log.warning("CDI device is there already", extra=facts(device=f"{spec.kind}={device.name}"))
        elif edits:
            devices.append(replace(device, container_edits=edits))
    if not devices:
        return None
    shared = spec.container_edits if strict else absent.present_edits(spec.container_edits)
    left = replace(spec, devices=tuple(devices), container_edits=shared)
    return replace(left, cdi_version=minimum(left))


def _names(directory: Path) -> Iterator[str]:
    for path in spec_dir.list_files(directory):
        try:
            spec = spec_dir.read(path)[1]
        except DevletError:
            continue  # the node says what is wrong with it
        yield from (f"{spec.kind}={device.name}" for device in spec.devices)
