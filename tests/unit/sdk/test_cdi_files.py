import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput, Unavailable
from devlet.objects.identifiers import DeviceName, DriverName, PoolName, RequestRef
from devlet.objects.types.claim import DeviceResult
from devlet.runtime.cdi import spec as cdi
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import edits
from devlet.sdk.cdi_files import CdiFiles, edits_of
from devlet.sdk.values import ClaimRef, DeviceNode, Mount, Prepared

DRIVER = "led.example.com"
UID = "4be1ac0e-0f5d-4d23-b5a2-0c2c6a3e2f11"
CLAIM = ClaimRef("default", "my-leds", UID)
NAME = f"{DRIVER}_dra_{UID}.json"


def result(device: str, request: str = "led", pool: str = "n1") -> DeviceResult:
    return DeviceResult(
        request=RequestRef(request), driver=DriverName(DRIVER), pool=PoolName(pool), device=DeviceName(device)
    )


RED = Prepared(result("red"), env={"LED": "red"})


@pytest.fixture
def files(tmp_path: Path) -> CdiFiles:
    return CdiFiles(tmp_path / "cdi", DRIVER)


def resolved(files: CdiFiles, *ids: str) -> cdi.ContainerEdits:
    return edits(Cache([files.directory]).refresh().resolve(ids).complete())


def document(files: CdiFiles) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(files.path(UID).read_bytes())
    return found


@pytest.mark.spec("DN-5.1a")
def test_the_names_of_devices_have_the_claims_uid_in_them(files: CdiFiles) -> None:
    green = Prepared(result("green", "any/bright"), env={"LED": "green"})
    assert files.write(CLAIM, [RED, green]) == [
        (f"{DRIVER}/dra=claim_{UID}_led_red",),
        (f"{DRIVER}/dra=claim_{UID}_any.bright_green",),
    ]


@pytest.mark.spec("DN-5.1a")
def test_a_new_claim_of_the_same_name_has_other_devices(files: CdiFiles) -> None:
    again = ClaimRef(CLAIM.namespace, CLAIM.name, "7f1d2b8e-9a43-4f0e-8a21-5d3b7c9e1f02")
    assert files.write(CLAIM, [RED]) != files.write(again, [RED])
    assert len(Cache([files.directory]).refresh().devices) == 2


@pytest.mark.spec("DN-7.3.13")
def test_a_runtime_finds_what_the_driver_gave(files: CdiFiles) -> None:
    prepared = Prepared(
        result("red"),
        env={"LED": "red", "EMPTY": ""},
        devices=["/dev/led0", DeviceNode("/dev/led1", "/dev/led", "rwm")],
        mounts=[Mount("/srv/led"), Mount("/srv/log", "/var/log/led", read_only=False)],
        edits=cdi.ContainerEdits(additional_gids=(44,)),
    )
    [ids] = files.write(CLAIM, [prepared])
    assert resolved(files, *ids) == cdi.ContainerEdits(
        env=("LED=red", "EMPTY="),
        device_nodes=(
            cdi.DeviceNode("/dev/led0", permissions="rw"),
            cdi.DeviceNode("/dev/led", "/dev/led1", permissions="rwm"),
        ),
        mounts=(
            cdi.Mount("/srv/led", "/srv/led", ("ro", "bind")),
            cdi.Mount("/srv/log", "/var/log/led", ("rw", "bind")),
        ),
        additional_gids=(44,),
    )


@pytest.mark.spec("DN-7.3.7")
@pytest.mark.parametrize(
    ("prepared", "version"),
    [
        (RED, "0.3.0"),
        (Prepared(result("red"), devices=["/dev/led0"]), "0.3.0"),
        (Prepared(result("red"), devices=[DeviceNode("/dev/led0", "/dev/led0")]), "0.3.0"),
        (Prepared(result("red"), devices=[DeviceNode("/dev/led0", "/dev/led")]), "0.5.0"),
        (Prepared(result("red"), edits=cdi.ContainerEdits(additional_gids=(44,))), "0.7.0"),
        (Prepared(result("red"), edits=cdi.ContainerEdits(net_devices=(cdi.NetDevice("eth1", "n"),))), "1.1.0"),
    ],
)
def test_the_version_is_the_lowest_that_has_what_is_used(files: CdiFiles, prepared: Prepared, version: str) -> None:
    files.write(CLAIM, [prepared])
    assert document(files)["cdiVersion"] == version


@pytest.mark.spec("DN-7.2.2")
def test_a_driver_whose_name_starts_with_a_digit_has_devices_that_runtimes_find(tmp_path: Path) -> None:
    files = CdiFiles(tmp_path, "3d.example.com")
    [ids] = files.write(CLAIM, [RED])
    assert ids == (f"cdi_3d.example.com/dra=claim_{UID}_led_red",)
    assert resolved(files, *ids).env == ("LED=red",)
    assert files.leftovers() == {UID}


