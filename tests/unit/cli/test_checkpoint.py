import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from devlet.cli import main
from devlet.daemon.root import LOCK_FILE
from devlet.kit import file_lock
from devlet.objects.types.edits import DeviceNode
from devlet.plugins import grants
from devlet.plugins.devices import Grant
from devlet.state import claim_checkpoint, health_file
from devlet.state.claim_checkpoint import ClaimEntry, PreparedDevice
from devlet.state.device_checkpoint import Encoder, Entry, Form, decode
from devlet.state.health_file import DeviceHealth

RESPONSE = grants.encode(Grant(env={"GPUS": "gpu-0"}, devices=(DeviceNode("/dev/gpu0", "/dev/nvidia3", "rw"),)))
ENTRIES = [
    Entry("uid-a", "main", "example.com/gpu", {0: ("gpu-0",), 1: ("gpu-0", "gpu-1")}, RESPONSE),
    Entry("uid-b", "side", "example.com/nic", {-1: ("nic-0",)}, b""),
]
WHOLE = Encoder().encode(ENTRIES, {"example.com/gpu": ["gpu-0", "gpu-1"], "example.com/nic": []})
OLD = json.dumps({"PodDeviceEntries": [{"PodUID": "u", "DeviceIDs": ["d"]}], "RegisteredDevices": {}}).encode()

CLAIMS = [
    ClaimEntry(
        f"uid-{name}",
        name,
        "ns",
        frozenset({"pod"}),
        {"gpu.example.com": (PreparedDevice("node1", f"gpu-{name}", None, ("main",), ("example.com/gpu=0",)),)},
    )
    for name in ("a", "b")
]
WHOLE_CLAIMS = claim_checkpoint.Encoder().encode(CLAIMS)

HEALTH = [
    DeviceHealth("node1", "gpu-0", "Healthy", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), 30.0),
    DeviceHealth("node1", "gpu-1", "Unhealthy", datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC), 600.0, "too hot"),
]
WHOLE_HEALTH = health_file.encode({"gpu.example.com": HEALTH})


