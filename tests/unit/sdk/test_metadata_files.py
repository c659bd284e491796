import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devlet.errors import InvalidInput, NotFound, Unavailable
from devlet.objects.claims.from_template import ENTRY_ANNOTATION
from devlet.objects.documents import Document, view
from devlet.objects.identifiers import DeviceName, DriverName, PoolName, RequestRef
from devlet.objects.types.claim import DeviceResult, NetworkDeviceData, ResourceClaim
from devlet.objects.types.slice import DeviceAttribute
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.registry import edits
from devlet.runtime.cdi.spec import Mount
from devlet.sdk.metadata import V1ALPHA1, VERSIONS, DeviceMetadata, MetadataDevice, MetadataRequest, ObjectName, read
from devlet.sdk.metadata_files import FOLDER, MetadataFiles
from devlet.sdk.values import Claim, ClaimRef, Prepared, Version

DRIVER = "gpu.example.com"
UID = "4be1ac0e-0f5d-4d23-b5a2-0c2c6a3e2f11"
INSIDE = "/var/run/kubernetes.io/dra-device-attributes"


def claim(uid: str = UID, *, pod_claim: str | None = None) -> Claim:
    annotations = {} if pod_claim is None else {ENTRY_ANNOTATION: pod_claim}
    document: Document = {
        "metadata": {"name": "my-claim", "namespace": "default", "uid": uid, "annotations": annotations}
    }
    return Claim(ClaimRef("default", "my-claim", uid), (), (), view(ResourceClaim, document), document)


def prepared(device: str, request: str = "gpu", **more: Any) -> Prepared:
    result = DeviceResult(
        request=RequestRef(request), driver=DriverName(DRIVER), pool=PoolName("n1"), device=DeviceName(device)
    )
    return Prepared(result, **more)


MODEL = prepared("gpu-0", metadata={"model": "LX"})


@pytest.fixture
def files(tmp_path: Path) -> MetadataFiles:
    return MetadataFiles(DRIVER, tmp_path / "plugin", tmp_path / "cdi")


def tree(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())


def mounts(tmp_path: Path, ids: Sequence[str]) -> tuple[Mount, ...]:
    """As a runtime finds them."""
    return edits(Cache([tmp_path / "cdi"]).refresh().resolve(ids).complete()).mounts


@pytest.mark.spec("DN-10.D01")
class TestVersions:
    def test_those_that_are_known_are_written(self, tmp_path: Path) -> None:
        assert MetadataFiles(DRIVER, tmp_path, tmp_path).versions == VERSIONS == (V1ALPHA1,)

    def test_those_that_are_not_known_are_left_out(self, tmp_path: Path) -> None:
        asked = ["metadata.resource.k8s.io/v99", V1ALPHA1]
        assert MetadataFiles(DRIVER, tmp_path, tmp_path, asked).versions == (V1ALPHA1,)

    @pytest.mark.parametrize("asked", [["metadata.resource.k8s.io/v99"], []])
    def test_no_supported_version_is_an_error(self, tmp_path: Path, asked: list[str]) -> None:
        with pytest.raises(InvalidInput, match=f"asked for {', '.join(asked) or 'none'}, supported {V1ALPHA1}"):
            MetadataFiles(DRIVER, tmp_path, tmp_path, asked)


