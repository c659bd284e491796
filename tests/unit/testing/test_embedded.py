"""`devlet up` as a process of a test. What it answers to kubectl is in tests/peers/acceptance."""

import json
import os
import signal
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from devlet.errors import InvalidInput, Unavailable
from devlet.testing.embedded import EmbeddedApi, embedded_api

pytestmark = [pytest.mark.anyio, pytest.mark.long]


def namespaces(api: EmbeddedApi) -> list[str]:
    request = urllib.request.Request(f"{api.endpoint}/api/v1/namespaces")
    request.add_header("Authorization", f"Bearer {api.token}")
    trust = ssl.create_default_context(cafile=str(api.ca_file))
    with urllib.request.urlopen(request, context=trust, timeout=60) as answer:
        document: dict[str, Any] = json.load(answer)
    return [item["metadata"]["name"] for item in document["items"]]


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """A kubectl that shows what it got."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$HOME $KUBECACHEDIR"\nfor word; do echo "$word"; done\ncat\n')
    (tmp_path / "kubectl").chmod(0o755)
    return tmp_path


async def test_it_answers_with_the_credentials_it_shows_and_ends_with_the_block(root: Path) -> None:
    async with embedded_api(root) as api:
        assert "default" in namespaces(api)
        os.kill(api.pid, 0)
    assert api.program.returncode == 0


async def test_a_restart_keeps_address_and_credentials_and_waits_for_its_own_ready_line(root: Path) -> None:
    async with embedded_api(root) as first:
        first.program.send_signal(signal.SIGKILL)
        await first.program.wait()
    async with embedded_api(root) as second:
        assert (second.endpoint, second.token) == (first.endpoint, first.token)
        assert "default" in namespaces(second)


async def test_kubectl_gets_the_kubeconfig_and_a_home_below_the_root(root: Path, binaries: Path) -> None:
    async with embedded_api(root, binaries=binaries) as api:
        answer = await api.kubectl("get", "pods", "-f", "-", stdin="from stdin")
        assert answer.stdout.splitlines() == [
            f"{root} {root}/kubectl-cache",
            *("--kubeconfig", f"{root}/kubeconfig", "get", "pods", "-f", "-", "from stdin"),
        ]
        with pytest.raises(InvalidInput, match="user nobody: there is no"):
            await api.kubectl("get", "pods", user="nobody")


async def test_a_flag_that_devlet_refuses_is_reported_with_what_it_said(root: Path) -> None:
    with pytest.raises(Unavailable, match=r"devlet up: exited with 1 before it was ready[\s\S]*no-such"):
        async with embedded_api(root, arguments=["--node-name", "no-such!"]):
            pytest.fail("it does not start")
