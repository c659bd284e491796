"""Drivers under `devlet exec`, for which /var/lib/kubelet is the node's root, beside those of a kubelet on the host."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def may_mount() -> bool:
    commands = (["unshare", "--mount", "true"], ["unshare", "--user", "--map-root-user", "--mount", "true"])
    return bool(shutil.which("unshare")) and any(
        subprocess.run(command, capture_output=True).returncode == 0 for command in commands
    )


@pytest.mark.skipif(not may_mount(), reason="no mount namespaces here")
def test_of_two_drivers_of_one_name_the_one_below_the_root_is_called_and_never_that_of_the_host(root: Path) -> None:
    host, own = root / "h", root / "r"
    for directory in (host, host / "plugins_registry", own):
        directory.mkdir(mode=0o700)
    story = ["-m", "tests.flows.two_drivers"]
    as_host = [sys.executable, "-m", "devlet.runtime.kubelet_paths", str(host)]
    run = subprocess.run([*as_host, sys.executable, *story, str(own)], capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode()
    assert json.loads(run.stdout) == {
        "ours": 1,
        "theirs": [],
        "state": "Connected",
    }
