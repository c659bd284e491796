"""Recover claims from a damaged claim checkpoint.

A file with valid JSON and a wrong checksum still has all of its content. From any other file, every object that looks
like a claim is recovered, wherever it is, and the rest is listed as lost. In the current version, claims are JSON
inside a string, so the file is also searched with one level of quoting removed.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from devlet.objects.identifiers import ObjectKey
from devlet.state import claim_legacy, go_json
from devlet.state.claim_checkpoint import MAX_BYTES, Checkpoint, ClaimEntry, Form, attempts, by_name, read_claim
from devlet.state.go_json import Malformed, Members
from devlet.state.json_pieces import scan

_ESCAPES = re.compile(r'(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+')
_CLAIM = re.compile(
    r'\{\s*(?:"(?:DriverName|ClassName)"\s*:\s*"[^"\\]{0,253}"\s*,\s*){0,2}"ClaimUID"\s*:\s*"([^"\\]{0,80})'
    r'(?:"\s*,\s*"ClaimName"\s*:\s*"([^"\\]{0,253}))?',
    re.IGNORECASE,
)


class Salvage(Struct, frozen=True):
    """`lost` has a line for everything that cannot be read."""

    claims: tuple[ClaimEntry, ...]
    lost: tuple[str, ...] = ()


def salvage(blob: bytes) -> Salvage:
    pieces = _pieces(go_json.loose(blob[:MAX_BYTES]))
    for result in attempts(blob):
        if isinstance(result, Checkpoint):
            return Salvage(result.claims or ())
        # Valid JSON may contain less than can be recovered, if the name of a field is damaged.
        if result.data is not None and len(by_name(result.data.claims or ())) >= len(pieces.claims):
            return Salvage(result.data.claims or ())
    return pieces


def _pieces(text: str) -> Salvage:
    """Search the file as it is and without quoting. Old files are not quoted, but data of drivers in them may be."""
    found = [_unique(text), _unique(_unquoted(text))]
    return max(found, key=lambda salvage: (len(salvage.claims), len(salvage.lost)))


def _unquoted(text: str) -> str:
    """Remove one level of quoting. Adjacent escapes are decoded together, as they may be a surrogate pair."""
    return go_json.valid(_ESCAPES.sub(lambda row: json.loads(f'"{row[0]}"'), text))


def _unique(text: str) -> Salvage:
    """Keep the last of each claim: a partly overwritten file may contain it twice."""
    lost: list[str] = []
    kept: dict[ObjectKey, ClaimEntry] = {}
    for claim in _claims(text, lost):
        if (before := kept.pop((claim.namespace, claim.name), None)) is not None:
            lost.append(f"another entry of claim {before.namespace}/{before.name}, with UID {before.uid or '?'}")
        kept[claim.namespace, claim.name] = claim
    return Salvage(tuple(kept.values()), tuple(lost))


def _claims(text: str, lost: list[str]) -> Iterator[ClaimEntry]:
    def label(start: int) -> str | None:
        claim = _CLAIM.match(text, start)
        return f"claim {claim[2] or '?'} with UID {claim[1] or '?'}" if claim else None

    return scan(text, _claim, label, lost)


def _claim(value: Any) -> ClaimEntry | None:
    names = {name for name, _ in go_json.members(value)} if isinstance(value, Members) else set()
    if not {"claimuid", "claimname", "namespace"} <= names:
        return None
    if "cdidevices" not in names:
        return read_claim(value)
    try:
        return claim_legacy.claim(claim_legacy.read_entry(value, Form.V1_30))
    except Malformed as error:
        try:
            return claim_legacy.claim(claim_legacy.read_entry(value, Form.BETA))
        except Malformed:
            raise error from None
