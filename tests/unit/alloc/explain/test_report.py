"""The values of explanations."""

from devlet.alloc.explain.report import RequestReport, Verdict, VerdictKind
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName

DEVICE = DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName("x"))


def test_verdicts_are_counted_with_devices_elsewhere() -> None:
    verdicts = (
        Verdict(DEVICE, VerdictKind.FREE),
        Verdict(DEVICE, VerdictKind.FREE),
        Verdict(DEVICE, VerdictKind.TAINT),
    )
    report = RequestReport("default/c", "r", "1 device", 1, verdicts, elsewhere=3)
    assert report.counts == {VerdictKind.FREE: 2, VerdictKind.TAINT: 1, VerdictKind.OTHER_NODE: 3}


def test_kinds_that_do_not_occur_are_not_counted() -> None:
    assert list(RequestReport("default/c", "r", "1 device", 1, ()).counts) == []
