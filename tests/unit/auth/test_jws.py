import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from devlet.auth import jws
from devlet.auth.jws import InvalidToken

KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = KEY.public_key()


@pytest.mark.parametrize("payload", [b"", b"{}", bytes(range(256))])
def test_verifying_returns_what_was_signed(payload: bytes) -> None:
    assert jws.verify(jws.sign(payload, KEY, "k"), PUBLIC, "k") == payload


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.b.c.d", "e30.e30.", "\udcff.é.a"])
def test_other_text_is_not_a_token(token: str) -> None:
    with pytest.raises(InvalidToken):
        jws.verify(token, PUBLIC, "k")


def test_a_token_has_only_one_accepted_form() -> None:
    """Otherwise a token that was refused once could come back in another form."""
    header, payload, signature = jws.sign(b"xy", KEY, "k").split(".")
    for changed in (
        f"{header}.{payload}=.{signature}",
        f"{header}.{payload[:-1]}{chr(ord(payload[-1]) + 1)}.{signature}",  # differs in bits that are not decoded
        f"{header}.{payload}.{signature}==",
        f" {header}.{payload}.{signature}",
        f"{header}.{payload}.{signature}\n",
    ):
        with pytest.raises(InvalidToken, match="without padding"):
            jws.verify(changed, PUBLIC, "k")


def test_the_key_must_be_the_one_that_the_header_names() -> None:
    token = jws.sign(b"{}", KEY, "k")
    with pytest.raises(InvalidToken, match="another key"):
        jws.verify(token, PUBLIC, "other")
    with pytest.raises(InvalidToken, match="signature is wrong"):
        jws.verify(token, ec.generate_private_key(ec.SECP256R1()).public_key(), "k")


def test_the_keys_of_an_object_are_unique() -> None:
    assert jws.unique_keys([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="repeated"):
        jws.unique_keys([("a", 1), ("a", 1)])


@pytest.mark.parametrize("arguments", [["get", "pods"], ["get", "pods", "-o", "yaml"], ["describe", "pod", "x"]])
def test_commands_that_only_read_do_not_import_the_library(arguments: list[str]) -> None:
    code = f"import sys; from devlet.cli.main import run; run({[*arguments, '--root', '/nope']}); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert "devlet.cli.main" in loaded
    assert not loaded & {"jwt", "cryptography", "devlet.auth"}
