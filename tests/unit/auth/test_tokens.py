import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from hypothesis import given
from hypothesis import strategies as st

from devlet.auth.certificates import new_key
from devlet.auth.jws import InvalidToken
from devlet.auth.tokens import ISSUER, MAX_TOKEN, Binding, Reference, StaticTokens, TokenIssuer
from devlet.auth.users import User

KEY = new_key()
TOKENS = TokenIssuer(KEY)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
# Of the key that `test_a_token_of_an_earlier_version_is_still_valid` uses.
EARLIER = (
    "eyJhbGciOiJFUzI1NiIsImtpZCI6Im5qbkpHaWNwbGEyUW01cGNnNUdxYUk0UFN5aHlmRlp2emJKMXN0ZnBtZUUifQ"
    ".eyJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3ZjLmNsdXN0ZXIubG9jYWwiXSwiZXhwIjoxNzc3NjQwNDAwLCJpYXQiOjE3N"
    "zc2MzY4MDAsImlzcyI6Imh0dHBzOi8va3ViZXJuZXRlcy5kZWZhdWx0LnN2Yy5jbHVzdGVyLmxvY2FsIiwianRpIjoiaiIsImt1YmVybmV0ZXM"
    "uaW8iOnsibmFtZXNwYWNlIjoibnMiLCJzZXJ2aWNlYWNjb3VudCI6eyJuYW1lIjoic2EiLCJ1aWQiOiJ1LTEifSwicG9kIjp7Im5hbWUiOiJwI"
    "iwidWlkIjoidS0yIn0sIm5vZGUiOnsibmFtZSI6Im4iLCJ1aWQiOiJ1LTMifX0sIm5iZiI6MTc3NzYzNjgwMCwic3ViIjoic3lzdGVtOnNlcnZ"
    "pY2VhY2NvdW50Om5zOnNhIn0"
    ".3OEnM9fuoGTlshwmhIytnf9YfEjPi8bN_zJZyUJOiwrX-n05ouL2vMDYQKJ6QQ8oZNssnGnqINfIu6JPbdubIQ"
)
BINDING = Binding("ns", Reference("sa", "u-1"), pod=Reference("p", "u-2"), node=Reference("n", "u-3"))


def encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def parts(token: str) -> list[Any]:
    header, payload, _ = token.split(".")
    return [msgspec.json.decode(urlsafe_b64decode(part + "==")) for part in (header, payload)]


def signed(header: object, payload: object, key: ec.EllipticCurvePrivateKey = KEY) -> str:
    """Return a correctly signed token with any content."""
    text = ".".join(encode(x if isinstance(x, bytes) else msgspec.json.encode(x)) for x in (header, payload))
    r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def test_the_claims_are_those_of_kubernetes() -> None:
    header, payload = parts(TOKENS.issue(BINDING, NOW, HOUR, token_id="j"))
    assert header == {"alg": "ES256", "kid": TOKENS.key_id}
    assert payload == {
        "aud": [ISSUER],
        "exp": int(NOW.timestamp()) + 3600,
        "iat": int(NOW.timestamp()),
        "iss": ISSUER,
        "jti": "j",
        "kubernetes.io": {
            "namespace": "ns",
            "serviceaccount": {"name": "sa", "uid": "u-1"},
            "pod": {"name": "p", "uid": "u-2"},
            "node": {"name": "n", "uid": "u-3"},
        },
        "nbf": int(NOW.timestamp()),
        "sub": "system:serviceaccount:ns:sa",
    }


def test_every_token_has_an_id_of_its_own() -> None:
    ids = {TOKENS.verify(TOKENS.issue(BINDING, NOW, HOUR), NOW).jti for _ in range(3)}
    assert len(ids) == 3


def test_a_token_of_an_earlier_version_is_still_valid() -> None:
    """The token was issued before PyJWT was used."""
    issuer = TokenIssuer(ec.derive_private_key(20260501, ec.SECP256R1()))
    claims = issuer.verify(EARLIER, NOW)
    assert (claims.kubernetes, claims.jti, claims.aud) == (BINDING, "j", (ISSUER,))
    again = issuer.issue(BINDING, NOW, HOUR, token_id="j")
    assert again.rpartition(".")[0] == EARLIER.rpartition(".")[0]  # signatures contain a random number


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
references = st.builds(Reference, names, names)
bindings = st.builds(Binding, names, references, st.none() | references, st.none() | references, st.none() | references)


@given(bindings, st.lists(names, min_size=1, max_size=3), st.integers(600, 2**32))
def test_verifying_returns_the_issued_claims(binding: Binding, audiences: list[str], seconds: int) -> None:
    token = TOKENS.issue(binding, NOW, timedelta(seconds=seconds), tuple(audiences))
    claims = TOKENS.verify(token, NOW, tuple(audiences[:1]))
    assert claims.kubernetes == binding
    assert claims.aud == tuple(audiences)
    assert claims.exp == int(NOW.timestamp()) + seconds


@given(st.text(max_size=200) | st.lists(st.text("abcAB_-=0", max_size=30), max_size=5).map(".".join))
def test_other_text_is_not_a_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        TOKENS.verify(text, NOW)


VALID = TOKENS.issue(BINDING, NOW, HOUR)


@given(st.integers(0, len(VALID) - 1), st.characters(max_codepoint=0x2000))
def test_a_token_with_any_other_character_is_invalid(position: int, character: str) -> None:
    changed = VALID[:position] + character + VALID[position + 1 :]
    if changed != VALID:
        with pytest.raises(InvalidToken):
            TOKENS.verify(changed, NOW)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*parts(VALID)[1]]), json_values)