class Run:
    """`run("verify", "file")`, then `.out` and `.err` have what it printed."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.err = ""

    def __call__(self, *arguments: str | Path) -> int:
        code = main.run(["checkpoint", *map(str, arguments)])
        self.out, self.err = self._capture.readouterr()
        return code


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "device-plugins" / "kubelet_internal_checkpoint"
    path.parent.mkdir()
    path.write_bytes(WHOLE)
    return path


def test_show_prints_the_holders_of_devices(run: Run, file: Path) -> None:
    assert run("show", file) == 0
    assert run.out.splitlines() == [
        "POD UID   CONTAINER   RESOURCE          DEVICES                              RESPONSE",
        "uid-a     main        example.com/gpu   node 0: gpu-0; node 1: gpu-0,gpu-1   env: 1; devices: 1",
        "uid-b     side        example.com/nic   nic-0                                empty",
        "",
        "REGISTERED        HEALTHY   DEVICES",
        "example.com/gpu   2         gpu-0,gpu-1",
        "example.com/nic   0         <none>",
    ]


def test_show_gives_a_document_to_programs(run: Run, file: Path) -> None:
    assert run("show", file, "-o", "json") == 0
    document = json.loads(run.out)
    assert (document["format"], document["version"]) == ("kubelet_internal_checkpoint", "v2")
    assert document["entries"][0]["deviceIDs"] == {"0": ["gpu-0"], "1": ["gpu-0", "gpu-1"]}
    assert document["entries"][0]["response"]["envs"] == {"GPUS": "gpu-0"}
    assert run("show", file, "-o=yaml") == 0
    assert yaml.safe_load(run.out) == document


def test_verify_names_format_version_and_checksum(run: Run, file: Path) -> None:
    assert run("verify", file) == 0
    checksum = json.loads(WHOLE)["Checksum"]
    expected = f"{file}: kubelet_internal_checkpoint v2: valid, checksum {checksum}, 2 entries, 2 resources\n"
    assert (run.out, run.err) == (expected, "")
    file.write_bytes(OLD)
    assert run("verify", file) == 0
    assert run.out == f"{file}: kubelet_internal_checkpoint raw: valid, no checksum, 1 entry, 0 resources\n"


def test_verify_says_what_is_wrong_and_what_to_do(run: Run, file: Path) -> None:
    file.write_bytes(WHOLE.replace(b"nic-0", b"nic-1", 1))
    assert run("verify", file) == 1
    stored = json.loads(WHOLE)["Checksum"]
    assert run.err.startswith(
        f"error: {file}: kubelet_internal_checkpoint: damaged (checksum): the checksum does not match:"
        f" the file says {stored}, its data give "
    )
    assert run.err.endswith(f"; to save what can be read, run: devlet checkpoint repair {file}\n")
    assert run.out == ""


@pytest.mark.parametrize("verb", ["show", "verify", "convert"])
def test_a_damaged_file_is_an_error_for_every_verb_but_repair(run: Run, file: Path, verb: str) -> None:
    file.write_bytes(WHOLE[:-30])
    assert run(verb, file) == 1
    assert f"error: {file}: kubelet_internal_checkpoint: damaged (decode): it is not JSON at line 1" in run.err
    assert run.out == ""
    assert file.read_bytes() == WHOLE[:-30]


def test_verify_warns_of_responses_that_a_node_cannot_read(run: Run, file: Path) -> None:
    file.write_bytes(Encoder().encode([Entry("uid-c", "main", "r.io/x", {0: ("d",)}, b"\xff\xff")], {}))
    assert run("verify", file) == 0
    assert run.err.startswith("warning: pod uid-c, container main, r.io/x will be dropped: ")


def test_a_file_of_another_kind_is_not_guessed_at(run: Run, tmp_path: Path) -> None:
    for name, content, reason in (
        ("empty", b"", "it is empty"),
        ("other", b'{"kind":"Pod"}', "it has none of the expected fields"),
    ):
        (tmp_path / name).write_bytes(content)
        assert run("verify", tmp_path / name) == 1
        assert run.err == (
            f"error: {tmp_path / name}: not a known checkpoint: {reason}; if the file is damaged,"
            " name its kind with --format\n"
        )
        assert run("verify", tmp_path / name, "--format", "kubelet_internal_checkpoint") == 1
        assert "kubelet_internal_checkpoint: damaged (" in run.err


def test_files_that_cannot_be_read_are_named(run: Run, tmp_path: Path) -> None:
    assert run("show", tmp_path / "missing") == 1
    assert run.err == f"error: {tmp_path / 'missing'} cannot be read: No such file or directory\n"
    assert run("show", tmp_path) == 1
    assert run.err == f"error: {tmp_path} is a directory: name a checkpoint in it\n"
    for name in ("other", "dra_manager_state"):
        (tmp_path / name).touch()
    assert run("show", tmp_path) == 1
    assert run.err.endswith(f" is a directory: name a checkpoint in it: {tmp_path / 'dra_manager_state'}\n")
    os.mkfifo(tmp_path / "pipe")
    assert run("show", tmp_path / "pipe") == 1
    assert run.err == f"error: {tmp_path / 'pipe'} is not a file; move it away\n"


@pytest.mark.parametrize("verb", ["show", "verify", "convert", "repair"])
def test_a_file_of_zero_bytes_has_an_error_of_its_own(run: Run, file: Path, verb: str) -> None:
    file.write_bytes(bytes(4096))
    assert run(verb, file) == 1
    assert run.err == (
        f"error: {file}: it contains only zero bytes, as after a power failure: move it away, and the node starts"
        " without it\n"
    )


def test_an_empty_object_is_recognised_by_the_name_of_its_file(run: Run, tmp_path: Path) -> None:
    verdicts = {
        "dra_manager_state": "1.31: valid, checksum 4010664294, 0 claims",
        "dra_health_state": "valid, no checksum, 0 devices, 0 drivers",
    }
    for name, verdict in verdicts.items():
        (tmp_path / name).write_bytes(b"{}")
        assert run("verify", tmp_path / name) == 0
        assert run.out == f"{tmp_path / name}: {name} {verdict}\n"
    devices = tmp_path / "kubelet_internal_checkpoint"
    devices.write_bytes(b"{}")
    assert run("verify", devices) == 1
    assert f"error: {devices}: kubelet_internal_checkpoint: damaged (checksum)" in run.err


def test_show_prints_a_file_whose_only_fault_is_its_checksum(run: Run, file: Path, tmp_path: Path) -> None:
    claims = tmp_path / "dra_manager_state"
    for path, content in ((file, WHOLE), (claims, WHOLE_CLAIMS)):
        path.write_bytes(content)
        assert run("show", path) == 0
        table = run.out
        path.write_bytes(content.replace(b'"Checksum":', b'"Checksum":1'))
        assert run("show", path) == 0
        assert run.out == table
        assert run.err.startswith(f"warning: {path}: damaged (checksum): the checksum does not match: ")
        assert run("show", path, "-o", "json") == 0
        assert json.loads(run.out)["format"] == path.name


def test_verify_reports_what_cannot_be_true_and_repair_leaves_it_out(run: Run, file: Path) -> None:
    entries = [
        Entry("uid-a", "main", "example.com/gpu", {0: ("gpu-0", "")}, b""),
        Entry("uid-a", "next", "example.com/gpu", {0: ("gpu-0",)}, b""),  # from an init container
        Entry("uid-b", "main", "example.com/gpu", {0: ("gpu-0", "gpu-1")}, b""),
    ]
    nameless = "a device of pod uid-a, container main, example.com/gpu, has no name"
    twice = (
        "device gpu-0 of example.com/gpu is held twice: by pod uid-a, container main, and by pod uid-b, container main"
    )
    file.write_bytes(Encoder().encode(entries, {}))
    assert run("verify", file) == 1
    assert f"kubelet_internal_checkpoint: v2: damaged (content): {nameless}; {twice}; to save what can" in run.err
    assert run("show", file) == 0
    assert run.err == f"warning: {file}: v2: damaged (content): {nameless}; {twice}\n"
    assert run("repair", file) == 0
    assert run.out.splitlines()[1:3] == [f"lost: {nameless}", f"lost: {twice}"]
    assert run("verify", file) == 0
    assert [entry.devices for entry in decode(file.read_bytes()).entries or ()] == [
        {0: ("gpu-0",)},
        {0: ("gpu-0",)},
        {0: ("gpu-1",)},
    ]


def test_convert_writes_the_present_version_to_standard_output(
    file: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file.write_bytes(OLD)
    assert main.run(["checkpoint", "convert", str(file)]) == 0
    found = decode(capfdbinary.readouterr().out)
    assert found.form is Form.V2
    assert found.entries == (Entry("u", "", "", {-1: ("d",)}, None),)


def test_convert_replaces_a_file_only_with_force(run: Run, file: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert run("convert", file, "--output", new) == 0
    assert new.read_bytes() == WHOLE
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    new.write_bytes(b"precious")
    assert run("convert", file, "--output", new) == 1
    assert run.err == f"error: {new} already exists: choose another name, or overwrite it with --force\n"
    assert new.read_bytes() == b"precious"
    assert run("convert", file, "--output", new, "--force") == 0
    assert new.read_bytes() == WHOLE


def test_what_cannot_be_written_leaves_nothing(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("convert", file, "--output", tmp_path / "no" / "new") == 1
    assert run.err == f"error: {tmp_path / 'no' / 'new'} cannot be written: No such file or directory\n"
    assert os.listdir(tmp_path) == ["device-plugins"]


def test_repair_leaves_a_valid_file_alone(run: Run, file: Path) -> None:
    for content in (WHOLE, OLD):
        file.write_bytes(content)
        assert run("repair", file) == 0
        assert run.out == f"{file}: kubelet_internal_checkpoint is valid: there is nothing to repair\n"
        assert file.read_bytes() == content
    assert os.listdir(file.parent) == [file.name]


def test_repair_keeps_the_complete_entries_and_the_damaged_file(run: Run, file: Path) -> None:
    damaged = WHOLE[: WHOLE.index(b"nic-0")]
    file.write_bytes(damaged)
    assert run("repair", file) == 0
    assert decode(file.read_bytes()).entries == (ENTRIES[0],)
    (kept,) = [path for path in file.parent.iterdir() if path != file]
    assert kept.name.startswith("kubelet_internal_checkpoint.damaged-")
    assert kept.read_bytes() == damaged
    assert run.out.splitlines() == [
        f"{file}: written with 1 entry, 0 resources",
        f"lost: an entry of pod uid-b at character {WHOLE.index(b'uid-b') - 11}: the file ends before it does",
        "lost: the registered resources",
        f"kept: the damaged file, as {kept}",
    ]


def test_repair_gives_a_wrong_checksum_the_right_one(run: Run, file: Path) -> None:
    file.write_bytes(WHOLE.replace(b'"Checksum":', b'"Checksum":1'))
    assert run("repair", file) == 0
    assert file.read_bytes() == WHOLE
    assert "lost" not in run.out


def test_repair_can_write_elsewhere(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_bytes(WHOLE[:-30])
    new = tmp_path / "new"
    assert run("repair", file, "--output", new) == 0
    assert decode(new.read_bytes()).entries == tuple(ENTRIES)
    assert (os.listdir(file.parent), file.read_bytes()) == ([file.name], WHOLE[:-30])
    assert run("repair", file, "--output", new) == 1
    assert run.err == f"error: {new} already exists: choose another name, or overwrite it with --force\n"


def test_repair_refuses_where_nothing_can_be_read(run: Run, file: Path) -> None:
    file.write_bytes(WHOLE[:40])
    assert run("repair", file) == 1
    assert run.err == f"error: {file}: nothing in it can be read: move it away, and the node starts without it\n"
    assert file.read_bytes() == WHOLE[:40]
    assert os.listdir(file.parent) == [file.name]


def test_repair_refuses_a_file_that_a_devlet_uses_without_force(run: Run, file: Path, tmp_path: Path) -> None:
    file.write_bytes(WHOLE[:-30])
    with file_lock.held(tmp_path / LOCK_FILE):
        assert run("repair", file) == 1
        assert f"{tmp_path} is in use by process {os.getpid()}" in run.err
        assert "stop it first, or use --force" in run.err
        assert file.read_bytes() == WHOLE[:-30]
        assert os.listdir(file.parent) == [file.name]
        assert run("repair", file, "--force") == 0
    file.write_bytes(WHOLE[:-30])
    assert run("repair", file) == 0  # the lock file stays when nobody holds it


def test_claims_are_shown_by_device(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "dra_manager_state"
    path.write_bytes(WHOLE_CLAIMS)
    assert run("show", path) == 0
    assert run.out.splitlines() == [
        "NAMESPACE   CLAIM   DRIVER            POOL    DEVICE   REQUESTS   POD UIDS",
        "ns          a       gpu.example.com   node1   gpu-a    main       pod",
        "ns          b       gpu.example.com   node1   gpu-b    main       pod",
    ]
    assert run("show", path, "-o", "json") == 0
    document = json.loads(run.out)
    assert (document["format"], document["version"]) == ("dra_manager_state", "1.31")
    assert [claim["uid"] for claim in document["claims"]] == ["uid-a", "uid-b"]
    assert run("verify", path) == 0
    checksum = json.loads(WHOLE_CLAIMS)["Checksum"]
    assert run.out == f"{path}: dra_manager_state 1.31: valid, checksum {checksum}, 2 claims\n"


@pytest.mark.spec("DN-11.15")
def test_claims_of_an_old_kubelet_are_converted(run: Run, tmp_path: Path) -> None:
    entry = {"DriverName": "d", "ClaimUID": "u", "ClaimName": "c", "Namespace": "n", "CDIDevices": ["v.com/c=1"]}
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text(json.dumps({"version": "v1", "entries": [entry], "checksum": 1}))
    assert run("verify", old) == 0
    assert run.err == "warning: the checksum of a file of 1.27-beta cannot be verified\n"
    assert run("convert", old, "--output", new) == 0
    assert claim_checkpoint.decode(new.read_bytes()).claims == (
        ClaimEntry("u", "c", "n", None, {"d": (PreparedDevice("", "", None, (), ("v.com/c=1",)),)}),
    )


@pytest.mark.spec("DN-11.15")
def test_repair_keeps_the_complete_claims_and_the_damaged_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "dra_manager_state"
    damaged = WHOLE_CLAIMS[: WHOLE_CLAIMS.index(b"gpu-b")]
    path.write_bytes(damaged)
    assert run("repair", path) == 0
    assert claim_checkpoint.decode(path.read_bytes()).claims == (CLAIMS[0],)
    (kept,) = [found for found in tmp_path.iterdir() if found != path]
    assert kept.read_bytes() == damaged
    assert run.out.splitlines() == [
        f"{path}: written with 1 claim",
        "lost: claim b with UID uid-b: the file ends before it does",
        f"kept: the damaged file, as {kept}",
    ]


@pytest.fixture
def health(tmp_path: Path) -> Path:
    path = tmp_path / "dra_health_state"
    path.write_bytes(WHOLE_HEALTH)
    return path


def test_health_is_shown_by_device(run: Run, health: Path) -> None:
    assert run("show", health) == 0
    assert run.out.splitlines() == [
        "DRIVER            POOL    DEVICE   HEALTH      SINCE                  TIMEOUT   MESSAGE",
        "gpu.example.com   node1   gpu-0    Healthy     2026-01-02T03:04:05Z   30s       <none>",
        "gpu.example.com   node1   gpu-1    Unhealthy   2026-01-02T03:04:06Z   600s      too hot",
    ]
    assert run("show", health, "-o", "json") == 0
    document = json.loads(run.out)
    assert document["format"] == "dra_health_state"
    assert [each["message"] for each in document["drivers"]["gpu.example.com"]] == ["", "too hot"]


def test_health_is_verified_and_converted(run: Run, health: Path, tmp_path: Path) -> None:
    assert run("verify", health) == 0
    assert run.out == f"{health}: dra_health_state valid, no checksum, 2 devices, 1 driver\n"
    assert run("convert", health, "--output", tmp_path / "new") == 0
    assert (tmp_path / "new").read_bytes() == WHOLE_HEALTH
    health.write_bytes(WHOLE_HEALTH.replace(b'"node1"', b"7", 1))
    assert run("verify", health) == 1
    assert "gpu.example.com.PoolName: expected a string, found the number 7" in run.err


def test_repair_drops_the_devices_that_cannot_be_read_and_keeps_the_rest(run: Run, health: Path) -> None:
    damaged = WHOLE_HEALTH.replace(b'"node1"', b"7", 1)
    health.write_bytes(damaged)
    assert run("repair", health) == 0
    assert health_file.decode(health.read_bytes()) == {"gpu.example.com": (HEALTH[1],)}
    (kept,) = [found for found in health.parent.iterdir() if found != health]
    assert kept.read_bytes() == damaged
    assert run.out.splitlines() == [
        f"{health}: written with 1 device, 1 driver",
        "lost: device node1/gpu-0 of gpu.example.com: PoolName: expected a string, found the number 7",
        f"kept: the damaged file, as {kept}",
    ]


def test_help_has_the_verbs_and_an_example(run: Run) -> None:
    for arguments in ([], ["--help"]):
        assert run(*arguments) == 0
        assert all(verb in run.out for verb in ("convert", "repair", "show", "verify"))
        assert "devlet checkpoint show /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint" in run.out
    assert run("explode") == 1
    assert "See 'devlet checkpoint --help' for usage." in run.err
