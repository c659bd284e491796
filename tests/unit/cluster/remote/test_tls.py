import ssl
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from devlet.cluster.remote.connection import Connection
from devlet.cluster.remote.tls import tls_context
from devlet.errors import InvalidInput

SERVER = "https://h"


def test_a_server_is_verified_by_default(authority: Any) -> None:
    strict = tls_context(Connection(SERVER, ca=authority.pem))
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(strict.get_ca_certs()) == 1
    lax = tls_context(Connection(SERVER, verify=False))
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_NONE, False)


def test_a_key_pair_has_to_be_one(authority: Any) -> None:
    (certificate, key), (_, other) = authority.issue("a"), authority.issue("b")
    connection = Connection(SERVER, ca=authority.pem)
    assert tls_context(connection, certificate, key).verify_mode == ssl.CERT_REQUIRED
    for wrong in (other, b"", b"rubbish"):
        with pytest.raises(InvalidInput, match="https://h: the client certificate and its key are not usable"):
            tls_context(connection, certificate, wrong)


def test_a_key_with_a_password_is_refused_without_asking_for_it(authority: Any) -> None:
    certificate, key = authority.issue("a")
    locked = serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(InvalidInput, match="not usable"):
        tls_context(Connection(SERVER), certificate, locked)


@pytest.mark.parametrize("ca", [b"rubbish", b"\xff", b"-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n"])
def test_an_authority_is_pem(ca: bytes) -> None:
    with pytest.raises(InvalidInput, match="https://h: the certificate authority is not PEM"):
        tls_context(Connection(SERVER, ca=ca))
