"""Credential plugins: programs that a kubeconfig names and that print an ExecCredential.

They run without a terminal. What they print on stderr is shown only when they fail.
"""

import os
import subprocess
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import anyio
import msgspec

from devlet.cluster.remote.connection import ExecPlugin, KeyPair
from devlet.errors import InvalidInput, Unavailable
from devlet.objects.values.timestamps import parse_time

MAX_ANSWER_BYTES = 1 << 20
_SHOWN = 500  # characters of stderr


@dataclass(frozen=True, slots=True)
class Issued:
    """The credentials of a plugin: a token, a key pair or both. Without `expires` they are valid until the server
    refuses them."""

    token: str = field(default="", repr=False)
    key_pair: KeyPair | None = None
    expires: datetime | None = None


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    status: _Status | None = None


async def issue(plugin: ExecPlugin, timeout: float) -> Issued:
    """Run the plugin. Raise InvalidInput if it cannot work, and Unavailable if it failed."""
    answer = await _run(plugin, timeout)
    if answer.returncode != 0:
        said = answer.stderr[-4 * _SHOWN :].decode(errors="replace").strip()[-_SHOWN:]
        raise Unavailable(_text(plugin, f"exit code {answer.returncode}{f': {said}' if said else ''}"))
    return decode(plugin, answer.stdout)


def decode(plugin: ExecPlugin, answer: bytes) -> Issued:
    if len(answer) > MAX_ANSWER_BYTES:
        raise InvalidInput(_text(plugin, f"printed more than {MAX_ANSWER_BYTES} bytes"))
    try:
        credential = msgspec.json.decode(answer, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise InvalidInput(_text(plugin, f"did not print an ExecCredential: {e}")) from None
    if (credential.kind, credential.api_version) != ("ExecCredential", plugin.api_version):
        printed = f"{credential.api_version[:80]} {credential.kind[:80]}"
        raise InvalidInput(_text(plugin, f"printed {printed}, expected {plugin.api_version} ExecCredential"))
    status = credential.status or _Status()
    certificate, key = status.client_certificate_data or "", status.client_key_data or ""
    if bool(certificate) != bool(key):
        raise InvalidInput(_text(plugin, "printed a certificate without its key, or a key without its certificate"))
    if not status.token and not certificate:
        raise InvalidInput(_text(plugin, "printed neither a token nor a certificate"))
    pair = KeyPair(certificate.encode(), key.encode()) if certificate else None
    return Issued(status.token or "", pair, _expiry(plugin, status))


def _expiry(plugin: ExecPlugin, status: _Status) -> datetime | None:
    if not status.expiration_timestamp:
        return None
    try:
        return parse_time(status.expiration_timestamp)
    except InvalidInput as e:
        raise InvalidInput(_text(plugin, f"expirationTimestamp: {e}")) from None


async def _run(plugin: ExecPlugin, timeout: float) -> "subprocess.CompletedProcess[bytes]":
    command = [plugin.command, *plugin.args]
    try:
        with anyio.fail_after(timeout):
            return await anyio.run_process(command, stdin=subprocess.DEVNULL, env=_environment(plugin), check=False)
    except TimeoutError:
        raise Unavailable(_text(plugin, f"no answer within {timeout:g} s")) from None
    except (OSError, ValueError) as e:
        why = (e.strerror if isinstance(e, OSError) else None) or str(e)
        raise InvalidInput(_text(plugin, why)) from e


def _environment(plugin: ExecPlugin) -> dict[str, str]:
    spec: dict[str, object] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


def _text(plugin: ExecPlugin, why: str) -> str:
    text = f"credential plugin {Path(plugin.command).name}: {why}"
    return f"{text}\n{plugin.install_hint}" if plugin.install_hint else text
