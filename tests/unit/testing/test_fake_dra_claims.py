import json
from pathlib import Path

import pytest

from devlet.objects.identifiers import ClaimName, ClaimUID, DriverName
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef
from devlet.runtime.cdi.codec import decode
from devlet.testing.fake_dra_claims import FakeDraClaims, PreparedClaim

DRIVER = DriverName("gpu.example.com")
TRAIN = ClaimRef("default", ClaimName("train-1"), ClaimUID("0a-1"))
ONE = PreparedDevice("pool", "dev-0")
TWO = PreparedDevice("pool", "dev-1", requests=("gpu/big", "b"))


def test_each_device_of_a_claim_is_a_cdi_device(root: Path) -> None:
    claims = FakeDraClaims(DRIVER, root / "cdi")
    answered = claims.add(TRAIN, [ONE, TWO])
    assert answered == (
        PreparedDevice("pool", "dev-0", cdi_devices=("gpu.example.com/claim=0a-1",)),
        PreparedDevice("pool", "dev-1", requests=("gpu/big", "b"), cdi_devices=("gpu.example.com/claim=0a-1-1",)),
    )
    assert dict(claims) == {"0a-1": PreparedClaim(TRAIN, answered)}
    assert json.loads(claims.cdi_file("0a-1").read_text()) == {
        "cdiVersion": "0.5.0",
        "kind": "gpu.example.com/claim",
        "devices": [
            {"name": "0a-1", "containerEdits": {"env": ["CLAIM_train_1=0a-1"]}},
            {
                "name": "0a-1-1",
                "containerEdits": {
                    "env": ["CLAIM_train_1=0a-1", "CLAIM_train_1_gpu_big=dev-1", "CLAIM_train_1_b=dev-1"]
                },
            },
        ],
    }


@pytest.mark.parametrize("driver", ["gpu.example.com", "9gpu.example.com"])
def test_the_file_is_one_that_runtimes_accept(root: Path, driver: str) -> None:
    claims = FakeDraClaims(DriverName(driver), root)
    claims.add(TRAIN, [ONE, TWO])
    (file,) = root.iterdir()
    spec = decode(file.read_bytes())
    assert [f"{spec.kind}={device.name}" for device in spec.devices] == [
        claims.cdi_id("0a-1"),
        claims.cdi_id("0a-1", 1),
    ]


def test_cdi_devices_that_are_given_are_answered_as_they_are(root: Path) -> None:
    claims = FakeDraClaims(DRIVER, root)
    for given in ((), ("no cdi",), ("a/b=c", "a/b=c")):
        device = PreparedDevice("", "", cdi_devices=given)
        assert claims.add(TRAIN, [device]) == (device,)


def test_a_claim_without_devices_has_no_file_and_is_prepared(root: Path) -> None:
    claims = FakeDraClaims(DRIVER, root)
    assert claims.add(TRAIN, []) == ()
    assert list(claims) == ["0a-1"] and not list(root.iterdir())


def test_the_environment_can_be_another_one(root: Path) -> None:
    claims = FakeDraClaims(DRIVER, root)
    claims.environment = lambda claim, device: {"USER_A": "b"} if device.device == "dev-0" else {}
    claims.add(TRAIN, [ONE, TWO])
    (device,) = json.loads(claims.cdi_file("0a-1").read_text())["devices"]
    assert device == {"name": "0a-1", "containerEdits": {"env": ["USER_A=b"]}}


def test_a_claim_that_is_removed_leaves_nothing_and_may_be_removed_again(root: Path) -> None:
    claims = FakeDraClaims(DRIVER, root / "cdi", root / "claims")
    claims.add(TRAIN, [ONE])
    for _ in range(2):
        claims.remove("0a-1")
        assert not claims
        assert not [path for path in root.rglob("*") if path.is_file()]


def test_a_uid_never_leads_out_of_the_directory(root: Path) -> None:
    claims = FakeDraClaims(DRIVER, root / "cdi", root / "claims")
    for uid in ("../../x", "", ".", "a/b", "a\0b", "x" * 129):
        problem = claims.add(ClaimRef("ns", ClaimName("c"), ClaimUID(uid)), [ONE])
        assert isinstance(problem, ClaimProblem) and "cannot be used" in problem.message
        claims.remove(uid)
        assert uid not in claims
    assert not list(root.rglob("*"))


def test_claims_in_files_are_shared_by_all_users_of_the_directory(root: Path) -> None:
    one, two = (FakeDraClaims(DRIVER, root / "cdi", root / "claims") for _ in range(2))
    one.add(TRAIN, [TWO])
    assert dict(two) == dict(one) and len(two) == 1
    two.remove("0a-1")
    assert not one and "0a-1" not in one
