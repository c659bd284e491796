import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.cluster.store import pages
from devlet.cluster.store.pages import Position
from devlet.errors import BadRequest

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", max_size=253)


@given(st.integers(0, 2**63), NAMES, NAMES)
def test_a_position_comes_back_from_its_token(version: int, namespace: str, name: str) -> None:
    position = Position(version, (namespace, name))
    assert pages.decode(position.encode()) == position


def test_a_token_is_opaque_and_fits_into_an_address() -> None:
    token = Position(5, ("", "n" * 253)).encode()
    assert token.isascii() and not set(token) & set("+/=&?")


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_garbage_is_a_bad_request_or_a_position(text: str) -> None:
    try:
        assert pages.decode(text).version >= 0
    except BadRequest as e:
        assert "continue key is not valid" in str(e)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["v", "rv", "start", "x"]), inner),
    )
)
def test_other_json_is_a_bad_request(value: object) -> None:
    try:
        raw = msgspec.json.encode(value)
    except OverflowError:
        return
    with pytest.raises(BadRequest):
        pages.decode(base64.urlsafe_b64encode(raw).decode())


@pytest.mark.parametrize(
    "token",
    [
        '{"v":"v0","rv":1,"start":"a/b"}',
        '{"v":"meta.k8s.io/v1","rv":-1,"start":"a/b"}',
        '{"v":"meta.k8s.io/v1","rv":1,"start":"ab"}',
    ],
)
def test_a_token_of_another_server_is_a_bad_request(token: str) -> None:
    with pytest.raises(BadRequest, match="not made by this server"):
        pages.decode(base64.urlsafe_b64encode(token.encode()).decode())


def test_a_token_has_a_limit() -> None:
    with pytest.raises(BadRequest, match="too long"):
        pages.decode("A" * (pages.MAX_TOKEN + 1))
