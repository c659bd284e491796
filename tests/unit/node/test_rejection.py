from devlet.node.rejection import Rejection


def test_rejections_with_the_same_words_are_the_same() -> None:
    assert Rejection("OutOfcpu", "why") == Rejection(reason="OutOfcpu", message="why")
