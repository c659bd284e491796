"""docs/contributing/peers.md lists the programs and shows an example that runs. Needs none of the programs."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.peers.conftest import Peers

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "contributing" / "peers.md").read_text()


def test_the_example_is_one_that_runs() -> None:
    [example] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert example == (PROJECT / "tests" / "peers" / "test_example.py").read_text()


def test_every_program_is_listed_with_its_version(peers: "Peers") -> None:
    rows = {row[0]: row[1] for row in re.findall(r"^\| `([^`]+)` \| `[^`]+` (\S+) \|", PAGE, re.MULTILINE)}
    assert rows == {name: module.version for name, (module, _) in peers.programs.items()}
