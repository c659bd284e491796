import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.claim_checkpoint import ClaimEntry, Encoder, PreparedDevice, decode
from devlet.state.claim_salvage import Salvage, salvage

CLAIMS = [
    ClaimEntry(
        f"uid-{i}",
        f"claim-{i}",
        "ns",
        frozenset({f"pod-{i}"}),
        {"gpu.example.com": (PreparedDevice("pool", f"gpu-{i}", None, ("main",), (f'v.com/c="{i}" \U0001f9ea',)),)},
    )
    for i in range(5)
]
WHOLE = Encoder().encode(CLAIMS)
OLD_ENTRIES = [
    {
        "DriverName": "d",
        "ClaimUID": f"uid-{i}",
        "ClaimName": f"claim-{i}",
        "Namespace": "ns",
        "CDIDevices": {"d": ["x"]},
    }
    | {"ResourceHandles": [{"data": '{"ClaimUID":"nested","ClaimName":"n","Namespace":"n"}'}]}
    for i in range(3)
]
OLD = json.dumps({"version": "v1", "entries": OLD_ENTRIES, "checksum": 1}).encode()


def _end(claim: ClaimEntry) -> int:
    following = WHOLE.find(b'{\\"ClaimUID', WHOLE.index(claim.uid.encode()))
    return following - 1 if following >= 0 else WHOLE.index(b']}","Checksum')


def test_an_intact_file_is_recovered_completely() -> None:
    assert salvage(WHOLE) == Salvage(tuple(CLAIMS))


@pytest.mark.spec("DN-11.15")
def test_a_wrong_checksum_loses_nothing() -> None:
    assert salvage(WHOLE.replace(b'"Checksum":', b'"Checksum":0,"old":')) == Salvage(tuple(CLAIMS))
    assert [claim.name for claim in salvage(OLD).claims] == ["claim-0", "claim-1", "claim-2"]
    assert salvage(OLD).lost == ()


@pytest.mark.spec("DN-11.15")
@given(st.integers(0, len(WHOLE) - 1))
def test_complete_claims_of_a_truncated_file_are_recovered(length: int) -> None:
    assert salvage(WHOLE[:length]).claims == tuple(claim for claim in CLAIMS if _end(claim) <= length)


def test_a_truncated_claim_is_listed_as_lost() -> None:
    found = salvage(WHOLE[: WHOLE.index(b"gpu-3")])
    assert found.claims == tuple(CLAIMS[:3])
    assert found.lost == ("claim claim-3 with UID uid-3: the file ends before it does",)
    barely = salvage(WHOLE[: WHOLE.index(b"uid-3") + 5])
    assert barely.lost == ("claim ? with UID uid-3: the file ends before it does",)


def test_claims_after_the_damage_are_recovered() -> None:
    found = salvage(WHOLE.replace(b'\\"gpu-1\\"', b"\0\0\0\0\0\0"))
    assert found.claims == (CLAIMS[0], *CLAIMS[2:])
    (lost,) = found.lost
    assert lost.startswith("claim claim-1 with UID uid-1: not JSON at character")


def test_an_invalid_claim_does_not_affect_the_others() -> None:
    found = salvage(WHOLE.replace(b'{\\"pod-1\\":{}}', b'[\\"pod-1\\"]'))
    assert found.claims == (CLAIMS[0], *CLAIMS[2:])
    assert found.lost == ("claim claim-1 with UID uid-1: PodUIDs: expected an object, found a list",)


def test_a_damaged_field_name_does_not_lose_its_content() -> None:
    assert salvage(WHOLE.replace(b"ClaimInfoStateList", b"ClaimInfoStateLost")).claims == tuple(CLAIMS)
    assert salvage(WHOLE.replace(b'{"Data":"', b'{"Dat\0":"')).claims == tuple(CLAIMS)
    assert salvage(WHOLE[20:]).claims == tuple(CLAIMS)


def test_the_last_of_two_copies_of_a_claim_is_recovered() -> None:
    other = ClaimEntry("new", "claim-0", "ns", None, None)
    found = salvage(WHOLE[:-20] + Encoder().encode([other])[20:])
    assert found.claims == (*CLAIMS[1:], other)
    assert found.lost == ("another entry of claim ns/claim-0, with UID uid-0",)


def test_complete_claims_of_truncated_old_files_are_recovered() -> None:
    found = salvage(OLD[: OLD.rindex(b"CDIDevices")])
    assert [claim.name for claim in found.claims] == ["claim-0", "claim-1"]
    assert found.lost[0] == "claim claim-2 with UID uid-2: the file ends before it does"
    beta = json.dumps([{"ClaimUID": "u", "ClaimName": "c", "Namespace": "n", "DriverName": "d", "CdiDevices": ["x"]}])
    (claim,) = salvage(beta.encode()).claims
    assert claim.drivers == {"d": (PreparedDevice("", "", None, (), ("x",)),)}
    nonsense = salvage(OLD.replace(b'["x"]', b"5", 1) + b"\0")
    assert [claim.name for claim in nonsense.claims] == ["claim-1", "claim-2"]


@pytest.mark.parametrize("blob", [b"", b"{}", b"\0" * 1000, b'{"Data":"{', b'{"a":' * 5000, b"[" * 5000, b"\\u" * 99])
def test_nothing_is_recovered_from_an_unreadable_file(blob: bytes) -> None:
    assert salvage(blob).claims == ()


@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=12))
def test_recovered_content_is_in_the_damaged_file(position: int, garbage: bytes) -> None:
    found = salvage(WHOLE[:position] + garbage + WHOLE[position + len(garbage) :])
    assert sum(claim in CLAIMS for claim in found.claims) >= len(CLAIMS) - 2
    decode(Encoder().encode(found.claims))
