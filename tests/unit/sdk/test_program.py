"""A driver as a program: flags, variables, signals, errors."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devlet.kit.processes import line, process
from devlet.sdk import metadata, program
from devlet.sdk.device_plugin import PluginOptions
from devlet.testing.waiting import until

DRIVER = """
from devlet.sdk.dra_driver import DraDriver

class Leds(DraDriver):
    name = "led.example.com"

Leds().main()
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.fixture
def files(root: Path) -> Iterator[Path]:
    (root / "leds.py").write_text(DRIVER)
    (root / "kubeconfig").write_text(KUBECONFIG)
    yield root


def arguments(root: Path) -> list[str]:
    flags = ["--node-name", "n1", "--kubelet-root", str(root), "--kubeconfig", str(root / "kubeconfig")]
    return [sys.executable, str(root / "leds.py"), *flags, "--cdi-root", str(root / "cdi"), "-v", "1"]


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_serves_until_it_is_stopped_and_leaves_no_socket(files: Path, number: signal.Signals) -> None:
    log = files / "log"
    async with process(arguments(files), log=log, name="leds", ready=line(r"listening.*-reg.sock")) as running:
        assert (files / "plugins_registry/led.example.com-reg.sock").is_socket()
        assert (files / "plugins/led.example.com/dra.sock").is_socket()
        running.send_signal(number)
        assert await running.wait() == 0, log.read_text()
    assert not (files / "plugins_registry/led.example.com-reg.sock").exists()


STALLED = """
import time
import anyio
from pathlib import Path
from devlet.sdk import program
from devlet.sdk.dra_driver import DraDriver
from devlet.sdk.stalls import Settings

program.STALLS = Settings(limit=0.1, interval=0.02)

class Leds(DraDriver):
    name = "led.example.com"

    async def devices(self):
        await anyio.sleep(0.1)  # whatever took long before is over
        while not Path(__file__).with_name("go").exists():
            time.sleep(0.01)
        yield []

Leds().main()
"""


@pytest.mark.anyio
async def test_code_that_blocks_the_event_loop_is_reported_with_its_place(files: Path) -> None:
    (files / "leds.py").write_text(STALLED)
    log = files / "log"

    async def runs_again() -> bool:
        return "the event loop runs again" in log.read_text().partition("in devices")[2]

    stalled = line(r"blocks the event loop.*leds.py:1[67] in devices")
    async with process(arguments(files), log=log, name="leds", ready=stalled) as running:
        (files / "go").touch()
        await until(runs_again)
        running.send_signal(signal.SIGTERM)
        assert await running.wait() == 0, log.read_text()


def run(files: Path, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(files / "leds.py"), *flags]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_what_keeps_it_from_starting_is_said_in_one_line(files: Path) -> None:
    done = run(files, "--kubeconfig", str(files / "kubeconfig"))
    text = "error: driver led.example.com: the name of the node is needed: set NODE_NAME or --node-name\n"
    assert (done.returncode, done.stderr) == (1, text)


def test_without_any_api_server_it_says_where_it_looked(files: Path) -> None:
    done = run(files, "--node-name", "n1")
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


EXITS = """
import sys
from devlet.sdk.dra_driver import DraDriver

class Leds(DraDriver):
    name = "led.example.com"

    async def devices(self):
        sys.exit("no lamp")
        yield []

Leds().main()
"""


@pytest.mark.parametrize(("given", "code", "last"), [('"no lamp"', 1, "no lamp"), ("3", 3, None)])
def test_a_driver_may_exit_while_it_looks_for_devices(files: Path, given: str, code: int, last: str | None) -> None:
    (files / "leds.py").write_text(EXITS.replace('"no lamp"', given))
    done = run(files, *arguments(files)[2:])
    assert done.returncode == code and "Traceback" not in done.stderr
    assert last is None or done.stderr.splitlines()[-1] == last


def test_the_variable_names_several_kubeconfigs_and_the_flag_one() -> None:
    parser = program._dra_parser("led.example.com", {"KUBECONFIG": "/a:/b"})
    assert parser.parse_args([]).kubeconfig == [Path("/a"), Path("/b")]
    assert parser.parse_args(["--kubeconfig", "/c:d"]).kubeconfig == [Path("/c:d")]
    assert program._dra_parser("led.example.com", {"KUBECONFIG": ":"}).parse_args([]).kubeconfig == []


