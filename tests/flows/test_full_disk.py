"""A node whose whole root is on a disk that gets full."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_disk import in_mount_namespace, on_small_disk


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_health_fails_while_the_disk_is_full_and_recovers_without_a_restart_or_a_write_of_a_client(root: Path) -> None:
    small, beside = root / "r", root / "b"
    for directory in (small, beside):
        directory.mkdir(mode=0o700)
    story = ["-m", "tests.flows.full_disk_root"]
    command = on_small_disk(small, "8m", [sys.executable, *story, str(small), str(beside)])
    run = subprocess.run(command, capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode()
    told = json.loads(run.stdout)
    full = f"{small}/cluster.db: database or disk is full"
    assert told == {
        "before": [200, 200, 200],
        "during": [500, 500, 200],  # a restart would not make room
        "reason": f"internal server error: {full}\n",
        "refused": [full, 1.0],
        "read": 200,
        "after": [200, 200, 200],
        "pods": ["after", "before"],
        "lines": [1, 1],
        "traceback": False,
    }