def test_an_empty_result_has_no_cdi_device(files: CdiFiles) -> None:
    assert files.write(CLAIM, [RED, Prepared(result("dark"))])[1] == ()
    assert files.write(CLAIM, [Prepared(result("dark"))]) == [()]
    assert list(files.directory.iterdir()) == []


def test_devices_that_the_driver_wrote_itself_come_behind_ours(files: CdiFiles) -> None:
    own = ["led.example.com/led=red", "led.example.com/led=red"]
    both = Prepared(result("red"), env={"LED": "red"}, cdi_devices=own)
    assert files.write(CLAIM, [both]) == [(f"{DRIVER}/dra=claim_{UID}_led_red", "led.example.com/led=red")]
    assert files.write(CLAIM, [Prepared(result("red"), cdi_devices=own)]) == [("led.example.com/led=red",)]


def test_devices_of_one_name_in_two_pools_and_shares_of_a_device_are_distinguished(files: CdiFiles) -> None:
    pools = [Prepared(result("red", pool=pool), env={"POOL": pool}) for pool in ("a", "b", "c")]
    ids = [each for (each,) in files.write(CLAIM, pools)]
    assert [resolved(files, each).env for each in ids] == [("POOL=a",), ("POOL=b",), ("POOL=c",)]


def test_to_write_again_is_the_same_and_replaces_what_was_different(files: CdiFiles) -> None:
    first = files.write(CLAIM, [RED])
    content = files.path(UID).read_bytes()
    assert (files.write(CLAIM, [RED]), files.path(UID).read_bytes()) == (first, content)
    files.write(CLAIM, [Prepared(result("red"), env={"LED": "blue"})])
    assert resolved(files, *first[0]).env == ("LED=blue",)


@pytest.mark.spec("DN-11.24a")
def test_the_file_is_for_all_to_read_and_nothing_else_is_left(files: CdiFiles) -> None:
    before = os.umask(0o077)
    try:
        files.write(CLAIM, [RED])
    finally:
        os.umask(before)
    assert os.listdir(files.directory) == [NAME]
    assert stat.S_IMODE(files.path(UID).stat().st_mode) == 0o644


@pytest.mark.spec("DN-11.24a")
def test_a_driver_killed_before_the_rename_leaves_what_no_runtime_reads_and_its_successor_finds(
    files: CdiFiles,
) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom devlet.objects.types.claim import DeviceResult\n"
        "from devlet.sdk.cdi_files import CdiFiles\nfrom devlet.sdk.values import ClaimRef, Prepared\n"
        "os.replace = lambda *a: os.kill(os.getpid(), 9)\n"
        f"files = CdiFiles(Path(sys.argv[1]), {DRIVER!r})\n"
        f"files.write(ClaimRef('default', 'c', {UID!r}), [Prepared(DeviceResult(device='red'), env={{'A': 'b'}})])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(files.directory)], capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    [left] = files.directory.iterdir()
    assert left.suffix not in (".json", ".yaml")
    assert Cache([files.directory]).refresh().errors == {}
    assert files.leftovers() == {UID}
    files.remove(UID)
    assert list(files.directory.iterdir()) == []


def test_leftovers_are_of_this_driver_alone(files: CdiFiles) -> None:
    assert files.leftovers() == set()
    files.write(CLAIM, [RED])
    others = [f"xled.example.com_dra_{UID}.json", f"{DRIVER}_metadata_{UID}_led.json", "led.example.com_dra_a_b.json"]
    for name in (*others, f"{DRIVER}_dra_other.yaml", f"ledxexample.com_dra_{UID}.json"):
        (files.directory / name).write_text("{}")
    CdiFiles(files.directory, "green.example.com").write(CLAIM, [RED])
    assert files.leftovers() == {UID}
    files.remove(UID)
    assert len(list(files.directory.iterdir())) == 6


def test_removal_is_idempotent_and_a_missing_directory_is_not_an_error(files: CdiFiles) -> None:
    files.remove(UID)
    files.write(CLAIM, [RED])
    files.remove(UID)
    files.remove(UID)
    assert files.leftovers() == set()


def test_where_a_file_is_in_the_place_of_the_directory_there_is_nothing_to_remove(files: CdiFiles) -> None:
    files.directory.parent.mkdir(parents=True, exist_ok=True)
    files.directory.touch()
    files.remove(UID)
    assert files.directory.is_file()


@pytest.mark.parametrize("uid", ["", "..", "../x", "a/b", "a_b", "a\0b"])
def test_a_uid_that_could_be_a_path_is_refused_before_anything_is_touched(files: CdiFiles, uid: str) -> None:
    with pytest.raises(InvalidInput, match="is not a claim's UID"):
        files.write(ClaimRef("default", "c", uid), [RED])
    with pytest.raises(InvalidInput, match="is not a claim's UID"):
        files.remove(uid)
    assert not files.directory.exists()


