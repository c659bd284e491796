from devlet.alloc.explain.report import Change, Conflict, Explanation, NodeReport, RequestReport, Verdict, VerdictKind
from devlet.cli.views.explanation import lines
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName


def device(name: str) -> DeviceIdentity:
    return DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName(name))


def verdict(name: str, kind: VerdictKind, detail: str = "", part: str = "") -> Verdict:
    return Verdict(device(name), kind, detail, part, part)


def explanation(*verdicts: Verdict, fits: bool = False, elsewhere: int = 0, changes: int = 0) -> Explanation:
    request = RequestReport("ns/c", "gpu", "2 devices of class gpu", 2, verdicts, elsewhere)
    conflict = Conflict(("request gpu",), "request gpu needs 2 devices, 1 is free", "too few")
    nodes = tuple(
        NodeReport(name, "fit" if fits else "no-fit", f"text of {name}", (request,), conflict) for name in ("n1", "n2")
    )
    found = tuple(Change(f"change {i}", i, "n1") for i in range(changes))
    return Explanation(("ns/c",), fits, "0/2 nodes", nodes, (("too few", 2),), found)


def shown(found: Explanation, **options: bool) -> list[str]:
    return list(lines("pod ns/p", found, 2, **options))


def cells(found: Explanation) -> list[list[str]]:
    table = [line.strip() for line in shown(found)]
    start = next(i for i, line in enumerate(table) if line.startswith("DEVICES"))
    end = table.index("", start) if "" in table[start:] else len(table)
    return [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in table[start + 1 : end]]


def test_the_verdict_comes_first() -> None:
    assert shown(explanation())[0] == "pod ns/p does not fit: 0/2 nodes"
    assert shown(explanation(fits=True))[0] == "pod ns/p fits: 0/2 nodes"


def test_the_nearest_node_is_shown_with_its_conflict_unless_all_are_asked_for() -> None:
    found = explanation()
    text = "\n".join(shown(found))
    assert "Node n1: text of n1\n  request gpu needs 2 devices, 1 is free" in text
    assert "Node n2" not in text and text.endswith("Use --all-nodes to see 1 more.")
    everything = "\n".join(shown(found, all_nodes=True))
    assert "Node n1" in everything and "Node n2" in everything and "more with" not in everything


def test_devices_are_grouped_by_reason_and_those_of_other_nodes_come_last() -> None:
    found = explanation(
        verdict("a", VerdictKind.OTHER_NODE, "is for node n2"),
        verdict("b", VerdictKind.IN_USE, "by claim ns/x"),
        verdict("c", VerdictKind.REQUEST_SELECTOR, "memory is 1", "memory > 2"),
        verdict("e", VerdictKind.REQUEST_SELECTOR, "memory is 2", "memory > 2"),
        verdict("f", VerdictKind.FREE),
        verdict("g", VerdictKind.SELECTOR_ERROR, "no such key: x", "d.x == 1"),
        elsewhere=7,
    )
    assert cells(found) == [
        ["1", "free", "f"],
        ["2", "not selected", "c, e", "memory > 2 is false"],
        ["1", "selector fails", "g", "no such key: x, in d.x == 1"],
        ["1", "in use", "b", "by claim ns/x"],
        ["8", "of another node", "a and 7 more", "is for node n2"],
    ]


def test_devices_of_other_nodes_that_are_not_listed_are_counted() -> None:
    assert cells(explanation(verdict("f", VerdictKind.FREE), elsewhere=70))[-1] == ["70", "of another node"]


def test_one_reason_for_all_is_told_with_its_values() -> None:
    found = explanation(
        *(verdict(name, VerdictKind.CLASS_SELECTOR, "model is l4", "model == h100") for name in "abcde")
    )
    assert cells(found) == [["5", "not of the class", "a, b, c and 2 more", "model == h100 is false (model is l4)"]]


def test_each_device_has_its_line_in_the_wide_form() -> None:
    found = explanation(verdict("a", VerdictKind.FREE), verdict("b", VerdictKind.TAINT, "k=v:NoSchedule"))
    text = [line.split() for line in shown(found, wide=True)]
    assert ["d/p/a", "free"] in text and ["d/p/b", "tainted", "k=v:NoSchedule"] in text


def test_some_changes_are_shown_and_all_in_the_wide_form() -> None:
    found = explanation(changes=5)
    short, long = shown(found), shown(found, wide=True)
    assert "  change 2 (node n1)" in short and "  change 3 (node n1)" not in short
    assert "  and 2 more: use -o wide to see them" in short
    assert "  change 4 (node n1)" in long


def test_a_request_without_devices_says_so() -> None:
    assert "    no devices" in shown(explanation())


def test_nothing_that_comes_from_objects_acts_on_the_terminal() -> None:
    text = "\n".join(shown(explanation(verdict("a", VerdictKind.TAINT, "\x1b[31mred\nline"))))
    assert "\x1b" not in text and "^[[31mred line" in text


def test_every_verdict_has_a_word() -> None:
    found = explanation(*(verdict("a", kind) for kind in VerdictKind))
    assert len(cells(found)) == len(VerdictKind)
