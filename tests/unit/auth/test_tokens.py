from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from hypothesis import given
from hypothesis import strategies as st

from devlet.auth.certificates import new_key
from devlet.auth.tokens import ISSUER, MAX_TOKEN, Binding, InvalidToken, Reference, StaticTokens, TokenIssuer
from devlet.auth.users import User

KEY = new_key()
TOKENS = TokenIssuer(KEY)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
BINDING = Binding("ns", Reference("sa", "u-1"), pod=Reference("p", "u-2"), node=Reference("n", "u-3"))


def encode(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def parts(token: str) -> list[Any]:
    header, payload, _ = token.split(".")
    return [msgspec.json.decode(urlsafe_b64decode(part + "==")) for part in (header, payload)]


def signed(header: object, payload: object, key: ec.EllipticCurvePrivateKey = KEY) -> str:
    """A token that says whatever we want it to say."""
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


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
references = st.builds(Reference, names, names)
bindings = st.builds(Binding, names, references, st.none() | references, st.none() | references, st.none() | references)


@given(bindings, st.lists(names, min_size=1, max_size=3), st.integers(600, 2**32))
def test_what_was_issued_is_what_is_verified(binding: Binding, audiences: list[str], seconds: int) -> None:
    token = TOKENS.issue(binding, NOW, timedelta(seconds=seconds), tuple(audiences))
    claims = TOKENS.verify(token, NOW, tuple(audiences[:1]))
    assert claims.kubernetes == binding
    assert claims.aud == tuple(audiences)
    assert claims.exp == int(NOW.timestamp()) + seconds


@given(st.text(max_size=200) | st.lists(st.text("abcAB_-=0", max_size=30), max_size=5).map(".".join))
def test_no_text_is_a_token_by_chance(text: str) -> None:
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
def test_signed_nonsense_is_refused_or_read_as_claims(key: str, value: object) -> None:
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
        [],
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


def test_a_token_of_another_key_is_refused_even_with_our_key_id() -> None:
    header, payload = parts(VALID)
    with pytest.raises(InvalidToken, match="signature is wrong"):
        TOKENS.verify(signed(header, payload, new_key()), NOW)
    with pytest.raises(InvalidToken, match="another key"):
        TokenIssuer(new_key()).verify(VALID, NOW)


@pytest.mark.parametrize("signature", [b"", b"\0" * 63, b"\0" * 64, b"\xff" * 64, b"\0" * 65])
def test_a_signature_that_is_none_is_refused(signature: bytes) -> None:
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
def test_a_token_is_valid_from_its_making_to_its_end(after: timedelta, text: str) -> None:
    for _ in range(2):  # the second time it is remembered
        if text:
            with pytest.raises(InvalidToken, match=text):
                TOKENS.verify(VALID, NOW + after)
        else:
            assert TOKENS.verify(VALID, NOW + after).kubernetes == BINDING


def test_a_token_for_somebody_else_is_not_for_the_api() -> None:
    token = TOKENS.issue(BINDING, NOW, HOUR, ("vault",))
    assert TOKENS.verify(token, NOW, ("x", "vault")).aud == ("vault",)
    with pytest.raises(InvalidToken, match="token is for vault"):
        TOKENS.verify(token, NOW)


def test_a_huge_token_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidToken, match="at most"):
        TOKENS.verify("a" * (MAX_TOKEN + 1), NOW)


def test_fixed_tokens_are_found_whole_and_not_kept_in_clear() -> None:
    table = StaticTokens({"secret-one": User("one"), "secret-two": User("two")})
    assert table.find("secret-two") == User("two")
    assert [table.find(text) for text in ("secret-tw", "secret-two ", "", "\udc80")] == [None] * 4
    assert "secret" not in repr(vars(table))
