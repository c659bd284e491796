import socket
from pathlib import Path

import pytest

from devlet.kit import socket_paths


def test_length_counts_bytes() -> None:
    assert socket_paths.length(Path("/tmp/ä")) == 7


def test_the_limit_is_what_the_kernel_accepts(tmp_path: Path) -> None:
    def path_of(length: int) -> str:
        return "\0" + "x" * (length - 1)  # abstract, so that no directory has to be short

    with socket.socket(socket.AF_UNIX) as fits:
        fits.bind(path_of(socket_paths.MAX_BYTES))
    with socket.socket(socket.AF_UNIX) as too_long, pytest.raises(OSError, match="too long"):
        too_long.bind("/" + "x" * socket_paths.MAX_BYTES)
