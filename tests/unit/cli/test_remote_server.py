import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from devlet.cli.remote_server import RemoteServer, prove
from devlet.cli.session import Session
from devlet.cluster.remote.connection import Connection, Credentials, Impersonation, KeyPair
from devlet.errors import InvalidInput, Unavailable


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


def certificate(tmp_path: Path) -> tuple[bytes, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api.test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("api.test")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "server.pem"
    path.write_bytes(pem + secret)
    return pem, path


@pytest.fixture
def https(tmp_path: Path) -> Iterator[tuple[str, bytes]]:
    """A server's address, and the certificate that it is trusted by if it is called api.test."""
    pem, path = certificate(tmp_path)
    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    Handler.seen = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/prefix/", pem
    server.shutdown()
    thread.join()
    server.server_close()


def get(connection: Connection) -> None:
    session = Session(RemoteServer(connection), warn=print)
    try:
        assert session.get("/api") == {}
    finally:
        session.close()


def test_requests_carry_the_token_below_the_servers_path(https: tuple[str, bytes]) -> None:
    address, ca = https
    get(Connection(address, ca=ca, tls_server_name="api.test", credentials=Credentials(token="secret")))
    assert Handler.seen == [("/prefix/api", "Bearer secret")]


def test_a_certificate_for_another_server_is_not_trusted(https: tuple[str, bytes]) -> None:
    address, ca = https
    for connection in (Connection(address, ca=ca), Connection(address, tls_server_name="api.test")):
        with pytest.raises(Unavailable, match="the server's certificate is not trusted"):
            get(connection)
    get(Connection(address, verify=False))


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(Unavailable, match=r"cannot connect to https://127.0.0.1:1: Connection refused"):
        get(Connection("https://127.0.0.1:1"))
    assert "does not answer" in RemoteServer(Connection("https://127.0.0.1:1")).trouble(TimeoutError())


def test_credentials_are_not_sent_where_everybody_could_read_them() -> None:
    assert prove(Connection("http://127.0.0.1:1", credentials=Credentials(token="t"))) == ([], None)


def test_impersonation_and_token_files_are_left_to_the_cluster_client(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    credentials = Credentials(token_file=tmp_path / "token")
    headers, tls = prove(Connection("https://x", credentials=credentials, impersonate=Impersonation("jane")))
    assert headers == [("Authorization", "Bearer from-file"), ("Impersonate-User", "jane")]
    assert tls is not None


def test_what_is_wrong_with_credentials_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="unprintable"):
        prove(Connection("https://x", credentials=Credentials(token="a\nb")))
    pair = KeyPair(tmp_path / "nope.crt", b"key")
    with pytest.raises(InvalidInput, match=r"nope\.crt: No such file"):
        prove(Connection("https://x", credentials=Credentials(key_pair=pair)))