@pytest.mark.parametrize(
    ("prepared", "text"),
    [
        (Prepared(result("red"), env={"X": cast(str, None)}), "env: Expected `str`, got `null`"),
        (Prepared(result("red"), devices="/dev/null"), "devices: Expected `array`, got `str`"),
        (Prepared(result("red"), mounts=[Mount(cast(str, 3))]), r"mounts\[0\].path: Expected `str`, got `int`"),
        (Prepared(result("red"), env={"": "x"}), "env: '' is not the name of a variable"),
        (Prepared(result("red"), env={"A=B": "x"}), "env: 'A=B' is not the name of a variable"),
        (Prepared(result("red"), env={"A": "x\0"}), "contains a NUL character"),
        (Prepared(result("red"), env={"A": "\ud800"}), "no runtime accepts its CDI spec"),
        (Prepared(result("red"), devices=["led0"]), "'led0' is not an absolute path"),
        (Prepared(result("red"), devices=[DeviceNode("")]), r"deviceNodes\[0\].path: must not be empty"),
        (Prepared(result("red"), devices=[DeviceNode("/dev/a", permissions="x")]), "'x' must be some of r, w and m"),
        (Prepared(result("red"), mounts=[Mount("/a", "b")]), "'b' is not an absolute path"),
        (Prepared(result("red"), cdi_devices=["red"]), "cdi_devices: 'red' is not the name of a CDI device"),
        (Prepared(result("rouge/é"), env={"A": "x"}), "name: device 'claim_"),
    ],
)
def test_an_invalid_spec_is_reported_with_the_claim_and_not_written(
    files: CdiFiles, prepared: Prepared, text: str
) -> None:
    files.write(CLAIM, [RED])
    before = files.path(UID).read_bytes()
    with pytest.raises(InvalidInput, match=text) as e:
        files.write(CLAIM, [RED, prepared])
    assert str(e.value).startswith("claim default/my-leds: ")
    assert "; correct what " in str(e.value)
    assert files.path(UID).read_bytes() == before


def test_a_problem_names_the_device_that_it_is_about(files: CdiFiles) -> None:
    with pytest.raises(
        InvalidInput, match="claim default/my-leds: device n1/green of request any/bright: 'x' is not an"
    ):
        files.write(CLAIM, [RED, Prepared(result("green", "any/bright"), devices=["x"])])


def test_a_directory_that_cannot_be_written_is_reported_with_the_claim_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("a file")
    files = CdiFiles(tmp_path / "cdi", DRIVER)
    with pytest.raises(Unavailable) as e:
        files.write(CLAIM, [RED])
    assert str(e.value) == (
        f"claim default/my-leds: CDI file {files.path(UID)} cannot be written: File exists; "
        "something else has that name, move it away"
    )
    with pytest.raises(Unavailable, match=r"CDI directory .* cannot be read: Not a directory"):
        files.leftovers()


def test_a_directory_without_write_permission_is_reported(root: Path) -> None:
    root.chmod(0o755)
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom devlet.errors import Unavailable\n"
        "from devlet.objects.types.claim import DeviceResult\n"
        "from devlet.sdk.cdi_files import CdiFiles\nfrom devlet.sdk.values import ClaimRef, Prepared\n"
        "os.seteuid(65534)\n"
        "try:\n"
        "    prepared = Prepared(DeviceResult(device='red'), env={'A': 'b'})\n"
        f"    CdiFiles(Path(sys.argv[1]), {DRIVER!r}).write(ClaimRef('default', 'c', {UID!r}), [prepared])\n"
        "except Unavailable as e:\n"
        "    os.write(1, str(e).encode())\n"
    )
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True)
    assert "Permission denied; let uid 65534, as which the driver runs, write there" in done.stdout, done.stderr


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
variables = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0="), min_size=1, max_size=10)
paths = texts.map(lambda text: f"/{text}")
labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
nodes = paths | st.builds(DeviceNode, paths, paths | st.just(""), st.sampled_from(["", "r", "rw", "rwm", "none"]))
anything = st.builds(
    Prepared,
    st.builds(result, labels, labels | st.tuples(labels, labels).map("/".join), labels),
    env=st.dictionaries(variables, texts, max_size=3),
    devices=st.lists(nodes, max_size=3),
    mounts=st.lists(st.builds(Mount, paths, paths | st.just(""), st.booleans()), max_size=3),
)


@pytest.mark.spec("DN-7.3.13")
@given(st.lists(anything, max_size=5), st.uuids())
def test_whatever_a_driver_gives_a_runtime_finds_it(
    tmp_path_factory: pytest.TempPathFactory, given: list[Prepared], uid: object
) -> None:
    files = CdiFiles(tmp_path_factory.mktemp("cdi"), DRIVER)
    ids = files.write(ClaimRef("default", "c", str(uid)), given)
    assert len(ids) == len(given)
    registry = Cache([files.directory]).refresh()
    assert registry.errors == {}
    for prepared, each in zip(given, ids, strict=True):
        assert edits(registry.resolve(each).complete()) == edits_of(prepared)
    files.remove(str(uid))
    assert list(files.directory.iterdir()) == []
