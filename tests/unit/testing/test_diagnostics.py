from devlet.testing.diagnostics import SHOWN, attach, collect


def test_what_is_attached_is_described_while_its_block_runs() -> None:
    assert collect() == ""
    with attach("driver", lambda: "it sleeps"):
        with attach("node", lambda: "it waits"):
            assert collect() == "\n--- driver\nit sleeps\n--- node\nit waits"
        assert collect() == "\n--- driver\nit sleeps"
    assert collect() == ""


def test_a_part_that_cannot_be_described_does_not_hide_the_others() -> None:
    def broken() -> str:
        raise OSError("gone")

    with attach("a", broken), attach("b", lambda: "fine"):
        assert collect() == "\n--- a\n(cannot be described: OSError('gone'))\n--- b\nfine"


def test_of_a_long_description_the_end_is_shown() -> None:
    with attach("a", lambda: "x" * SHOWN + "the end"):
        text = collect()
    assert text.startswith("\n--- a\n(…)\nx") and text.endswith("the end") and len(text) < SHOWN + 50
