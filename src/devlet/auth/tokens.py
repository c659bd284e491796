"""Bearer tokens: those of service accounts, which are signed (JWT, ES256), and fixed ones, which are listed.

A signature says only that we made a token once. Whether the account and the pod it is bound to still exist is asked by
`authentication`, each time.
"""

import hashlib
import hmac
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, NoReturn

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from msgspec import Struct

from devlet.auth.service_accounts import username
from devlet.auth.users import User
from devlet.errors import InvalidInput

ISSUER = "https://kubernetes.default.svc.cluster.local"
MAX_TOKEN = 16 * 1024  # characters
LEEWAY = timedelta(minutes=1)  # a host's clock is set back now and then

_ALGORITHM = "ES256"
_HALF = 32  # bytes of each number of a signature
_REMEMBERED = 1024
_ES256 = ec.ECDSA(hashes.SHA256())


class InvalidToken(InvalidInput):
    """Not a token of ours that is valid now. The text is for the log: clients are told only that it is invalid."""


class Reference(Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str = ""


class Binding(Struct, frozen=True, omit_defaults=True):
    """The claim `kubernetes.io`. A token for a pod or secret is valid as long as that exists; one that names only a
    node, as long as the node does, if it says which one (uid)."""

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


class _Header(Struct, frozen=True):
    alg: str
    kid: str
    typ: str = "JWT"
    crit: Any = None


_claims = msgspec.json.Decoder(Claims)
_header = msgspec.json.Decoder(_Header)


class TokenIssuer:
    """Makes and verifies the tokens of service accounts, with one key."""

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
        """A token for the API itself, unless `audiences` says for whom."""
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
        header = {"alg": _ALGORITHM, "kid": self.key_id}
        signed = f"{_encode(msgspec.json.encode(header))}.{_encode(msgspec.json.encode(claims))}"
        return f"{signed}.{_encode(self._sign(signed.encode()))}"

    def verify(self, token: str, now: datetime, audiences: tuple[str, ...] = ()) -> Claims:
        """What the token says, if it is ours, valid now, and for one of `audiences` (the API, unless said)."""
        if len(token) > MAX_TOKEN:
            raise InvalidToken(f"token of {len(token)} characters: at most {MAX_TOKEN} are accepted")
        claims = self._decode_remembered(token)
        if now >= datetime.fromtimestamp(claims.exp, UTC) + LEEWAY:
            raise InvalidToken("token has expired")
        if now < datetime.fromtimestamp(claims.nbf, UTC) - LEEWAY:
            raise InvalidToken("token is not valid yet")
        if not set(claims.aud) & set(audiences or (self.issuer,)):
            raise InvalidToken(f"token is for {', '.join(claims.aud) or 'nobody'}")
        return claims

    def _sign(self, text: bytes) -> bytes:
        r, s = utils.decode_dss_signature(self._key.sign(text, _ES256))
        return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")

    def _decode(self, token: str) -> Claims:
        """Everything about a token that does not change with time."""
        if not token.isascii():
            _not_base64()
        match token.split("."):
            case [header, payload, signature]:
                self._check_header(_decode(header))
                self._check_signature(f"{header}.{payload}".encode("ascii"), _decode(signature))
                return self._read_claims(_decode(payload))
        raise InvalidToken("not a token: three parts, separated by dots, are expected")

    def _check_header(self, text: bytes) -> None:
        try:
            header = _header.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as e:
            raise InvalidToken(f"token header: {e}") from e
        if header.alg != _ALGORITHM or header.typ != "JWT" or header.crit is not None:
            raise InvalidToken(f"token header: only {_ALGORITHM} without extensions is accepted")
        if header.kid != self.key_id:
            raise InvalidToken("token was signed with another key")

    def _check_signature(self, text: bytes, signature: bytes) -> None:
        if len(signature) != 2 * _HALF:
            raise InvalidToken("token signature: 64 bytes are expected")
        r, s = (int.from_bytes(half, "big") for half in (signature[:_HALF], signature[_HALF:]))
        try:
            self._public.verify(utils.encode_dss_signature(r, s), text, _ES256)
        except InvalidSignature:
            raise InvalidToken("token signature is wrong") from None

    def _read_claims(self, text: bytes) -> Claims:
        try:
            claims = _claims.decode(text)
            datetime.fromtimestamp(claims.exp + LEEWAY.total_seconds(), UTC)
            datetime.fromtimestamp(claims.nbf - LEEWAY.total_seconds(), UTC)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError, OSError) as e:
            raise InvalidToken(f"token claims: {e}") from e
        binding = claims.kubernetes
        if claims.iss != self.issuer:
            raise InvalidToken(f"token was issued by {claims.iss}")
        if claims.sub != username(binding.namespace, binding.serviceaccount.name):
            raise InvalidToken("token claims: sub is not the service account")
        return claims


class StaticTokens:
    """Fixed tokens and whose they are. Only digests are kept, and a look-up takes the same time for any answer."""

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
    return _encode(hashlib.sha256(der).digest())


def _encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    """Only the one form that encoding gives."""
    try:
        content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        _not_base64()
    if _encode(content) != text:
        _not_base64()
    return content


def _not_base64() -> NoReturn:
    raise InvalidToken("token: base64url without padding is expected") from None