@pytest.mark.spec("DN-10.D02")
class TestPrepared:
    def test_a_request_has_a_file_and_a_cdi_spec_that_mounts_it(self, files: MetadataFiles, tmp_path: Path) -> None:
        [ids] = files.write(claim(), [MODEL])
        assert ids == (f"{DRIVER}/metadata={UID}_gpu",)
        host = f"plugin/dra-device-metadata/{UID}/gpu/metadata.json"
        assert tree(tmp_path) == [f"cdi/{DRIVER}_metadata_{UID}_gpu.json", host]
        inside = f"{INSIDE}/resourceclaims/my-claim/gpu/{DRIVER}-metadata.json"
        assert mounts(tmp_path, ids) == (Mount(str(tmp_path / host), inside, ("ro", "bind")),)
        assert read(tmp_path / host) == DeviceMetadata(
            ObjectName("my-claim", "default", UID, 1),
            None,
            (
                MetadataRequest(
                    "gpu", (MetadataDevice(DRIVER, "n1", "gpu-0", {"model": DeviceAttribute(string="LX")}),)
                ),
            ),
        )

    @pytest.mark.spec("DN-5.8c")
    def test_the_cdi_spec_is_that_of_the_reference(self, files: MetadataFiles, tmp_path: Path) -> None:
        files.write(claim(), [MODEL])
        assert msgspec.json.decode((tmp_path / "cdi" / f"{DRIVER}_metadata_{UID}_gpu.json").read_bytes()) == {
            "cdiVersion": "0.5.0",
            "kind": f"{DRIVER}/metadata",
            "devices": [
                {
                    "name": f"{UID}_gpu",
                    "containerEdits": {
                        "mounts": [
                            {
                                "hostPath": str(files.path(UID, "gpu")),
                                "containerPath": f"{INSIDE}/resourceclaims/my-claim/gpu/{DRIVER}-metadata.json",
                                "options": ["ro", "bind"],
                            }
                        ]
                    },
                }
            ],
        }

    def test_a_device_of_which_nothing_is_known_yet_is_in_the_file(self, files: MetadataFiles) -> None:
        files.write(claim(), [prepared("gpu-0")])
        [request] = read(files.path(UID, "gpu")).requests
        assert request.devices == (MetadataDevice(DRIVER, "n1", "gpu-0"),)

    def test_network_data_are_in_the_file(self, files: MetadataFiles) -> None:
        network = NetworkDeviceData(interface_name="eth1", ips=("10.1.0.2/24",), hardware_address="02:00:00:00:00:01")
        files.write(claim(), [prepared("vf-0", network=network)])
        [request] = read(files.path(UID, "gpu")).requests
        assert request.devices[0].network_data == network

    def test_each_type_of_attribute_has_its_place(self, files: MetadataFiles) -> None:
        given = {"i": 7, "b": True, "s": "x", "v": Version("1.2.3"), "ii": (1, 2), "vv": [Version("1.0.0")]}
        files.write(claim(), [prepared("gpu-0", metadata=given)])
        [request] = read(files.path(UID, "gpu")).requests
        assert request.devices[0].attributes == {
            "i": DeviceAttribute(int_=7),
            "b": DeviceAttribute(bool_=True),
            "s": DeviceAttribute(string="x"),
            "v": DeviceAttribute(version="1.2.3"),
            "ii": DeviceAttribute(ints=(1, 2)),
            "vv": DeviceAttribute(versions=("1.0.0",)),
        }

    def test_each_request_has_its_own_and_the_first_device_of_it_the_mount(
        self, files: MetadataFiles, tmp_path: Path
    ) -> None:
        several = [prepared("gpu-0"), prepared("nic-0", "nic"), prepared("gpu-1"), prepared("nic-1", "nic")]
        ids = files.write(claim(), several)
        assert ids == [(f"{DRIVER}/metadata={UID}_gpu",), (f"{DRIVER}/metadata={UID}_nic",), (), ()]
        names = [[device.name for device in read(files.path(UID, name)).requests[0].devices] for name in ("gpu", "nic")]
        assert names == [["gpu-0", "gpu-1"], ["nic-0", "nic-1"]]
        assert len(mounts(tmp_path, [*ids[0], *ids[1]])) == 2

    def test_a_subrequest_has_the_file_of_its_request_and_its_whole_name_in_it(
        self, files: MetadataFiles, tmp_path: Path
    ) -> None:
        assert files.write(claim(), [prepared("gpu-0", "gpu/large")]) == [(f"{DRIVER}/metadata={UID}_gpu",)]
        assert [request.name for request in read(files.path(UID, "gpu")).requests] == ["gpu/large"]

    def test_two_subrequests_of_a_request_share_its_file(self, files: MetadataFiles) -> None:
        files.write(claim(), [prepared("gpu-0", "gpu/large"), prepared("gpu-1", "gpu/small")])
        assert [request.name for request in read(files.path(UID, "gpu")).requests] == ["gpu/large", "gpu/small"]

    def test_a_claim_from_a_template_is_found_under_the_pods_own_name_for_it(
        self, files: MetadataFiles, tmp_path: Path
    ) -> None:
        [ids] = files.write(claim(pod_claim="mine"), [MODEL])
        [mount] = mounts(tmp_path, ids)
        assert mount.container_path == f"{INSIDE}/resourceclaimtemplates/mine/gpu/{DRIVER}-metadata.json"
        assert read(files.path(UID, "gpu")).pod_claim_name == "mine"

    def test_a_device_without_request_has_no_metadata(self, files: MetadataFiles, tmp_path: Path) -> None:
        assert files.write(claim(), [prepared("gpu-0", "")]) == [()]
        assert tree(tmp_path) == []

    def test_a_driver_that_starts_with_a_digit_has_a_cdi_vendor(self, tmp_path: Path) -> None:
        files = MetadataFiles("3d.example.com", tmp_path / "plugin", tmp_path / "cdi")
        [ids] = files.write(claim(), [MODEL])
        [mount] = mounts(tmp_path, ids)
        assert mount.container_path.endswith("/3d.example.com-metadata.json")


