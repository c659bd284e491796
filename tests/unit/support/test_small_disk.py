import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_disk import in_mount_namespace, on_small_disk

PROGRAM = """
import sys
from pathlib import Path
from tests.support.small_disk import fill
disk = Path(sys.argv[1])
fill(disk / "ballast")
try:
    (disk / "more").write_bytes(bytes(4096))
except OSError as e:
    print(e.strerror)
(disk / "ballast").unlink()
print((disk / "more").write_bytes(bytes(4096)))
"""


@pytest.mark.skipif(in_mount_namespace() is None, reason="no mount namespace for a small disk")
def test_a_small_disk_can_be_filled_and_has_room_again(root: Path) -> None:
    command = on_small_disk(root, "256k", [sys.executable, "-c", PROGRAM, str(root)])
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("No space left on device\n4096\n", "")
    assert list(root.iterdir()) == []  # the disk was the command's alone
