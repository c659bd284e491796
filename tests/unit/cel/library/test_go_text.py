"""Quoted texts."""

import pytest

from devlet.cel.library.go_text import quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", '""'),
        ('a "b" \\', r'"a \"b\" \\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("ä€😀", '"ä€😀"'),
        ("\u00a0\u2028", r'"\u00a0\u2028"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_texts_are_quoted_as_go_does(text: str, shown: str) -> None:
    assert quoted(text) == shown