@pytest.mark.spec("DN-11.24b")
class TestBetterThanTheReference:
    def test_a_new_claim_of_the_same_name_does_not_get_the_files_of_the_old_one(self, files: MetadataFiles) -> None:
        files.write(claim(), [MODEL])
        files.write(claim("uid-2"), [prepared("gpu-1")])
        files.remove(UID)
        assert read(files.path("uid-2", "gpu")).metadata.uid == "uid-2"
        assert files.leftovers() == {"uid-2"}

    def test_a_reader_of_the_file_sees_updates_of_any_length(self, files: MetadataFiles, tmp_path: Path) -> None:
        files.write(claim(), [prepared("gpu-0")])
        with open(files.path(UID, "gpu"), "rb") as reader:
            for update in ([MODEL], [prepared("gpu-0")]):
                files.update(claim().ref, "gpu", update)
                reader.seek(0)
                assert reader.read() == files.path(UID, "gpu").read_bytes()
        assert len(tree(tmp_path)) == 2

    def test_all_may_read_whatever_the_umask_is(self, files: MetadataFiles, tmp_path: Path) -> None:
        before = os.umask(0o077)
        try:
            files.write(claim(), [MODEL])
        finally:
            os.umask(before)
        assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in tree(tmp_path)} == {0o644}

    def test_what_is_prepared_again_unchanged_is_not_touched(self, files: MetadataFiles) -> None:
        files.write(claim(), [MODEL])
        inode = files.path(UID, "gpu").stat().st_ino
        files.write(claim(), [MODEL])
        assert files.path(UID, "gpu").stat().st_ino == inode

    def test_what_an_update_said_survives_another_prepare(self, files: MetadataFiles) -> None:
        files.write(claim(), [prepared("gpu-0")])
        after = files.update(claim().ref, "gpu", [MODEL])
        files.write(claim(), [prepared("gpu-0")])
        assert read(files.path(UID, "gpu")) == after

    def test_the_generation_increases_when_a_prepare_has_other_metadata(self, files: MetadataFiles) -> None:
        files.write(claim(), [prepared("gpu-0")])
        files.write(claim(), [MODEL])
        assert read(files.path(UID, "gpu")).metadata.generation == 2

    def test_a_file_that_another_program_damaged_is_written_again(self, files: MetadataFiles) -> None:
        files.write(claim(), [MODEL])
        files.path(UID, "gpu").write_text("{")
        files.write(claim(), [MODEL])
        assert read(files.path(UID, "gpu")).metadata.generation == 1


@pytest.mark.spec("DN-10.D03")
class TestCleanup:
    def test_nothing_is_left_of_a_claim(self, files: MetadataFiles, tmp_path: Path) -> None:
        files.write(claim(), [prepared("gpu-0", "gpu/large"), prepared("nic-0", "nic")])
        (tmp_path / "cdi" / f".{DRIVER}_metadata_{UID}_gpu.json.x.tmp").touch()  # of one that was killed
        files.remove(UID)
        assert tree(tmp_path) == []
        assert list((tmp_path / "plugin" / "dra-device-metadata").iterdir()) == []

    def test_other_claims_and_drivers_stay(self, files: MetadataFiles, tmp_path: Path) -> None:
        files.write(claim(), [MODEL])
        files.write(claim("uid-2"), [MODEL])
        MetadataFiles("x.example.com", tmp_path / "x", tmp_path / "cdi").write(claim(), [MODEL])
        files.remove(UID)
        assert len(tree(tmp_path)) == 4

    def test_unpreparing_an_unknown_or_deleted_claim_succeeds(self, files: MetadataFiles) -> None:
        files.remove("unknown")
        files.write(claim(), [MODEL])
        files.remove(UID)
        files.remove(UID)
        assert files.leftovers() == set()


