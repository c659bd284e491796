"""The builder, with a stand-in for go: a script that does what `go list` and `go build` are asked for."""

import fcntl
import importlib.util
import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

PROJECT = Path(__file__).resolve().parents[3]

GO = """#!/bin/sh
echo "$1" >> {calls}
case "$1" in
env) case "$2" in GOCACHE) echo {go_cache};; *) echo go1.26.3;; esac;;
list) echo "go: downloading example.com/dep v1.0.0" >&2; echo example.com/up/cmd/prog; echo example.com/dep;;
build) {build};;
esac
"""


def load() -> Any:
    spec = importlib.util.spec_from_file_location("devlet_tools_peers_unit", PROJECT / "tools" / "peers.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = load()


def linked(modules: str, before: bytes = b"") -> bytes:
    """A file with the block that Go's linker writes."""

    def counted(text: str) -> bytes:
        data, length, head = text.encode(), len(text.encode()), b""
        while length >= 128:
            head, length = head + bytes([length & 127 | 128]), length >> 7
        return head + bytes([length]) + data

    return (
        before.ljust(-(-len(before) // 16) * 16, b"\0")
        + b"\xff Go buildinf:\x08\x02".ljust(32, b"\0")
        + (counted("go1.26.3") + counted(modules))
    )


class Workshop:
    """A project with one module and a go that builds it."""

    def __init__(self, folder: Path) -> None:
        self.peers, self.cache, self.calls = folder / "peers", folder / "cache", folder / "calls"
        self.go_cache = folder / "go-cache"
        (self.peers / "up").mkdir(parents=True)
        (self.peers / "up" / "go.mod").write_text("module here\n")
        (self.peers / "up" / "go.sum").write_text("")
        (self.peers / "peers.toml").write_text(
            '[go]\nminimum = "1.26.0"\nwheel = "1.26.6"\n'
            '[modules.up]\npath = "example.com/up"\nversion = "v1.2.3"\nstamps = { "main.version" = "{version}" }\n'
            '[modules.up.programs.prog]\npackage = "example.com/up/cmd/prog"\nversion_args = ["--version"]\n'
        )
        self.product = folder / "product"
        self.product.write_bytes(linked("dep\texample.com/up\tv1.2.3\th1:x=\n"))
        self.go_that(f'echo example.com/up >&2; for a; do case "$a" in */) cp {self.product} "$a/prog";; esac; done')

    def go_that(self, build: str) -> None:
        (self.peers.parent / "bin").mkdir(exist_ok=True)
        go = self.peers.parent / "bin" / "go"
        go.write_text(GO.format(calls=self.calls, build=build, go_cache=self.go_cache))
        go.chmod(0o755)

    def make(self) -> None:
        tool.make([], tool.read_table(self.peers), self.cache)

    def builds(self) -> int:
        return self.calls.read_text().split().count("build")


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    shop = Workshop(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return shop


def test_a_module_is_built_once_and_then_up_to_date(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.make()
    assert (workshop.cache / "bin" / "prog").read_bytes() == workshop.product.read_bytes()
    said = capsys.readouterr().out
    assert re.search(r"up: \d+ s, 1 modules downloaded, 1 packages compiled of at most 2, done", said)
    workshop.make()
    assert workshop.builds() == 1
    assert capsys.readouterr().out == "peers: up to date\n"


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go", "prog/main.go"])
def test_a_changed_source_is_built_again(workshop: Workshop, file: str) -> None:
    (workshop.peers / "up" / "prog").mkdir()
    workshop.make()
    (workshop.peers / "up" / file).write_text("changed\n")
    workshop.make()
    assert workshop.builds() == 2


def test_a_changed_version_stamp_is_built_again(workshop: Workshop) -> None:
    workshop.make()
    table = workshop.peers / "peers.toml"
    table.write_text(table.read_text().replace("{version}", "other"))
    workshop.make()
    assert workshop.builds() == 2


def test_a_missing_binary_is_built_again(workshop: Workshop) -> None:
    workshop.make()
    (workshop.cache / "bin" / "prog").unlink()
    workshop.make()
    assert workshop.builds() == 2


def test_another_go_builds_again(workshop: Workshop) -> None:
    workshop.make()
    go = workshop.peers.parent / "bin" / "go"
    go.write_text(go.read_text().replace("go1.26.3", "go1.26.4"))
    workshop.make()
    assert workshop.builds() == 2


def test_a_damaged_stamp_counts_as_none(workshop: Workshop) -> None:
    workshop.make()
    (workshop.cache / "stamps" / "up").write_text("{")
    workshop.make()
    assert workshop.builds() == 2


def test_without_any_go_the_binaries_are_taken_as_they_are(workshop: Workshop) -> None:
    workshop.make()
    module = tool.read_table(workshop.peers).modules["up"]
    assert tool.up_to_date(module, None, workshop.cache)


def test_a_failed_build_shows_the_output_of_go_and_leaves_nothing(workshop: Workshop) -> None:
    workshop.go_that('echo "prog.go:1: no such thing" >&2; exit 1')
    with pytest.raises(
        tool.BuildError, match=r"up: go build ended with 1\n    prog.go:1: no such thing\nNext: .*up\.log"
    ):
        workshop.make()
    assert sorted(path.name for path in workshop.cache.iterdir()) == ["lock", "logs"]
    assert "no such thing" in (workshop.cache / "logs" / "up.log").read_text()


def test_a_program_linked_from_another_version_is_not_installed(workshop: Workshop) -> None:
    workshop.product.write_bytes(linked("dep\texample.com/up\tv9.9.9\th1:x=\n"))
    with pytest.raises(tool.BuildError, match=r"prog: built from example\.com/up v9\.9\.9, expected v1\.2\.3"):
        workshop.make()
    assert not (workshop.cache / "bin").exists()


def test_a_go_that_is_too_old_is_not_used(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = workshop.peers.parent / "bin" / "go"
    go.write_text(go.read_text().replace("go1.26.3", "go1.25.9"))
    monkeypatch.setattr(tool, "GO_CACHE", tmp_path / "none")
    assert tool.find_go(tool.read_table(workshop.peers)) is None


def test_a_second_run_waits_for_the_first(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.cache.mkdir()
    with (workshop.cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=workshop.make)
        second.start()
        while "another build is running" not in capsys.readouterr().out:
            second.join(0.01)
        assert not workshop.calls.exists()
    second.join(60)
    assert workshop.builds() == 1


def test_a_build_waits_for_that_of_another_clone(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.go_cache.mkdir()
    with (workshop.go_cache / "devlet-peers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build = threading.Thread(target=workshop.make)
        build.start()
        while "another build is running" not in capsys.readouterr().out:
            build.join(0.01)
        assert workshop.builds() == 0
    build.join(60)
    assert workshop.builds() == 1


def test_a_missing_go_cache_is_an_error_that_says_what_to_do(workshop: Workshop) -> None:
    workshop.go_cache = Path("off")
    workshop.go_that("exit 0")
    with pytest.raises(tool.BuildError, match=r"go env GOCACHE: off\nNext: set HOME or GOCACHE\."):
        workshop.make()


def test_leftovers_of_an_interrupted_run_are_removed(workshop: Workshop) -> None:
    left = workshop.cache / "build-abc"
    left.mkdir(parents=True)
    workshop.make()
    assert not left.exists()


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("dial tcp 1.2.3.4:443: i/o timeout", "check the network and GOPROXY"),
        ("write /tmp/x: no space left on device", "free some disk"),
        ("missing go.sum entry for module", "go mod tidy"),
        ("compile: signal: killed", "GOFLAGS=-p=1"),
        ("undefined: x", "the whole output is in"),
    ],
)
def test_a_failure_says_what_to_do_next(workshop: Workshop, output: str, advice: str) -> None:
    module = tool.read_table(workshop.peers).modules["up"]
    assert advice in tool.failure_text(module, "build", 1, [output])


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("go1.26.3", (1, 26, 3)), ("1.26", (1, 26, 0)), ("go1.27rc1", (1, 27, 0)), ("devel", ()), ("", ())],
)
def test_versions_become_numbers_that_compare(text: str, numbers: tuple[int, ...]) -> None:
    assert tool.version_numbers(text) == numbers


def test_a_file_without_build_info_has_no_modules(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff Go buildinf: only its name")
    assert tool.build_info(tmp_path / "f") == {}


@given(
    before=st.binary(max_size=100),
    modules=st.dictionaries(st.from_regex(r"[a-z]{1,200}\.com/x", fullmatch=True), st.just("v1.0.0"), max_size=5),
)
def test_build_info_names_every_module_wherever_it_lies(
    before: bytes, modules: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("b") / "f"
    file.write_bytes(linked("".join(f"dep\t{path}\t{version}\th1:\n" for path, version in modules.items()), before))
    assert tool.build_info(file) == modules


def real_modules() -> list[Any]:
    return list(tool.read_table().modules.values())


@pytest.mark.parametrize("module", real_modules(), ids=lambda module: str(module.name))
def test_the_table_and_each_go_mod_agree(module: Any) -> None:
    text = (module.folder / "go.mod").read_text()
    required = rf"^\s*(require )?{re.escape(module.path)} {re.escape(module.version)}( //.*)?$"
    if module.version == "(devel)":  # our own, which depends on nothing
        required = rf"^module {re.escape(module.path)}$"
    assert re.search(required, text, re.MULTILINE)
    tools = set(re.findall(r"^(?:tool |\t)([^\s(]+)$", text, re.MULTILINE))
    if tools:  # our own programs are their module's main package
        assert tools == {program.package for program in module.programs}


def test_no_two_modules_build_a_program_of_one_name_into_one_folder() -> None:
    names = [(module.into, program.name) for module in real_modules() for program in module.programs]
    assert len(set(names)) == len(names)
    assert len(tool.read_table().programs()) == len([name for folder, name in names if folder == "bin"]) == 17


def test_a_module_with_a_folder_of_its_own_is_built_there_and_only_if_it_is_named(workshop: Workshop) -> None:
    table = workshop.peers / "peers.toml"
    table.write_text(table.read_text().replace("[modules.up]\n", '[modules.up]\ninto = "1.0"\n'))
    workshop.make()
    assert not (workshop.cache / "1.0").exists()
    for _ in range(2):
        tool.make(["up"], tool.read_table(workshop.peers), workshop.cache)
    assert [path.name for path in (workshop.cache / "1.0").iterdir()] == ["prog"]
    assert not (workshop.cache / "bin").exists()
    assert workshop.builds() == 1


def test_a_stamp_file_is_readable_json(workshop: Workshop) -> None:
    workshop.make()
    assert json.loads((workshop.cache / "stamps" / "up").read_text())["go"] == "go1.26.3"


def test_an_unknown_module_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(["kubernets"])
    assert "no module 'kubernets'; there are etcd, bench-etcd" in capsys.readouterr().err
