"""The CDI specs of a cassette, in files that exist while it is played.

Several cassettes may be played at once, and a player may be killed. So each player holds a lock while it runs, and the
next one removes files whose lock is not held.
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
_LOCK: Final = ".lock"  # a suffix that runtimes ignore


@contextmanager
def spec_files(specs: Sequence[Spec], directory: Path, *, strict: bool = False) -> Iterator[None]:
    """Write the specs, and remove them afterwards. Raises InvalidInput if they cannot be written.

    Devices that another file of the directory defines are left out, because a device defined twice cannot be used. With
    `strict`, nodes and files that this machine does not have are included."""
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
    """Yield a prefix for names of files, which are all removed in the end."""
    directory.mkdir(0o755, parents=True, exist_ok=True)
    owner = f"{_PREFIX}{secrets.token_hex(4)}"
    hidden = directory / f".{owner}"
    with _locked(hidden):
        try:
            hidden.rename(directory / f"{owner}{_LOCK}")  # now that it is locked, it cannot look like a leftover
            yield owner
        finally:
            _remove(directory, owner)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file. Raises BlockingIOError if another process has locked it."""
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
            pass  # its cassette is being played


def _remove(directory: Path, owner: str) -> None:
    """Remove the files and then the lock, without which the files could not be recognised as leftovers."""
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
            log.warning("CDI device already exists", extra=facts(device=f"{spec.kind}={device.name}"))
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
            continue  # the node reports what is wrong with it
        yield from (f"{spec.kind}={device.name}" for device in spec.devices)