@pytest.mark.spec("DN-10.D04")
class TestUpdates:
    def test_each_counts_one_generation_and_keeps_the_pods_name(self, files: MetadataFiles) -> None:
        files.write(claim(pod_claim="mine"), [prepared("gpu-0")])
        for generation in (2, 3, 4):
            files.update(claim().ref, "gpu", [MODEL])
            after = read(files.path(UID, "gpu"))
            assert (after.metadata.generation, after.pod_claim_name) == (generation, "mine")
        assert after.requests[0].devices[0].attributes == {"model": DeviceAttribute(string="LX")}

    def test_of_a_subrequest(self, files: MetadataFiles) -> None:
        files.write(claim(), [prepared("gpu-0", "gpu/large")])
        files.update(claim().ref, "gpu/large", [MODEL])
        assert read(files.path(UID, "gpu")).requests[0].name == "gpu/large"

    @pytest.mark.parametrize(("uid", "request_name"), [("unknown", "gpu"), (UID, "nic")])
    def test_of_what_was_not_prepared_is_an_error(self, files: MetadataFiles, uid: str, request_name: str) -> None:
        files.write(claim(), [MODEL])
        with pytest.raises(NotFound, match=f"claim default/my-claim: request {request_name} is not prepared"):
            files.update(ClaimRef("default", "my-claim", uid), request_name, [MODEL])

    def test_of_a_broken_file_is_an_error(self, files: MetadataFiles) -> None:
        files.write(claim(), [MODEL])
        files.path(UID, "gpu").write_text("{")
        with pytest.raises(InvalidInput, match=r"metadata.json: not JSON"):
            files.update(claim().ref, "gpu", [MODEL])


@pytest.mark.parametrize("bad", ["..", "../../x", "a/b/c", "/etc"])
def test_names_that_could_be_paths_are_refused_and_nothing_is_touched(
    files: MetadataFiles, tmp_path: Path, bad: str
) -> None:
    with pytest.raises(InvalidInput):
        files.write(claim(bad), [MODEL])
    with pytest.raises(InvalidInput):
        files.write(claim(), [prepared("gpu-0", bad)])
    with pytest.raises(InvalidInput):
        files.remove(bad)
    with pytest.raises(InvalidInput):
        files.update(ClaimRef("default", "c", bad), "gpu", [])
    assert tree(tmp_path) == []


def test_a_pods_name_for_a_claim_that_is_a_path_is_refused(files: MetadataFiles) -> None:
    with pytest.raises(InvalidInput, match="it would be another path"):
        files.write(claim(pod_claim="../../etc"), [MODEL])


def test_a_failed_write_is_reported_with_the_claim_and_the_file(files: MetadataFiles, tmp_path: Path) -> None:
    (tmp_path / "plugin").touch()
    with pytest.raises(
        Unavailable, match=r"claim default/my-claim: .*metadata.json cannot be written: Not a directory"
    ):
        files.write(claim(), [MODEL])


@pytest.mark.parametrize("file", ["plugin", f"plugin/{FOLDER}", f"plugin/{FOLDER}/{UID}", "cdi"])
def test_where_a_file_is_in_the_place_of_a_directory_there_is_nothing_to_remove(
    files: MetadataFiles, tmp_path: Path, file: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    files.remove(UID)
    assert path.is_file()


@pytest.mark.parametrize("value", [1.5, None, {"string": "LX"}, [1.5], ["a", 1]])
def test_an_attribute_of_no_known_type_is_named(files: MetadataFiles, value: Any) -> None:
    """It is the author's mistake; containers start without metadata then."""
    with pytest.raises(InvalidInput, match=r"device n1/gpu-0: metadata model: .* is not a string, integer"):
        files.write(claim(), [prepared("gpu-0", metadata={"model": value})])
