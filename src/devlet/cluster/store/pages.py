"""Continue tokens: where the next page of a list starts, and in which state of the cluster.

Opaque to clients. Same shape as the reference's tokens; `start` is the last key of the page before.
"""

import base64
import binascii
from dataclasses import dataclass

import msgspec

from devlet.errors import BadRequest
from devlet.objects.identifiers import ObjectKey

MAX_TOKEN = 2_048


class _Token(msgspec.Struct, forbid_unknown_fields=True):
    v: str
    rv: int
    start: str


@dataclass(frozen=True, slots=True)
class Position:
    version: int  # 0: whatever is current
    after: ObjectKey

    def encode(self) -> str:
        token = _Token("meta.k8s.io/v1", self.version, "/".join(self.after))
        return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode(text: str) -> Position:
    if len(text) > MAX_TOKEN:
        raise BadRequest("continue key is not valid: too long")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        token = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, UnicodeEncodeError, ValueError) as e:
        raise BadRequest(f"continue key is not valid: {e}") from e
    namespace, slash, name = token.start.partition("/")
    if token.v != "meta.k8s.io/v1" or token.rv < 0 or not slash:
        raise BadRequest("continue key is not valid: not made by this server")
    return Position(token.rv, (namespace, name))
