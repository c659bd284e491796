"""Signing and verifying compact JSON Web Signatures with one algorithm, ES256, and one key at a time.

PyJWT computes the signatures. This module first refuses what PyJWT tolerates: other headers, repeated keys, padding. So
a token has exactly one accepted form. `tokens` checks the claims in the payload, because PyJWT can only compare times
with the system clock.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from jwt import PyJWS, PyJWTError

from devlet.errors import InvalidInput

__all__ = ["InvalidToken", "encode", "sign", "unique_keys", "verify"]

_ALGORITHM = "ES256"
_JWS = PyJWS(algorithms=[_ALGORITHM])


class InvalidToken(InvalidInput):
    """The token is not ours or is not valid now. The text is for the log: clients only learn that it is invalid."""


def sign(payload: bytes, key: ec.EllipticCurvePrivateKey, key_id: str) -> str:
    """Return a token with the payload. The header names the algorithm and the key."""
    return _JWS.encode(payload, key, _ALGORITHM, {"typ": "", "kid": key_id}, sort_headers=False)


def verify(token: str, key: ec.EllipticCurvePublicKey, key_id: str) -> bytes:
    """Return the payload of a token that `sign` made with this key. Raise InvalidToken for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("not a token: three parts, separated by dots, are expected")
    header, *_ = map(_decode, parts)  # each part must have the one accepted form
    _check_header(header, key_id)
    try:
        payload: bytes = _JWS.decode(token, key, [_ALGORITHM])
    except PyJWTError:
        raise InvalidToken("token signature is wrong") from None
    return payload


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raise ValueError if a key is repeated: parsers disagree about which one counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is repeated")
    return found


def encode(content: bytes) -> str:
    """Return the content as base64url without padding."""
    return urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _decode(part: str) -> bytes:
    """Decode base64url. Only the one form that `encode` returns is accepted."""
    try:
        content = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        content = b""
    if encode(content) != part:
        raise InvalidToken("token: base64url without padding is expected")
    return content


def _check_header(text: bytes, key_id: str) -> None:
    try:
        header = json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as e:
        raise InvalidToken(f"token header: {e}") from e
    found = header.pop("kid", None) if isinstance(header, dict) else None
    if header not in ({"alg": _ALGORITHM}, {"alg": _ALGORITHM, "typ": "JWT"}):
        raise InvalidToken(f"token header: only {_ALGORITHM} without extensions is accepted")
    if found != key_id:
        raise InvalidToken("token was signed with another key")
