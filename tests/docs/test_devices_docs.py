"""The examples on devices, claims, scheduling and CDI print what the page says, typed as a reader would type them."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
DEVICES = (DOCS / "devices.md").read_text()
CDI = (DOCS / "cdi.md").read_text()
CLAIMS = (DOCS / "claims.md").read_text()
SCHEDULING = (DOCS / "scheduling.md").read_text()
PROGRAMS = Path(__file__).parents[2] / ".cache" / "peers" / "bin"
FOREIGN = "Your own plugin"  # the section that needs one of the programs
SECTIONS = [(DEVICES, "Try it"), (CLAIMS, "Try it")]
LONG_SECTIONS = [(DEVICES, "NUMA"), (DEVICES, "Release hooks"), (CDI, "Try it"), (SCHEDULING, "Try it")]


def section(page: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title}"
    return found[1]


def steps(page: str, title: str) -> list[tuple[str, str]]:
    """Return each command in the console blocks of a section, with its expected output."""
    typed = "\n".join(re.findall(r"```console\n(.*?)```", section(page, title), re.DOTALL))
    pieces = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", typed, re.MULTILINE)
    return [(command, output.rstrip("\n")) for command, output in pieces]


def write_files(folder: Path, text: str) -> None:
    for name, content in re.findall(r"```yaml\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (folder / name).write_text(content.replace("/tmp/dv1", str(folder)))


class Terminal:
    """A shell in its own folder, which also stands for the page's /tmp/dv1."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        path = f"{Path(sys.executable).parent}:{PROGRAMS}:{os.environ['PATH']}"
        self._environ = {k: v for k, v in os.environ.items() if not k.startswith(("DEVLET_", "NOTIFY_", "WATCHDOG_"))}
        self._environ |= {"PATH": path}

    def type(self, command: str) -> str:
        command = command.replace("/tmp/dv1", str(self.folder))
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self._environ[name] = value
            return ""
        if command.endswith(" &"):
            self._stack.enter_context(self._background(command.removesuffix(" &")))
            return ""
        done = subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=self._environ, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.rstrip("\n")

    @contextmanager
    def _background(self, command: str) -> Iterator[None]:
        log = self._stack.enter_context((self.folder / "devlet.log").open("a"))
        words = shlex.split(command)
        with subprocess.Popen(
            words, cwd=self.folder, env=self._environ, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process:
            try:
                assert process.stdout is not None
                if words[0] == "devlet":
                    assert process.stdout.readline().startswith("devlet is ready"), (
                        self.folder / "devlet.log"
                    ).read_text()
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(60)
                finally:
                    process.kill()


def timeless(text: str) -> str:
    """Replace all ages by 1s: they differ from run to run, and with them the width of the last column."""
    in_line = re.sub(r"\b\d+s(?= {2})", lambda found: f"{'1s':<{len(found[0])}}", text)
    return re.sub(r"\b\d+s$", "1s", in_line, flags=re.MULTILINE)


def anonymous(text: str) -> str:
    """Replace the five random characters at the end of the names of claims from templates."""
    return re.sub(r"\b(\w+-gpu)-[a-z0-9]{5}\b", r"\1-xxxxx", text)


def check(page: str, title: str, root: Path) -> None:
    write_files(root, page)
    with ExitStack() as stack:
        terminal = Terminal(root, stack)
        for command, expected in steps(page, title):
            shown = expected.replace("/tmp/dv1", str(root))
            assert anonymous(timeless(terminal.type(command))) == anonymous(shown), command


@pytest.mark.parametrize(
    ("page", "title"),
    [
        *(pytest.param(page, title, id=f"{page[2:5]}-{title}") for page, title in SECTIONS),
        *(
            pytest.param(page, title, id=f"{page[2:5]}-{title}", marks=pytest.mark.long)
            for page, title in LONG_SECTIONS
        ),
    ],
)
def test_the_examples_of_a_section_print_what_the_page_says(page: str, title: str, root: Path) -> None:
    check(page, title, root)


@pytest.mark.peers
def test_the_example_with_a_foreign_plugin_prints_what_the_page_says(root: Path) -> None:
    if not (PROGRAMS / "generic-device-plugin").is_file():
        expected = os.environ.get("CI") or os.environ.get("DEVLET_PEERS") == "required"
        (pytest.fail if expected else pytest.skip)("generic-device-plugin not built: run `make peers`")
    check(DEVICES, FOREIGN, root)


@pytest.mark.parametrize("page", [DEVICES, CDI, CLAIMS, SCHEDULING], ids=["devices", "cdi", "claims", "scheduling"])
def test_every_section_with_commands_is_run(page: str) -> None:
    titles = re.findall(r"^## (.*)$", page, re.MULTILINE)
    run = {title for of, title in [*SECTIONS, *LONG_SECTIONS] if of == page} | ({FOREIGN} if page == DEVICES else set())
    assert {title for title in titles if "```console" in section(page, title)} == run
