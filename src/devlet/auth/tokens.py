"""Bearer tokens: the signed ones of service accounts (JWT, ES256), and fixed ones from a table.

A signature proves only that we issued the token once. `authentication` checks for each request whether the account, and
the object that the token is bound to, still exist.
"""

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import Struct

from devlet.auth import jws
from devlet.auth.jws import InvalidToken
from devlet.auth.service_accounts import username
from devlet.auth.users import User

ISSUER = "https://kubernetes.default.svc.cluster.local"
MAX_TOKEN = 16 * 1024  # characters
LEEWAY = timedelta(minutes=1)  # a host's clock may be set back

_REMEMBERED = 1024


class Reference(Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str = ""


class Binding(Struct, frozen=True, omit_defaults=True):
    """The claim `kubernetes.io`. A token for a pod or a secret is valid as long as that object exists. A token that
    names only a node, with its uid, is valid as long as the Node object exists."""

    namespace: str
    serviceaccount: Reference
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None


class Claims(Struct, frozen=True, kw_only=True):
    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: Binding = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_claims = msgspec.json.Decoder(Claims)


class TokenIssuer:
    """Issues and verifies the tokens of service accounts, with one key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, issuer: str = ISSUER) -> None:
        self.issuer = issuer
        self._key = key
        self._public = key.public_key()
        self.key_id = _key_id(self._public)
        self._decode_remembered = lru_cache(_REMEMBERED)(self._decode)

    def issue(
        self,
        binding: Binding,
        now: datetime,
        lifetime: timedelta,
        audiences: tuple[str, ...] = (),
        token_id: str = "",
    ) -> str:
        """Return a token for `audiences`, by default for the API itself."""
        moment = int(now.timestamp())
        claims = Claims(
            aud=audiences or (self.issuer,),
            exp=moment + int(lifetime.total_seconds()),
            iat=moment,
            iss=self.issuer,
            jti=token_id or str(uuid.uuid4()),
            kubernetes=binding,
            nbf=moment,
            sub=username(binding.namespace, binding.serviceaccount.name),
        )
        return jws.sign(msgspec.json.encode(claims), self._key, self.key_id)

    def verify(self, token: str, now: datetime, audiences: tuple[str, ...] = ()) -> Claims:
        """Return the claims of a token. Raise InvalidToken unless the token is ours, valid now, and for one of
        `audiences` (by default the API)."""
        if len(token) > MAX_TOKEN:
            raise InvalidToken(f"token of {len(token)} characters: at most {MAX_TOKEN} are accepted")
        claims = self._decode_remembered(token)
        if now >= datetime.fromtimestamp(claims.exp, UTC) + LEEWAY:
            raise InvalidToken("token has expired")
        if now < datetime.fromtimestamp(claims.nbf, UTC) - LEEWAY:
            raise InvalidToken("token is not valid yet")
        if not set(claims.aud) & set(audiences or (self.issuer,)):
            raise InvalidToken(f"token is for {', '.join(claims.aud) or 'no audience'}")
        return claims

    def _decode(self, token: str) -> Claims:
        """Check everything about a token that does not change with time."""
        payload = jws.verify(token, self._public, self.key_id)
        try:
            json.loads(payload, object_pairs_hook=jws.unique_keys)
            claims = _claims.decode(payload)
            datetime.fromtimestamp(claims.exp + LEEWAY.total_seconds(), UTC)
            datetime.fromtimestamp(claims.nbf - LEEWAY.total_seconds(), UTC)
        except (msgspec.MsgspecError, ValueError, OverflowError, OSError, RecursionError) as e:
            raise InvalidToken(f"token claims: {e}") from e
        binding = claims.kubernetes
        if claims.iss != self.issuer:
            raise InvalidToken(f"token was issued by {claims.iss}")
        if claims.sub != username(binding.namespace, binding.serviceaccount.name):
            raise InvalidToken("token claims: sub does not name the service account")
        return claims


class StaticTokens:
    """Fixed tokens and their users. Only digests are kept, and a look-up takes the same time whatever the result."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = [(_digest(token), user) for token, user in users.items()]

    def find(self, token: str) -> User | None:
        wanted, found = _digest(token), None
        for digest, user in self._users:
            if hmac.compare_digest(digest, wanted):
                found = user
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _key_id(key: ec.EllipticCurvePublicKey) -> str:
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return jws.encode(hashlib.sha256(der).digest())
