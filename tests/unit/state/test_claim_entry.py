import pytest

from devlet.state.claim_entry import ClaimEntry, by_name


@pytest.mark.spec("DN-4.06")
def test_the_last_of_several_claims_with_the_same_name_counts() -> None:
    first, other, last = (ClaimEntry(uid, name, "ns", None, None) for uid, name in (("1", "a"), ("2", "b"), ("3", "a")))
    elsewhere = ClaimEntry("4", "a", "other", None, None)
    assert by_name([first, other, last, elsewhere]) == {
        ("ns", "a"): last,
        ("ns", "b"): other,
        ("other", "a"): elsewhere,
    }
