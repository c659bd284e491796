from devlet.cassettes.drift import Change, Difference
from devlet.cli.views.differences import lines


def test_nothing_is_said_in_words() -> None:
    assert list(lines([])) == ["no differences"]


def test_each_difference_is_a_row_and_all_are_counted() -> None:
    found = [
        Difference(Change.ADDED, "device a/b"),
        Difference(Change.REMOVED, "driver x", before="2 devices"),
        Difference(Change.CHANGED, "device c", "attributes[x]", {"string": "old"}, None),
        Difference(Change.CHANGED, "device d", "edits", {"env": ["x" * 99], "more": 1}, ["a"]),
    ]
    shown = list(lines(found))
    assert shown[0].split() == ["CHANGE", "OBJECT", "FIELD", "A", "B"]
    assert shown[1].split() == ["added", "device", "a/b", "<none>", "<none>", "<none>"]
    assert "2 devices" in shown[2]
    assert shown[3].split()[-3:] == ["attributes[x]", "old", "<none>"]
    assert list(lines([Difference(Change.CHANGED, "d", "taints[a]", None, "")]))[1].endswith('<none>   ""')
    assert "…" in shown[4] and shown[4].endswith('["a"]')
    assert shown[-1] == "1 added, 1 removed, 2 changed"


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in "".join(lines([Difference(Change.CHANGED, "d", "x", "\x1b[31m", "b")]))
