import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from devlet.auth import certificates
from devlet.auth.certificates import KeyPair, Pki, issue_authority, issue_client, new_key, open_pki
from devlet.errors import InvalidInput, StateCorrupt

NAMES = certificates.server_names(["10.1.2.3", "node.example.com"])
NOW = datetime.now(UTC).replace(microsecond=0)
YEAR = timedelta(days=365)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return open_pki(tmp_path / "pki", NAMES, NOW)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def held_names(pair: KeyPair) -> set[str]:
    held = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in held}


def test_only_the_owner_can_read_keys_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        pki = open_pki(tmp_path / "pki", NAMES, NOW)
    finally:
        os.umask(before)
    assert mode(pki.directory) == 0o700
    assert {path.name: mode(path) for path in pki.directory.iterdir()} == {
        "ca.crt": 0o644,
        "ca.key": 0o600,
        "server.pem": 0o600,
    }


def test_a_restart_keeps_the_certificates(pki: Pki) -> None:
    before = contents(pki.directory)
    again = open_pki(pki.directory, NAMES, NOW + timedelta(days=100))
    assert contents(pki.directory) == before
    assert again.server.certificate == pki.server.certificate


def test_the_certificate_names_loopback_this_host_the_service_and_the_requested_names(pki: Pki) -> None:
    expected = {"127.0.0.1", "::1", "localhost", "kubernetes.default.svc", "10.1.2.3", "node.example.com"}
    assert expected <= held_names(pki.server)
    host = socket.gethostname().lower()
    assert host in held_names(pki.server) or host not in certificates.server_names()


def test_the_server_certificate_is_renewed_before_it_expires_and_the_authority_stays(pki: Pki) -> None:
    later = NOW + YEAR - timedelta(days=30)
    again = open_pki(pki.directory, NAMES, later)
    assert again.server.certificate.not_valid_after_utc == later + YEAR
    assert again.authority.certificate == pki.authority.certificate


def test_other_names_cause_another_server_certificate(pki: Pki) -> None:
    again = open_pki(pki.directory, ["127.0.0.1"], NOW)
    assert held_names(again.server) == {"127.0.0.1"}
    assert again.authority.certificate == pki.authority.certificate


def test_no_certificate_outlives_the_authority(pki: Pki) -> None:
    client = pki.issue_client("a", (), NOW, timedelta(days=36500))
    assert client.certificate.not_valid_after_utc == pki.authority.certificate.not_valid_after_utc


def test_a_first_start_that_was_interrupted_after_the_key_is_completed(pki: Pki) -> None:
    (pki.directory / "ca.crt").unlink()
    (pki.directory / "server.pem").unlink()
    (pki.directory / ".ca.crt.x.tmp").touch()
    again = open_pki(pki.directory, NAMES, NOW)
    assert again.authority.key.private_numbers() == pki.authority.key.private_numbers()
    assert sorted(contents(pki.directory)) == ["ca.crt", "ca.key", "server.pem"]


def _garble(pki: Pki, name: str) -> None:
    (pki.directory / name).write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def _foreign_authority(pki: Pki) -> None:
    (pki.directory / "ca.crt").write_bytes(issue_authority(new_key(), NOW).certificate_pem)


def _foreign_server(pki: Pki) -> None:
    other = issue_authority(new_key(), NOW)
    server = certificates.issue_server(other, NAMES, NOW)
    (pki.directory / "server.pem").write_bytes(server.key_pem + server.certificate_pem)


def _no_authority(pki: Pki) -> None:
    client = issue_client(pki.authority, "a", (), NOW, YEAR)
    (pki.directory / "ca.key").write_bytes(client.key_pem)
    (pki.directory / "ca.crt").write_bytes(client.certificate_pem)


