from devlet.cel.issues import CompileError, Issue, render


def test_an_issue_shows_its_line_and_a_caret() -> None:
    assert render("a + b", [Issue("bad plus", 2)]) == "ERROR: <input>:1:3: bad plus\n | a + b\n | ..^"


def test_the_line_of_the_issue_is_shown_and_no_other() -> None:
    assert render("one\n\ttwo\nthree", [Issue("bad", 5)]) == "ERROR: <input>:2:2: bad\n |  two\n | .^"


def test_the_caret_may_stand_behind_the_end_of_the_line() -> None:
    assert render("ab", [Issue("more", 2)]) == "ERROR: <input>:1:3: more\n | ab\n | ..^"


def test_wide_characters_get_wide_dots_and_a_wide_caret() -> None:
    assert render("é + 世", [Issue("bad", 4)]) == "ERROR: <input>:1:5: bad\n | é + 世\n | \uff0e...\uff3e"


def test_issues_are_in_the_order_of_the_source_and_those_without_a_place_first() -> None:
    text = render("a b c", [Issue("third", 4), Issue("second", 2), Issue("second too", 2), Issue("limit")])
    assert [line for line in text.split("\n") if line.startswith("ERROR")] == [
        "ERROR: <input>:-1:0: limit",
        "ERROR: <input>:1:3: second",
        "ERROR: <input>:1:3: second too",
        "ERROR: <input>:1:5: third",
    ]


def test_an_issue_without_a_place_has_no_snippet() -> None:
    assert render("a", [Issue("limit")]) == "ERROR: <input>:-1:0: limit"


def test_an_empty_source_has_no_snippet() -> None:
    assert render("", [Issue("empty", 0)]) == "ERROR: <input>:1:0: empty"


def test_a_very_long_line_is_not_shown() -> None:
    assert render("x" * 16385, [Issue("long", 0)]) == "ERROR: <input>:1:1: long"
    assert render("x" * 16384, [Issue("long", 0)]).count("\n") == 2


def test_at_most_a_hundred_issues_are_shown() -> None:
    text = render("a", [Issue("bad")] * 103)
    assert text.count("ERROR") == 100
    assert text.endswith("\n3 more errors were truncated")


def test_the_error_has_its_issues_and_their_text() -> None:
    error = CompileError("a", [Issue("bad", 0)])
    assert error.issues == (Issue("bad", 0),)
    assert str(error) == "ERROR: <input>:1:1: bad\n | a\n | ^"
