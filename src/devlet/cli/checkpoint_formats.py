"""The kinds of checkpoints that `devlet checkpoint` knows. The content says which one a file is, its name does not."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from devlet.errors import InvalidInput, StateCorrupt
from devlet.state import device_checkpoint
from devlet.state.device_checkpoint import Checkpoint, Damage, Encoder, Failure, Form
from devlet.state.device_salvage import salvage


class Verdict(NamedTuple):
    """`text` is the version and what is in it, or what is wrong. A warning is about one entry of a valid file."""

    valid: bool
    text: str
    warnings: tuple[str, ...] = ()


class Rescue(NamedTuple):
    """A file with what could be read; empty `content` if that is nothing."""

    content: bytes
    kept: str
    lost: tuple[str, ...]


class Format(Protocol):
    """What is asked of a damaged file, other than its verdict and its rescue, raises StateCorrupt."""

    @property
    def name(self) -> str: ...

    def recognises(self, blob: bytes) -> bool: ...

    def verify(self, blob: bytes) -> Verdict: ...

    def table(self, blob: bytes, *, wide: bool) -> Iterator[str]: ...

    def document(self, blob: bytes) -> dict[str, Any]: ...

    def convert(self, blob: bytes) -> bytes:
        """In the present version."""
        ...

    def rescue(self, blob: bytes) -> Rescue: ...


class DeviceManagerFormat:
    name = "kubelet_internal_checkpoint"

    _NAMES = re.compile(rb'"(PodDeviceEntries|RegisteredDevices|Entries)"', re.IGNORECASE)

    def recognises(self, blob: bytes) -> bool:
        return bool(self._NAMES.search(blob)) or isinstance(device_checkpoint.read(blob), Checkpoint)

    def verify(self, blob: bytes) -> Verdict:
        *damages, last = device_checkpoint.attempts(blob)
        if isinstance(last, Damage):
            return Verdict(False, _damage_text([*(d for d in damages if isinstance(d, Damage)), last]))
        has_checksum = last.form in (Form.V2, Form.V1)
        checksum = f"checksum {device_checkpoint.checksum(last)}" if has_checksum else "no checksum"
        return Verdict(True, f"{last.form}: valid, {checksum}, {_contents(last)}", tuple(_warnings(last)))

    def table(self, blob: bytes, *, wide: bool) -> Iterator[str]:
        from devlet.cli.views import device_checkpoint as view

        return view.table(device_checkpoint.decode(blob), wide=wide)

    def document(self, blob: bytes) -> dict[str, Any]:
        from devlet.cli.views import device_checkpoint as view

        return {"format": self.name} | view.document(device_checkpoint.decode(blob))

    def convert(self, blob: bytes) -> bytes:
        found = device_checkpoint.decode(blob)
        return Encoder().encode(found.entries, found.registered)

    def rescue(self, blob: bytes) -> Rescue:
        found = salvage(blob)
        content = b"" if found.is_empty else Encoder().encode(found.checkpoint.entries, found.checkpoint.registered)
        return Rescue(content, _contents(found.checkpoint), found.lost)


FORMATS: dict[str, Format] = {found.name: found for found in (DeviceManagerFormat(),)}


def recognised(blob: bytes, name: str | None) -> Format:
    if name is not None:
        return FORMATS[name]
    for found in FORMATS.values():
        if found.recognises(blob):
            return found
    what = "it is empty" if not blob.strip() else "it has no member of one"
    raise InvalidInput(f"not a checkpoint that devlet knows: {what}; if it once was, say which with --format")


def _damage_text(damages: Sequence[Damage]) -> str:
    """The failure as the present version, and an older one whose data could be decoded."""
    first, *older = damages
    text = f"damaged ({first.failure}): {first.reason}"
    closer = [d for d in older if first.failure is Failure.DECODE and d.failure is Failure.CHECKSUM]
    return "; ".join([text, *(f"as {d.form}: {d.reason}" for d in closer)])


def _contents(found: Checkpoint) -> str:
    entries, resources = len(found.entries or ()), len(found.registered or ())
    return f"{_counted(entries, 'entry', 'entries')}, {_counted(resources, 'resource', 'resources')}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _warnings(found: Checkpoint) -> Iterator[str]:
    """Entries that a kubelet, or devlet, drops when it reads the file."""
    from devlet.plugins import grants

    for entry in found.entries or ():
        try:
            grants.decode(entry.response or b"")
        except StateCorrupt as e:
            yield f"pod {entry.pod}, container {entry.container}, {entry.resource} will be dropped: {e}"
