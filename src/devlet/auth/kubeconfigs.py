"""kubeconfig files as devlet writes them: one cluster, one user, with certificates and tokens inside the file.

A file whose cluster and user are already correct is not written again, so that a user's changes (a default namespace,
more contexts) survive a restart.
"""

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from devlet.auth.certificates import KeyPair
from devlet.kit import atomic_file
from devlet.objects.documents import Document
from devlet.objects.subdocuments import mappings

__all__ = ["certificate_user", "document", "text", "token_user", "write"]

CLUSTER = "devlet"
_MAX_BYTES = 1024 * 1024


def token_user(token: str) -> Document:
    return {"token": token}


def certificate_user(pair: KeyPair) -> Document:
    return {"client-certificate-data": _data(pair.certificate_pem), "client-key-data": _data(pair.key_pem)}


def document(server: str, authority: bytes, name: str, user: Document, namespace: str = "") -> Document:
    """Return a kubeconfig. `server` is an https:// URL, because clients send no credentials over plain HTTP.
    `authority` is PEM."""
    context = {"cluster": CLUSTER, "user": name} | ({"namespace": namespace} if namespace else {})
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": {"server": server, "certificate-authority-data": _data(authority)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": CLUSTER, "context": context}],
        "current-context": CLUSTER,
    }


def text(config: Document) -> str:
    return yaml.safe_dump(config, sort_keys=False, width=2**31)


def write(path: Path, config: Document) -> bool:
    """Write the file, readable by its owner only. Return False if it was already correct. Blocks on the disk."""
    if _is_current(path, config):
        return False
    atomic_file.write(path, text(config).encode())
    return True


def read(path: Path) -> Document:
    """Return the content of the file; an empty document if the file is absent or is not a kubeconfig."""
    try:
        content = path.read_bytes()[:_MAX_BYTES]
        found = yaml.safe_load(content)
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_current(path: Path, wanted: Document) -> bool:
    found = read(path)
    if not found or path.is_symlink() or path.stat().st_mode & 0o077:
        return False
    return all(_entries(wanted, key).items() <= _entries(found, key).items() for key in ("clusters", "users"))


def _entries(config: Document, key: str) -> Mapping[str, Any]:
    return {repr(entry.get("name")): entry for entry in mappings(config, key)}


def _data(content: bytes) -> str:
    return b64encode(content).decode("ascii")
