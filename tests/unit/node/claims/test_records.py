from devlet.node.claims.records import ClaimKey, ClaimState
from devlet.objects.identifiers import ClaimName


def test_a_claim_is_told_by_namespace_and_name() -> None:
    assert str(ClaimKey("ns", ClaimName("c"))) == "ns/c"


def test_claims_are_taken_in_one_order() -> None:
    made = [ClaimKey("b", ClaimName("a")), ClaimKey("a", ClaimName("b")), ClaimKey("a", ClaimName("a"))]
    assert [str(each) for each in sorted(made)] == ["a/a", "a/b", "b/a"]


def test_states_are_told_in_words() -> None:
    assert [str(state) for state in ClaimState] == ["Preparing", "Prepared", "Failed", "Unpreparing"]