DAMAGES: dict[str, tuple[Callable[[Pki], object], str]] = {
    "key gone": (lambda pki: (pki.directory / "ca.key").unlink(), "its key .*ca.key is not"),
    "key empty": (
        lambda pki: (pki.directory / "ca.key").write_bytes(b""),
        "ca.key is damaged: it does not contain a private key; restore it from a backup, or move the directory",
    ),
    "key readable": (lambda pki: (pki.directory / "ca.key").chmod(0o640), r"mode 0640\); run: chmod 600"),
    "certificate garbled": (lambda pki: _garble(pki, "ca.crt"), "ca.crt is damaged: it does not contain a certificate"),
    "certificate too large": (lambda pki: (pki.directory / "ca.crt").write_bytes(b"x" * 70_000), "larger than"),
    "another authority": (_foreign_authority, "does not belong to the key"),
    "no authority": (_no_authority, "is not a CA certificate"),
    "server garbled": (
        lambda pki: _garble(pki, "server.pem"),
        r"server.pem is damaged: it does not contain a private key; move .*server.pem away",
    ),
    "server of another authority": (_foreign_server, "was not signed by"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_and_foreign_files_are_refused_and_left_alone(pki: Pki, damage: str) -> None:
    harm, text = DAMAGES[damage]
    harm(pki)
    before = contents(pki.directory)
    with pytest.raises(StateCorrupt, match=text):
        open_pki(pki.directory, NAMES, NOW)
    assert contents(pki.directory) == before


def test_the_refusal_of_an_expired_authority_says_what_to_do(pki: Pki) -> None:
    with pytest.raises(StateCorrupt, match=r"expired on .*move .*pki away"):
        open_pki(pki.directory, NAMES, NOW + 11 * YEAR)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pki").touch()
    with pytest.raises(StateCorrupt, match="cannot be used for certificates"):
        open_pki(tmp_path / "pki", NAMES, NOW)


@pytest.mark.parametrize("name", ["", "a b", "-x", "10.0.0.256.", "a" * 300])
def test_other_strings_than_host_names_cannot_be_in_a_certificate(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be in a certificate"):
        certificates.server_names([name])


@pytest.mark.parametrize(("user", "groups"), [("", ()), ("a" * 65, ()), ("a", ("",)), ("a", ("ü" * 33,))])
def test_a_name_that_no_certificate_can_hold_is_refused(pki: Pki, user: str, groups: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="must have 1 to 64 bytes"):
        pki.issue_client(user, groups, NOW, YEAR)


@contextmanager
def listening(context: ssl.SSLContext) -> Iterator[tuple[int, list[Any]]]:
    """A TLS server for one connection: its port, and what it saw (the peer's certificate, or the error)."""
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.settimeout(60)
            try:
                with context.wrap_socket(connection, server_side=True) as tls:
                    seen.append((tls.getpeercert(), tls.version(), tls.selected_alpn_protocol()))
                    tls.sendall(b"hi")
            except OSError as e:
                connection.close()
                seen.append(e)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], seen
        finally:
            thread.join(60)


def client_context(authority: KeyPair, client: KeyPair | None, tmp_path: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if client is not None:
        file = tmp_path / "client.pem"
        file.write_bytes(client.key_pem + client.certificate_pem)
        context.load_cert_chain(file)
    return context


def greet(context: ssl.SSLContext, port: int, host: str = "127.0.0.1") -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        with context.wrap_socket(connection, server_hostname=host) as tls:
            return tls.recv(2)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "kubernetes.default.svc", "node.example.com"])
def test_a_client_that_trusts_the_authority_connects_under_every_name(pki: Pki, tmp_path: Path, host: str) -> None:
    with listening(certificates.server_context(pki)) as (port, seen):
        assert greet(client_context(pki.authority, None, tmp_path), port, host) == b"hi"
    assert seen == [(None, "TLSv1.3", None)]


def test_the_server_sees_name_and_groups_of_a_client_certificate(pki: Pki, tmp_path: Path) -> None:
    client = pki.issue_client("system:node:n1", ("system:nodes", "b"), NOW, YEAR)
    context = client_context(pki.authority, client, tmp_path)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with listening(certificates.server_context(pki)) as (port, seen):
        assert greet(context, port) == b"hi"
    (certificate, _, protocol) = seen[0]
    subject = [pair for part in certificate["subject"] for pair in part]
    assert subject == [
        ("organizationName", "system:nodes"),
        ("organizationName", "b"),
        ("commonName", "system:node:n1"),
    ]
    assert protocol == "http/1.1"


def test_certificates_of_another_authority_and_server_certificates_do_not_identify_a_client(
    pki: Pki, tmp_path: Path
) -> None:
    stranger = issue_client(issue_authority(new_key(), NOW), "admin", ("system:masters",), NOW, YEAR)
    expired = pki.issue_client("admin", (), NOW - YEAR, timedelta(days=1))
    for wrong in (stranger, pki.server, expired):
        with listening(certificates.server_context(pki)) as (port, seen):
            with pytest.raises(OSError):
                greet(client_context(pki.authority, wrong, tmp_path), port)
        assert isinstance(seen[0], ssl.SSLError)


def test_versions_before_tls_1_2_are_refused(pki: Pki, tmp_path: Path) -> None:
    assert certificates.server_context(pki).minimum_version == ssl.TLSVersion.TLSv1_2
    client = client_context(pki.authority, None, tmp_path)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with listening(certificates.server_context(pki)) as (port, seen):
        assert greet(client, port) == b"hi"
    assert seen[0][1] == "TLSv1.2"


def test_a_context_in_use_presents_the_renewed_certificate(pki: Pki, tmp_path: Path) -> None:
    context = certificates.server_context(pki)
    renewed = open_pki(pki.directory, ["127.0.0.1"], NOW)
    certificates.load_server_certificate(context, renewed)
    with listening(context) as (port, _):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            client = client_context(pki.authority, None, tmp_path)
            with client.wrap_socket(connection, server_hostname="127.0.0.1") as tls:
                shown = tls.getpeercert(binary_form=True)
                assert tls.recv(2) == b"hi"
    assert shown is not None
    assert x509.load_der_x509_certificate(shown) == renewed.server.certificate
