"""The examples of docs/checkpoints.md print what the page says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "checkpoints.md").read_text()
TIME = re.compile(r"\d{8}T\d{6}Z")


def transcript() -> list[tuple[str, str]]:
    """Return each command with its expected output."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    return [(first, rest) for first, _, rest in (part.partition("\n") for part in blocks.split("$ ")[1:])]


def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    devices, claims, health = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    (tmp_path / "kubelet_internal_checkpoint").write_text(devices)
    (tmp_path / "dra_manager_state").write_text(claims)
    (tmp_path / "dra_health_state").write_text(health)
    devlet = shlex.join([sys.executable, "-m", "devlet"])
    for command, expected in transcript():
        line = re.sub(r"^devlet\b", lambda _: devlet, command)
        done = subprocess.run(
            ["sh", "-c", line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert TIME.sub("TIME", done.stdout) == TIME.sub("TIME", expected), command
        assert done.returncode == (1 if expected.startswith("error: ") else 0)
