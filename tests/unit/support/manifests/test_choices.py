from tests.support.manifests.choices import Choices


def test_a_letter_stands_for_whatever_is_found_and_then_for_that_only() -> None:
    choices = Choices()
    assert choices.takes("n1/gpu-{a}", "n1/gpu-12")
    assert choices.letters == {"a": "12"}
    assert choices.fill("GPU_{a}=gpu-{a} {b}") == "GPU_12=gpu-12 {b}"
    assert choices.takes("{a}", "12")
    assert not choices.takes("n1/gpu-{a}", "n1/gpu-13")
    assert not choices.takes("gpu-{b}", "nic-0")


def test_different_letters_are_different_texts() -> None:
    choices = Choices()
    assert choices.takes("gpu-{a}", "gpu-0")
    assert not choices.takes("gpu-{b}", "gpu-0")
    assert choices.takes("gpu-{b}", "gpu-1")
    assert not Choices().takes("{a}/{b}", "x/x")
    assert Choices().takes("{a}/{a}", "x/x")
    assert not Choices().takes("{a}/{a}", "x/y")


def test_what_is_not_a_letter_is_meant_as_it_is_written() -> None:
    assert not Choices().takes("a.b", "axb")
    assert Choices().takes("", "")
    assert not Choices().takes("{uid:x}", "anything")
    assert Choices(uids={"pod/x": "1-2"}).takes("{uid:pod/x}", "1-2")


def test_a_copy_learns_alone() -> None:
    first = Choices()
    second = first.with_uids({"claim": "7"})
    assert second.takes("gpu-{a}", "gpu-0")
    assert (first.letters, second.fill("{uid:claim} {a}")) == ({}, "7 0")
