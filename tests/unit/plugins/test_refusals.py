from pathlib import Path

from devlet.plugins.refusals import KEPT, MAX_TEXT, Refusal, Refusals
from devlet.testing.fake_clock import FakeClock

SOCKET = Path("/r/a.sock")


def test_a_refusal_is_reported_once_per_reason() -> None:
    reported: list[Refusal] = []
    refusals = Refusals(FakeClock(), reported.append)
    assert refusals.add("DevicePlugin", "a.com/x", SOCKET, "bad version")
    assert not refusals.add("DevicePlugin", "a.com/x", SOCKET, "bad version")
    assert refusals.add("DevicePlugin", "a.com/x", SOCKET, "no socket")
    assert [each.message for each in reported] == ["bad version", "no socket"]
    assert [each.message for each in refusals.records()] == ["no socket"]


def test_a_refusal_is_forgotten_when_the_plugin_registers() -> None:
    refusals = Refusals(FakeClock())
    refusals.add("DevicePlugin", "a.com/x", SOCKET, "bad version")
    refusals.add("DRAPlugin", "a.com/x", SOCKET, "bad version")
    refusals.remove("DevicePlugin", "a.com/x")
    assert [each.type for each in refusals.records()] == ["DRAPlugin"]


def test_a_refusal_is_forgotten_when_its_socket_is_removed() -> None:
    refusals = Refusals(FakeClock())
    refusals.add("DRAPlugin", "x", SOCKET, "bad version")
    refusals.add("DRAPlugin", "", Path("/r/b.sock"), "no name")
    refusals.remove_socket(SOCKET)
    assert [each.socket for each in refusals.records()] == [Path("/r/b.sock")]


def test_plugins_without_a_name_are_identified_by_their_sockets() -> None:
    refusals = Refusals(FakeClock())
    refusals.add("DRAPlugin", "", SOCKET, "no name")
    refusals.add("DRAPlugin", "", Path("/r/b.sock"), "no name")
    assert len(refusals.records()) == 2


def test_refusals_are_limited_in_number_and_size() -> None:
    refusals = Refusals(FakeClock())
    for number in range(KEPT + 10):
        refusals.add("DevicePlugin", f"a.com/{number}" + "x" * 5_000, SOCKET, "y" * 5_000)
    found = refusals.records()
    assert len(found) == KEPT
    assert found[-1].name.startswith(f"a.com/{KEPT + 9}x")
    assert {(len(each.name), len(each.message)) for each in found} == {(MAX_TEXT, MAX_TEXT)}
