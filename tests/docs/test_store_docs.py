"""The example of docs/store.md prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "store.md"


def test_the_example_of_the_store_page_prints_what_the_page_says() -> None:
    page = PAGE.read_text()
    ((code, expected),) = re.findall(r"```python\n(.*?)```\n\nIt prints\n\n```text\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
