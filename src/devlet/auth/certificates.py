"""Certificates: the root's own authority, the server's certificate, and client certificates.

The authority is created once and stays, because every kubeconfig trusts it. The server's certificate is created again
when it is about to expire or its names change. It shares a file with its key, so that a crash never separates the two.
`open_pki` blocks on the disk: call it in a thread.
"""

import os
import socket
import ssl
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devlet.errors import InvalidInput, StateCorrupt
from devlet.kit import atomic_file
from devlet.objects import names as name_rules

AUTHORITY_LIFETIME = timedelta(days=3650)
SERVER_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=60)
_BACKDATED = timedelta(hours=1)  # a client's clock may be behind
_MAX_BYTES = 64 * 1024
_MAX_SUBJECT = 64  # bytes of a user or group: the limit of X.509

LOOPBACK_NAMES = ("127.0.0.1", "::1", "localhost")
SERVICE_NAMES = tuple(
    f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return key_pem(self.key)


@dataclass(frozen=True, slots=True)
class Pki:
    directory: Path
    authority: KeyPair
    server: KeyPair

    @property
    def server_file(self) -> Path:
        """Return the path of the server's key and certificate."""
        return self.directory / "server.pem"

    def issue_client(self, user: str, groups: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
        return issue_client(self.authority, user, groups, now, lifetime)


def server_names(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of a server's certificate: loopback, this host, the service's names, and `extra`."""
    host = socket.gethostname().lower()
    hosts = [] if name_rules.dns_subdomain(host) else [host]
    return tuple(dict.fromkeys((*LOOPBACK_NAMES, *hosts, *SERVICE_NAMES, *(_checked(name) for name in extra))))


def _checked(name: str) -> str:
    try:
        return str(ip_address(name))
    except ValueError:
        if name_rules.dns_subdomain(name.removeprefix("*.")):
            raise InvalidInput(
                f"{name!r} cannot be in a certificate: it is neither an IP address nor a DNS name"
            ) from None
        return name


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def issue_authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> KeyPair:
    """Create a self-signed certificate. With the same key, certificates that were signed before stay valid."""
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = _subject(f"devlet-ca-{identifier.digest.hex()[:8]}")
    builder = (
        _builder(name, key, now, AUTHORITY_LIFETIME)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return KeyPair(builder.sign(key, hashes.SHA256()), key)


def issue_server(authority: KeyPair, names: Sequence[str], now: datetime) -> KeyPair:
    extension = x509.SubjectAlternativeName([_general_name(name) for name in names])
    return _issue(authority, _subject("devlet"), ExtendedKeyUsageOID.SERVER_AUTH, now, SERVER_LIFETIME, extension)


def issue_client(authority: KeyPair, user: str, groups: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
    """Create a certificate with which the API recognizes its holder as `user`, a member of `groups`."""
    for what, name in [("user", user), *(("group", group) for group in groups)]:
        if not 0 < len(name.encode()) <= _MAX_SUBJECT:
            raise InvalidInput(f"{what} {name!r}: names in a certificate must have 1 to {_MAX_SUBJECT} bytes")
    return _issue(authority, _subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, now, lifetime)


def _issue(
    authority: KeyPair,
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    now: datetime,
    lifetime: timedelta,
    alternative_names: x509.SubjectAlternativeName | None = None,
) -> KeyPair:
    key = new_key()
    signer = authority.key.public_key()
    builder = (
        _builder(subject, key, now, min(lifetime, authority.certificate.not_valid_after_utc - now))
        .issuer_name(authority.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )
    if alternative_names:
        builder = builder.add_extension(alternative_names, critical=False)
    return KeyPair(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _subject(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def open_pki(directory: Path, names: Sequence[str], now: datetime) -> Pki:
    """Return the certificates in `directory`, after creating or renewing those that need it. Raise StateCorrupt if a
    file is damaged or is not devlet's; such files are left as they are."""
    _prepare(directory)
    authority = _open_authority(directory, now)
    server_file = directory / "server.pem"
    server = _read_pair(server_file, server_file) if server_file.exists() else None
    if server and not _is_signed_by(server.certificate, authority.certificate):
        raise StateCorrupt(f"{server_file} was not signed by {directory / 'ca.crt'}; move it away to get a new one")
    if server is None or not _still_good(server.certificate, names, now):
        server = issue_server(authority, names, now)
        atomic_file.write(server_file, server.key_pem + server.certificate_pem)
    return Pki(directory, authority, server)


def _prepare(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(directory, 0o700)
    except OSError as e:
        raise StateCorrupt(f"{directory} cannot be used for certificates: {e.strerror or e}") from e
    for name in ("ca.key", "ca.crt", "server.pem"):
        atomic_file.remove_leftovers(directory / name)


def _open_authority(directory: Path, now: datetime) -> KeyPair:
    key_file, file = directory / "ca.key", directory / "ca.crt"
    if not key_file.exists():
        if file.exists():
            raise StateCorrupt(f"{file} is there but its key {key_file} is not: put it back, or move {directory} away")
        atomic_file.write(key_file, key_pem(new_key()))
    if not file.exists():  # the first start, or one that was interrupted here
        made = issue_authority(read_key(key_file), now)
        atomic_file.write(file, made.certificate_pem, 0o644)
    authority = _read_pair(file, key_file)
    _check_authority(file, authority.certificate, now)
    return authority


def _check_authority(file: Path, certificate: x509.Certificate, now: datetime) -> None:
    try:
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        is_authority = False
    if not is_authority:
        raise StateCorrupt(f"{file} is not a CA certificate; move it away")
    if certificate.not_valid_after_utc <= now:
        end = certificate.not_valid_after_utc.date()
        raise StateCorrupt(f"{file} expired on {end}: move {file.parent} away and hand out new credentials")


def _still_good(certificate: x509.Certificate, names: Sequence[str], now: datetime) -> bool:
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEW_BEFORE:
        return False
    return set(held) == {_general_name(name) for name in names}


def _is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception:  # wrong algorithm, name or signature: cryptography has no common base class for these
        return False
    return True


def _read_pair(file: Path, key_file: Path) -> KeyPair:
    key = read_key(key_file)
    try:
        certificate = x509.load_pem_x509_certificate(_read(file))
    except ValueError as e:
        raise StateCorrupt(f"{file} is damaged: it does not contain a certificate; {_remedy(file)}") from e
    if certificate.public_key() != key.public_key():
        raise StateCorrupt(f"{file} does not belong to the key in {key_file}; move both away to get new ones")
    return KeyPair(certificate, key)


def read_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """Read a private key. Raise StateCorrupt if it is not a P-256 key, or if other users can access the file."""
    content = _read(file, private=True)
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError) as e:
        raise StateCorrupt(f"{file} is damaged: it does not contain a private key; {_remedy(file)}") from e
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise StateCorrupt(f"{file} contains a key that is not EC P-256: devlet did not create it")
    return key


def _remedy(file: Path) -> str:
    """Return what to do about a damaged file, and what that costs."""
    if file.name == "ca.key":
        return (
            f"restore it from a backup, or move the directory {file.parent} away and restart devlet: it creates new"
            " credentials, and all existing ones stop working"
        )
    if file.name == "service-accounts.key":
        return f"move {file} away and restart devlet: it creates a new one, and all service account tokens stop working"
    return f"move {file} away and restart devlet: it creates a new one, and existing credentials stay valid"


def _read(file: Path, *, private: bool = False) -> bytes:
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            content = opened.read(_MAX_BYTES + 1)
    except OSError as e:
        raise StateCorrupt(f"{file} cannot be read: {e.strerror or e}") from e
    if private and mode & 0o077:
        raise StateCorrupt(f"{file} is accessible to other users (mode {mode:04o}); run: chmod 600 {file}")
    if len(content) > _MAX_BYTES:
        raise StateCorrupt(f"{file} is larger than {_MAX_BYTES} bytes: devlet did not create it")
    return content


def server_context(pki: Pki) -> ssl.SSLContext:
    """Return the server's TLS context. Clients may present a certificate of our authority, but not of another one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=pki.authority.certificate_pem.decode())
    context.set_alpn_protocols(["http/1.1"])
    load_server_certificate(context, pki)
    return context


def load_server_certificate(context: ssl.SSLContext, pki: Pki) -> None:
    """Load the current certificate. A context in use presents it on all connections from now on."""
    context.load_cert_chain(pki.server_file)
