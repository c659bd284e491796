"""TLS contexts from certificates in memory, verified as Go does it: a trusted certificate need not be a root."""

import ssl
import tempfile

from devlet.cluster.remote.connection import Connection
from devlet.errors import InvalidInput


def tls_context(connection: Connection, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    context = _trusting(connection)
    # Newer Python versions insist on extensions that the certificates of many clusters do not have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        _load(context, certificate, key, connection.address)
    return context


def _trusting(connection: Connection) -> ssl.SSLContext:
    if not connection.ca:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=connection.ca.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as e:
        raise InvalidInput(f"{connection.address}: the certificate authority is not PEM: {e}") from None


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes, address: str) -> None:
    # The standard library reads key pairs from files only. This file is private (0600) and removed at once.
    with tempfile.NamedTemporaryFile(prefix="devlet-") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: "")  # without it a terminal would be asked
        except (ssl.SSLError, OSError, ValueError) as e:
            raise InvalidInput(f"{address}: the client certificate and its key are not usable: {e}") from None
