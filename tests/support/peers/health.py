"""Ask a foreign server over HTTP or HTTPS whether it is ready; the answer is a `Ready` for `process`.

A certificate that the server makes at its own start is trusted by reading the file it writes; as long as the
file is not there, the server is not ready.
"""

import http.client
import ssl
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from anyio import to_thread

from devlet.kit.processes import Ready, RunningProcess

__all__ = ["answers"]

REQUEST_TIMEOUT = 2.0  # seconds; a server that starts may accept and then not answer


def answers(*urls: str, ca_file: Path | None = None, token: str = "") -> Ready:
    """Ready when every URL answers 200."""

    async def all_answer(_: RunningProcess) -> bool:
        for url in urls:
            if not await to_thread.run_sync(_is_ok, url, ca_file, token, abandon_on_cancel=True):
                return False
        return True

    return all_answer


def _is_ok(url: str, ca_file: Path | None, token: str) -> bool:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with closing(_connection(url, ca_file)) as connection:
            connection.request("GET", urlsplit(url).path or "/", headers=headers)
            return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False


def _connection(url: str, ca_file: Path | None) -> http.client.HTTPConnection:
    place = urlsplit(url)
    if place.scheme == "http":
        return http.client.HTTPConnection(place.netloc, timeout=REQUEST_TIMEOUT)
    context = ssl.create_default_context(cafile=ca_file)
    # Python 3.13 asks for extensions that the certificates Kubernetes makes for itself lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return http.client.HTTPSConnection(place.netloc, timeout=REQUEST_TIMEOUT, context=context)
