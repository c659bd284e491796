import json
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.claim_checkpoint import decode
from devlet.state.claim_entry import ClaimEntry, Encoder, PreparedDevice, by_name


@pytest.mark.spec("DN-4.06")
def test_the_last_of_several_claims_with_the_same_name_counts() -> None:
    first, other, last = (ClaimEntry(uid, name, "ns", None, None) for uid, name in (("1", "a"), ("2", "b"), ("3", "a")))
    elsewhere = ClaimEntry("4", "a", "other", None, None)
    assert by_name([first, other, last, elsewhere]) == {
        ("ns", "a"): last,
        ("ns", "b"): other,
        ("other", "a"): elsewhere,
    }


TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.none() | st.lists(TEXTS, max_size=3).map(tuple)
DEVICES = st.builds(PreparedDevice, TEXTS, TEXTS, st.none() | TEXTS, NAMES, NAMES)
CLAIMS = st.builds(
    ClaimEntry,
    uid=TEXTS,
    name=TEXTS,
    namespace=TEXTS,
    pods=st.none() | st.frozensets(TEXTS, max_size=3),
    drivers=st.none() | st.dictionaries(TEXTS, st.none() | st.lists(DEVICES, max_size=2).map(tuple), max_size=3),
)


def fresh(claims: list[ClaimEntry] | None) -> bytes:
    return Encoder().encode(claims)


def data(blob: bytes) -> Any:
    return json.loads(json.loads(blob)["Data"])


@pytest.mark.spec("DN-4.02")
@given(st.none() | st.lists(CLAIMS, max_size=4))
def test_encoded_data_is_decoded_unchanged(claims: list[ClaimEntry] | None) -> None:
    blob = fresh(claims)
    assert decode(blob).claims == (None if claims is None else tuple(claims))
    outside = json.loads(blob)
    assert outside["Checksum"] == crc32(outside["Data"].encode())


@given(st.lists(st.none() | st.lists(st.sampled_from(range(6)), max_size=8), max_size=8), st.data())
def test_an_encoder_returns_the_same_as_a_new_one(turns: list[list[int] | None], draw: st.DataObject) -> None:
    pool = draw.draw(st.lists(CLAIMS, min_size=6, max_size=6))
    encoder = Encoder()
    for chosen in turns:
        claims = None if chosen is None else [pool[number] for number in chosen]
        assert encoder.encode(claims) == fresh(claims)


@pytest.mark.spec("DN-4.01")
def test_fields_are_in_the_order_of_the_kubelet_and_keys_are_sorted() -> None:
    device = PreparedDevice("p", "d", None, ("r",), ("v/c=n",))
    claim = ClaimEntry("u", "c", "n", frozenset({"b", "é", "B", "a"}), {"y": (device,), "x": None, "\U0001f9ea": ()})
    assert json.dumps(data(fresh([claim])), separators=(",", ":"), ensure_ascii=False) == (
        '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[{"ClaimUID":"u",'
        '"ClaimName":"c","Namespace":"n","PodUIDs":{"B":{},"a":{},"b":{},"é":{}},"DriverState":{"x":{"Devices":null},'
        '"y":{"Devices":[{"PoolName":"p","DeviceName":"d","ShareID":null,"RequestNames":["r"],"CDIDeviceIDs":["v/c=n"]}'
        ']},"\U0001f9ea":{"Devices":[]}}}]}'
    )


@pytest.mark.spec("DN-4.03")
def test_the_checkpoint_of_a_new_node_is_that_of_the_kubelet() -> None:
    assert json.loads(fresh(None))["Checksum"] == 4010664294
    assert json.loads(fresh([]))["Checksum"] == 2361995144


def test_the_order_of_claims_is_kept() -> None:
    claims = [ClaimEntry(str(number), "c", "n", None, None) for number in (3, 1, 2)]
    assert decode(fresh(claims)).claims == tuple(claims)


def test_removed_claims_are_dropped_from_the_cache() -> None:
    encoder = Encoder()
    for start in range(0, 20_000, 100):
        claims = [ClaimEntry(str(start + i), "c", "n", None, None) for i in range(100)]
        encoder.encode(claims)
    assert len(encoder._memory) <= 100 + 256
    assert encoder.encode(claims) == fresh(claims)


def test_a_claim_is_not_confused_with_one_that_had_its_address() -> None:
    encoder = Encoder()
    for number in range(1_000):  # each is created at the address of the previous one
        claim = ClaimEntry(str(number), "c", "n", None, None)
        assert decode(encoder.encode([claim])).claims == (claim,)
        del claim


def test_the_checksum_is_valid_for_names_that_are_not_utf8() -> None:
    device = PreparedDevice("p\ud800", "d", "\udcff", ("\udcff",), None)
    claim = ClaimEntry("u\udcff", "c", "n", frozenset({"p\udcff"}), {"d\udcff": (device,)})
    assert decode(fresh([claim])).claims == (
        ClaimEntry(
            "u\ufffd",
            "c",
            "n",
            frozenset({"p\ufffd"}),
            {"d\ufffd": (PreparedDevice("p\ufffd", "d", "\ufffd", ("\ufffd",), None),)},
        ),
    )
