from datetime import UTC, datetime
from typing import Any

from devlet.alloc.explain.report import NodeReport, RequestReport, Verdict, VerdictKind
from devlet.cli.views.allocated import lines, overlap_lines
from devlet.objects.claims.overlaps import Overlap
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName

NOW = datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC)
CLAIM: dict[str, Any] = {
    "metadata": {"name": "c", "namespace": "ns"},
    "status": {
        "allocation": {
            "allocationTimestamp": "2026-01-02T03:04:05Z",
            "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x0"}]},
        },
        "reservedFor": [{"resource": "pods", "name": "train"}],
    },
}


def report(*kinds: VerdictKind) -> NodeReport:
    verdicts = tuple(
        Verdict(DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName(f"x{i}")), kind)
        for i, kind in enumerate(kinds)
    )
    return NodeReport("n1", "fit", "", (RequestReport("ns/c", "r", "1 device", 1, verdicts),))


def test_it_says_where_since_when_for_whom_and_which_devices() -> None:
    text = list(lines([CLAIM], [], NOW))
    assert text == [
        "",
        "claim ns/c: allocated since 2026-01-02T03:04:05Z (60s ago), on node: any",
        "  used by: pods/train",
        "  REQUEST   DRIVER   POOL   DEVICE",
        "  r         d        p      x0",
    ]


def test_devices_that_would_do_as_well_were_passed_over() -> None:
    found = report(VerdictKind.FREE, VerdictKind.CHOSEN, VerdictKind.FREE, VerdictKind.IN_USE)
    text = list(lines([CLAIM], [found], NOW))
    assert text[-3:] == [
        "Other free devices that match:",
        "  d/p/x1 for request r",
        "  d/p/x2 for request r",
    ]


def test_many_of_them_are_counted_unless_the_wide_form_is_asked_for() -> None:
    found = report(*[VerdictKind.FREE] * 20)
    assert list(lines([CLAIM], [found], NOW))[-1] == "  and 11 more: use -o wide to see them"
    assert list(lines([CLAIM], [found], NOW, wide=True))[-1] == "  d/p/x19 for request r"


def test_an_unused_claim_says_so() -> None:
    unused = {**CLAIM, "status": {"allocation": {"devices": {}}}}
    assert "  used by: <none>" in list(lines([unused], [], NOW))


def test_each_overlap_is_a_sentence_and_what_to_do_follows_once() -> None:
    claims = (("default", "a"), ("default", "b"))
    found = [*overlap_lines([Overlap("device d", "", claims), Overlap("device e", "memory", claims)])]
    assert found[:4] == [
        "",
        "Overlaps:",
        "  device d is allocated to two claims: default/a and default/b",
        "  claims default/a and default/b together hold more memory of device e than it has",
    ]
    assert sum("delete the pods of all but one" in line for line in found) == 1


def test_names_cannot_move_the_cursor() -> None:
    found = "\n".join(overlap_lines([Overlap("device \x1b[2J", "", (("n", "a"), ("n", "b")))]))
    assert "\x1b" not in found
