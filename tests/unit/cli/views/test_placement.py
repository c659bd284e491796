import msgspec

from devlet.cli.simulation import Placement
from devlet.cli.views.placement import lines
from devlet.objects.types.claim import ResourceClaim


def claim(*results: dict[str, object]) -> ResourceClaim:
    full = [{"request": "r", "driver": "d", "pool": "p"} | result for result in results]
    return msgspec.convert({"status": {"allocation": {"devices": {"results": full}}}}, ResourceClaim)


PLACED = Placement("ns", "pod/a", "n1", (claim({"device": "x"}, {"device": "y"}), claim({"device": "z"})))


def test_devices_of_all_claims_are_in_one_cell() -> None:
    assert [line.split() for line in lines([PLACED])] == [["NAME", "NODE", "DEVICES"], ["pod/a", "n1", "x,y,z"]]


def test_a_cause_and_several_namespaces_have_columns() -> None:
    other = Placement("other", "pod/b", cause="too\nmany")
    header, first, second = lines([PLACED, other])
    assert header.split() == ["NAMESPACE", "NAME", "NODE", "DEVICES", "CAUSE"]
    assert first.split() == ["ns", "pod/a", "n1", "x,y,z"]
    assert second.split() == ["other", "pod/b", "<none>", "<none>", "too..."]


def test_the_header_can_be_left_out() -> None:
    assert len(list(lines([PLACED], headers=False))) == 1


def test_wide_devices_are_complete() -> None:
    shared = claim(
        {"device": "x", "shareID": "1", "consumedCapacity": {"mem": "1Gi"}}, {"device": "y", "adminAccess": True}
    )
    (line,) = lines([Placement("ns", "pod/a", "n1", (shared,))], wide=True, headers=False)
    assert line.endswith("r=d/p/x(mem=1Gi),r=d/p/y(admin)")
