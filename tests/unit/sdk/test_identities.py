import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from devlet.errors import StateCorrupt
from devlet.objects.names import dns_label
from devlet.sdk.identities import Identities, slug
from devlet.sdk.usb import UsbDevice, usb_devices
from tests.support.fake_usb import FakeUsb

ONE, TWO = ["serial", "port-1"], ["serial", "port-2"]


def test_a_newcomer_gets_the_best_name_that_is_free() -> None:
    identities = Identities()
    assert identities.of({"a": ONE}) == {"a": "serial"}
    assert identities.of({"a": ONE, "b": TWO}) == {"a": "serial", "b": "port-2"}


def test_newcomers_that_want_the_same_name_get_the_next() -> None:
    assert Identities().of({"a": ONE, "b": TWO}) == {"a": "port-1", "b": "port-2"}


def test_a_name_stays_when_a_better_one_becomes_free() -> None:
    identities = Identities()
    identities.of({"a": ONE, "b": TWO})
    assert identities.of({"b": TWO}) == {"b": "port-2"}


def test_a_device_that_returns_is_a_new_device() -> None:
    identities = Identities()
    identities.of({"a": ONE})
    identities.of({"b": TWO})
    assert identities.of({"a": ONE, "b": TWO}) == {"a": "port-1", "b": "serial"}


def test_where_all_names_are_taken_there_is_a_number() -> None:
    identities = Identities()
    identities.of({"a": ["x"]})
    assert identities.of({"a": ["x"], "b": ["x"]}) == {"a": "x", "b": "x-2"}
    longest = "y" * 63
    made = Identities().of({"a": [longest], "b": [longest]})
    assert len(set(made.values())) == 2 and not any(dns_label(name) for name in made.values())


def test_names_are_the_same_after_a_restart(root: Path) -> None:
    file = root / "identities.json"
    Identities(file).of({"a": ONE})
    assert Identities(file).of({"a": ONE, "b": TWO}) == {"a": "serial", "b": "port-2"}


def test_nothing_is_written_while_nothing_comes_or_goes(root: Path) -> None:
    file = root / "identities.json"
    identities = Identities(file)
    identities.of({"a": ONE})
    before = file.stat().st_ino
    identities.of({"a": ONE})
    assert file.stat().st_ino == before


def test_an_instance_sees_what_another_has_named(root: Path) -> None:
    old, new = Identities(root / "identities.json"), Identities(root / "identities.json")
    new.of({})
    old.of({"a": ONE})
    assert new.of({"a": ONE, "b": TWO}) == old.of({"a": ONE, "b": TWO}) == {"a": "serial", "b": "port-2"}


def test_a_damaged_file_is_reported_and_known_names_stay(root: Path) -> None:
    file = root / "identities.json"
    identities = Identities(file)
    identities.of({"a": ONE})
    file.write_text("{")
    with pytest.raises(StateCorrupt, match="kept as"):
        identities.of({"a": ONE, "b": TWO})
    assert identities.of({"a": ONE, "b": TWO}) == {"a": "serial", "b": "port-2"}
    assert Identities(file).of({"a": ONE, "b": TWO}) == {"a": "serial", "b": "port-2"}


@pytest.mark.parametrize("serial", ["C3", "A1"])
def test_a_replaced_stick_is_a_new_device(root: Path, serial: str) -> None:
    """Also where it has the number of the one before it."""
    usb, file = FakeUsb(root), root / "identities.json"
    usb.plug("1", "0403", "6001", serial="A1")
    usb.plug("2", "0403", "6001", serial="A1")
    usb_devices(usb.roots, Identities(file))
    usb.unplug("2")
    folder = usb.roots.sysfs / "bus/usb/devices/1-1"
    number = (folder / "devnum").read_text()
    usb.unplug("1")
    usb.plug("1", "0403", "6001", serial=serial)
    if serial != "A1":
        (folder / "devnum").write_text(number)
    (found,) = usb_devices(usb.roots, Identities(file))
    assert found.identity == slug("0403", "6001", serial)


class Sticks(RuleBasedStateMachine):
    """Sticks of two serial numbers, one that has the name of a port for a number, and some without any, come and go
    while a driver looks, or while it is not running."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="dv"))
        self.usb = FakeUsb(self.root)
        self.identities = Identities(self.root / "identities.json")
        self.plugged: set[str] = set()
        self.names: dict[str, str] = {}  # of those that were there when somebody looked, and are still

    def teardown(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    @rule(port=st.sampled_from("1234"), serial=st.sampled_from(["A1", "B2", "", "port-0000-00-14-0-bus0-1"]))
    def plug(self, port: str, serial: str) -> None:
        if port not in self.plugged:
            self.usb.plug(port, "0403", "6001", serial=serial)
            self.plugged.add(port)

    @precondition(lambda self: self.plugged)
    @rule(data=st.data())
    def unplug(self, data: st.DataObject) -> None:
        port = data.draw(st.sampled_from(sorted(self.plugged)))
        self.usb.unplug(port)
        self.plugged.remove(port)
        self.names.pop(port, None)

    @rule()
    def restart(self) -> None:
        self.identities = Identities(self.root / "identities.json")

    @rule()
    def look(self) -> None:
        found = {_port(device): device.identity for device in usb_devices(self.usb.roots, self.identities)}
        assert found.keys() == self.plugged
        assert len(set(found.values())) == len(found)
        assert self.names.items() <= found.items()
        self.names = found

    @invariant()
    def names_differ(self) -> None:
        assert len(set(self.names.values())) == len(self.names)


def _port(device: UsbDevice) -> str:
    return device.name.removeprefix("1-")


TestSticks = Sticks.TestCase
