"""The examples of docs/cel.md print what the page says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "cel.md").read_text()


def transcript() -> list[tuple[str, str]]:
    """Return each command with its expected output."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL))
    return [(first, rest) for first, _, rest in (part.partition("\n") for part in blocks.split("$ ")[1:])]


def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL):
        name, _, content = block.partition("\n")
        (tmp_path / name.removeprefix("# ")).write_text(content)
    (cases,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "cases.json").write_text(cases)
    devlet = shlex.join([sys.executable, "-m", "devlet"])
    found = transcript()
    assert len(found) == 5
    for command, expected in found:
        line = re.sub(r"^devlet\b", lambda _: devlet, command)
        done = subprocess.run(
            ["sh", "-c", line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert done.stdout == expected, command
        assert done.returncode == int("error: found no" in expected or "compilation failed" in expected)


def test_every_rule_is_listed() -> None:
    source = (Path(__file__).parents[2] / "src" / "devlet").resolve()
    text = (source / "alloc" / "lint.py").read_text() + (source / "cli" / "cel_lint.py").read_text()
    rules = set(re.findall(r'(?:Severity\.\w+|severity), "([a-z-]+)"', text))
    table = PAGE.partition("| rule |")[2].partition("\n\n")[0]
    documented = {
        rule for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for rule in re.findall(r"`(.*?)`", row)
    }
    assert rules
    assert rules == documented