def test_several_kubeconfigs_are_merged(files: Path) -> None:
    (files / "context").write_text("current-context: c\n")
    (files / "rest").write_text(KUBECONFIG.replace("current-context: c\n", ""))
    done = run(files, KUBECONFIG=f"{files}/context:{files}/gone:{files}/rest")
    assert (
        done.stderr == "error: driver led.example.com: the name of the node is needed: set NODE_NAME or --node-name\n"
    )


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [("LOG_FORMAT", "xml", "--log-format: LOG_FORMAT or the flag is 'xml'"), ("VERBOSITY", "loud", "-v/--verbosity:")],
)
def test_a_variable_that_is_wrong_is_refused_as_the_flag_would_be(
    files: Path, variable: str, value: str, text: str
) -> None:
    done = run(files, **{variable: value})
    assert done.returncode == 2 and f"error: argument {text}" in done.stderr


def test_flags_have_the_names_that_drivers_use() -> None:
    found = program._dra_parser("led.example.com", {}).parse_args(
        [
            *("--kubelet-registrar-directory-path", "/r", "--kubelet-plugins-directory-path", "/p"),
            *("--cdi-root", "/c", "--node-name", "n1", "--rolling-update-uid", "u-1"),
        ]
    )
    options = program.dra_options(found, "led.example.com")
    assert options.registry_socket("led.example.com") == Path("/r/led.example.com-u-1-reg.sock")
    assert options.service_socket("led.example.com") == Path("/p/led.example.com/dra-u-1.sock")
    assert (options.cdi_directory, options.node_name) == (Path("/c"), "n1")


def test_variables_count_unless_there_is_a_flag() -> None:
    environment = {"NODE_NAME": "n1", "CDI_ROOT": "/c", "KUBELET_PLUGINS_DIRECTORY_PATH": "/p"}
    parser = program._dra_parser("led.example.com", environment)
    options = program.dra_options(parser.parse_args([]), "led.example.com")
    assert (options.node_name, options.cdi_directory) == ("n1", Path("/c"))
    assert options.data("led.example.com") == Path("/p/led.example.com")
    found = parser.parse_args(["--node-name", "n2"])
    assert program.dra_options(found, "led.example.com").node_name == "n2"


@pytest.mark.parametrize(("text", "versions"), [("", ()), ("all", metadata.VERSIONS), ("a/v1,b/v2", ("a/v1", "b/v2"))])
def test_device_metadata_is_written_if_enabled(text: str, versions: tuple[str, ...]) -> None:
    parser = program._dra_parser("led.example.com", {"DEVICE_METADATA": text})
    assert program.dra_options(parser.parse_args([]), "led.example.com").metadata == versions


def test_a_device_plugin_calls_the_kubelet_or_waits_to_be_found() -> None:
    def options(*words: str, **environment: str) -> PluginOptions:
        return program.plugin_options(program._plugin_parser("led", environment).parse_args(words))

    assert options() == PluginOptions()
    assert options("--kubelet-root", "/k").directory == Path("/k/device-plugins")
    assert options("--device-plugin-path", "/d").directory == Path("/d")
    assert options("--registry", "/r").registry == options(DEVICE_PLUGIN_REGISTRY="/r").registry == Path("/r")
    assert options("--socket", "led.sock").socket == options(DEVICE_PLUGIN_SOCKET="led.sock").socket == "led.sock"
    # Runners of drivers set this for any of them: it says where, and not that it should wait there.
    assert options(KUBELET_REGISTRAR_DIRECTORY_PATH="/r").registry is None


OWN_FLAGS = """
from devlet.errors import InvalidInput
from devlet.sdk.dra_driver import DraDriver

class Leds(DraDriver):
    '''Lights in many colours.'''

    def arguments(self, parser):
        parser.add_argument("--count", type=int, default=3, help="how many lights")

    def configure(self, arguments):
        if arguments.count < 1:
            raise InvalidInput(f"--count {arguments.count}: at least 1 is needed")
        self.name = f"led{arguments.count}.example.com"

    async def setup(self, options):
        raise InvalidInput(f"{options.node_name}: {options.data(self.name)}")

Leds().main()
"""


def test_a_driver_can_have_flags_of_its_own_and_set_its_name_by_them(files: Path) -> None:
    (files / "leds.py").write_text(OWN_FLAGS)
    flags = ["--node-name", "n1", "--kubeconfig", str(files / "kubeconfig"), "--kubelet-plugins-directory-path", "/p"]
    assert run(files, *flags, "--count", "7").stderr == "error: n1: /p/led7.example.com\n"
    told = run(files, "--help").stdout
    assert "Lights in many colours." in told and "how many lights" in told and "[NODE_NAME]" in told


def test_what_its_author_refuses_is_a_wrong_flag(files: Path) -> None:
    (files / "leds.py").write_text(OWN_FLAGS)
    done = run(files, "--count", "0")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "leds.py: error: --count 0: at least 1 is needed")


def test_help_names_the_variables() -> None:
    assert "[NODE_NAME]" in program._dra_parser("led.example.com", {}).format_help()