def test_signed_claims_of_any_type_are_refused_or_valid(key: str, value: object) -> None:
    header, payload = parts(VALID)
    try:
        claims = TOKENS.verify(signed(header, payload | {key: value}), NOW)
    except InvalidToken:
        return
    assert claims.sub == "system:serviceaccount:ns:sa"


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none", "kid": TOKENS.key_id},
        {"alg": "HS256", "kid": TOKENS.key_id},
        {"alg": "es256", "kid": TOKENS.key_id},
        {"alg": "ES256", "kid": "other"},
        {"alg": "ES256"},
        {"kid": TOKENS.key_id},
        {"alg": "ES256", "kid": TOKENS.key_id, "crit": ["x"]},
        {"alg": "ES256", "kid": TOKENS.key_id, "typ": "other"},
        {"alg": "ES256", "kid": TOKENS.key_id, "b64": False},
        {"alg": "ES256", "kid": ["x"]},
        [],
        b'{"alg": "none", "alg": "ES256", "kid": ""}',
        b"[" * 10_000,
        b"\xff\xff",
        b'{"alg": "\xff", "kid": ""}',
    ],
)
def test_only_one_algorithm_and_one_key_are_accepted(header: object) -> None:
    with pytest.raises(InvalidToken, match=r"header|another key"):
        TOKENS.verify(signed(header, parts(VALID)[1]), NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://elsewhere"},
        {"sub": "system:serviceaccount:ns:other"},
        {"sub": "admin"},
        {"exp": 2**62},
        {"nbf": -(2**62)},
        {"kubernetes.io": {"namespace": "ns"}},
    ],
)
def test_signed_claims_must_fit_together(change: dict[str, Any]) -> None:
    header, payload = parts(VALID)
    with pytest.raises(InvalidToken):
        TOKENS.verify(signed(header, payload | change), NOW)


@pytest.mark.parametrize("claim", ["aud", "exp", "iat", "iss", "jti", "kubernetes.io", "nbf", "sub"])
def test_every_claim_is_required_and_may_appear_only_once(claim: str) -> None:
    header, payload = parts(VALID)
    with pytest.raises(InvalidToken, match=f"token claims: Object missing required field `{claim}`"):
        TOKENS.verify(signed(header, {key: value for key, value in payload.items() if key != claim}), NOW)
    twice = msgspec.json.encode(payload)[:-1] + b"," + msgspec.json.encode({claim: payload[claim]})[1:]
    with pytest.raises(InvalidToken, match="token claims: a key is repeated"):
        TOKENS.verify(signed(header, twice), NOW)


def test_a_keyed_hash_with_the_public_key_is_not_a_signature() -> None:
    """The public key is not secret: a verifier that let the token choose HS256 would accept this token."""
    public = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for algorithm in ("HS256", "ES256"):
        header = {"alg": algorithm, "kid": TOKENS.key_id}
        text = ".".join(encode(msgspec.json.encode(part)) for part in (header, parts(VALID)[1]))
        for digest in (hmac.digest(public, text.encode(), "sha256"), b""):
            with pytest.raises(InvalidToken, match=r"header|signature is wrong"):
                TOKENS.verify(f"{text}.{encode(digest)}", NOW)


def test_a_token_of_another_key_is_refused_even_with_our_key_id() -> None:
    header, payload = parts(VALID)
    with pytest.raises(InvalidToken, match="signature is wrong"):
        TOKENS.verify(signed(header, payload, new_key()), NOW)
    with pytest.raises(InvalidToken, match="another key"):
        TokenIssuer(new_key()).verify(VALID, NOW)


@pytest.mark.parametrize("signature", [b"", b"\0" * 63, b"\0" * 64, b"\xff" * 64, b"\0" * 65])
def test_a_malformed_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(InvalidToken, match="signature"):
        TOKENS.verify(f"{VALID.rpartition('.')[0]}.{encode(signature)}", NOW)


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (timedelta(minutes=-2), "not valid yet"),
        (timedelta(seconds=-30), ""),
        (HOUR + timedelta(seconds=59), ""),
        (HOUR + timedelta(minutes=1), "expired"),
    ],
)
def test_a_token_is_valid_from_its_issue_to_its_expiry(after: timedelta, text: str) -> None:
    for _ in range(2):  # the second time from the cache
        if text:
            with pytest.raises(InvalidToken, match=text):
                TOKENS.verify(VALID, NOW + after)
        else:
            assert TOKENS.verify(VALID, NOW + after).kubernetes == BINDING


def test_a_token_for_another_audience_is_not_for_the_api() -> None:
    token = TOKENS.issue(BINDING, NOW, HOUR, ("vault",))
    assert TOKENS.verify(token, NOW, ("x", "vault")).aud == ("vault",)
    with pytest.raises(InvalidToken, match="token is for vault"):
        TOKENS.verify(token, NOW)


def test_a_huge_token_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidToken, match="at most"):
        TOKENS.verify("a" * (MAX_TOKEN + 1), NOW)


def test_fixed_tokens_are_matched_completely_and_stored_as_digests() -> None:
    table = StaticTokens({"secret-one": User("one"), "secret-two": User("two")})
    assert table.find("secret-two") == User("two")
    assert [table.find(text) for text in ("secret-tw", "secret-two ", "", "\udc80")] == [None] * 4
    assert "secret" not in repr(vars(table))
