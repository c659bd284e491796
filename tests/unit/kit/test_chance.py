import random as everybodys
import subprocess
from pathlib import Path

from devlet.kit.backoff import Backoff
from devlet.kit.chance import random

PACKAGE = Path(__file__).parents[3] / "src" / "devlet"


def test_a_delay_leaves_python_s_own_generator_alone() -> None:
    before = everybodys.getstate()
    assert 1.0 <= Backoff(1.0, 60.0).delay(0, random.random) <= 1.1
    assert everybodys.getstate() == before


def test_nothing_that_runs_in_a_node_draws_from_python_s_own_generator() -> None:
    rooms = ["cluster", "control", "daemon", "kit", "node", "plugins", "runtime", "sdk", "serve", "state"]
    found = subprocess.run(
        ["grep", "-rlP", "--include=*.py", "^import random|^from random import (?!Random$)", *rooms],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")
