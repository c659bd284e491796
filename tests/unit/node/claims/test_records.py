from devlet.node.claims.records import ClaimKey, ClaimState
from devlet.objects.identifiers import ClaimName


def test_a_key_is_shown_as_namespace_and_name() -> None:
    assert str(ClaimKey("ns", ClaimName("c"))) == "ns/c"


def test_keys_have_an_order() -> None:
    made = [ClaimKey("b", ClaimName("a")), ClaimKey("a", ClaimName("b")), ClaimKey("a", ClaimName("a"))]
    assert [str(each) for each in sorted(made)] == ["a/a", "a/b", "b/a"]


def test_states_are_shown_as_words() -> None:
    assert [str(state) for state in ClaimState] == ["Preparing", "Prepared", "Failed", "Unpreparing"]
