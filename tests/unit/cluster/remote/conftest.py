"""Servers that do what a test tells them, on real sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Serve = Callable[..., Awaitable[str]]
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`await serve(handler)` is the URL of an HTTP server; with `socket=path` it listens there instead."""
    async with AsyncExitStack() as stack:

        async def start(handler: Handler, *, tls: ssl.SSLContext | None = None, socket: Path | None = None) -> str:
            runner = web.ServerRunner(web.Server(handler, access_log=None), shutdown_timeout=0.01)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            if socket is not None:
                await web.UnixSite(runner, str(socket)).start()
                return str(socket)
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
            return f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"

        yield start


@pytest.fixture
async def serve_raw() -> AsyncIterator[Callable[[Script], Awaitable[str]]]:
    """As `serve`, below HTTP: the script reads and writes the bytes; when it returns the connection is reset."""
    async with AsyncExitStack() as stack:

        async def start(script: Script) -> str:
            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    await reader.readuntil(b"\r\n\r\n")
                    await script(reader, writer)
                finally:
                    writer.transport.abort()

            server = await asyncio.start_server(talk, "127.0.0.1", 0)
            await stack.enter_async_context(server)
            return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        yield start


class Authority:
    """Issues certificates. `issue` gives the certificate and its key in PEM."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        builder = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *hosts: str) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return certificate, text

    def server(self, folder: Path, *hosts: str) -> ssl.SSLContext:
        """For a server that also asks its clients for certificates of this authority, but does not insist."""
        certificate, key = self.issue("server", *hosts)
        path = folder / "server.pem"
        path.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        context.load_verify_locations(cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
        )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
