from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from devlet.errors import Unavailable
from devlet.examples.serial_ports import Attached, Attachments, SerialDriver, SerialPlugin, attached_usb
from devlet.objects.identifiers import DeviceName
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.sdk import DraOptions, PluginOptions
from devlet.sdk.slices.resources import wanted
from devlet.sdk.usb import Roots
from devlet.sdk.values import HEALTHY, UNHEALTHY, Claim, ClaimRef, Device, Pool
from tests.support.fake_usb import FakeUsb

pytestmark = pytest.mark.anyio

ADAPTER = "0403-6001-a50285bi-if00"
VARIABLE = "DEVICE_0403_6001_A50285BI_IF00"


@pytest.fixture
def usb(root: Path) -> FakeUsb:
    usb = FakeUsb(root)
    usb.plug("2", "0403", "6001", serial="A50285BI", label="FT232R", tty="ttyUSB0")
    usb.plug("3", "1209", "0001", serial="N0001", label="x" * 100)
    return usb


def claim(device: str) -> Claim:
    return Claim(ClaimRef("default", "c", "u"), (DeviceResult(device=DeviceName(device)),), (), ResourceClaim(), {})


async def listed(attachments: Attachments) -> Sequence[Device]:
    async with aclosing(SerialDriver(attachments).devices()) as lists:  # type: ignore[type-var]
        return await anext(lists)


async def test_ports_are_listed_by_the_adapters_identity(usb: FakeUsb) -> None:
    (port,) = await listed(Attachments(usb.roots))
    assert (port.name, port.attributes["vendor"], port.attributes["label"]) == (ADAPTER, "0403", "FT232R")


async def test_usb_devices_are_listed_with_and_without_ports(usb: FakeUsb) -> None:
    adapter, stick = await listed(Attachments(usb.roots, look=attached_usb))
    assert (adapter.name, stick.name) == ("0403-6001-a50285bi", "1209-0001-n0001")
    assert stick.attributes["label"] == "x" * 64


async def test_a_label_that_is_too_long_does_not_prevent_publishing(usb: FakeUsb) -> None:
    usb.plug("4", "1a86", "7523", serial="x1", label="江苏沁恒股份有限公司 USB转串口控制器模块适配器")
    devices = await listed(Attachments(usb.roots, look=attached_usb))
    assert len(devices) == 3 and wanted({"n1": Pool(devices)}, "serial.example.com", "n1")


async def test_a_port_without_usb_has_no_attributes(root: Path) -> None:
    (root / "dev/serial/by-id").mkdir(parents=True)
    (root / "dev/ttyS0").touch()
    (root / "dev/serial/by-id/built-in").symlink_to("../../ttyS0")
    (port,) = await listed(Attachments(Roots(root / "sys", root / "dev")))
    assert (port.name, port.attributes) == ("built-in", {})


async def test_only_matching_devices_are_offered(usb: FakeUsb) -> None:
    assert list(await Attachments(usb.roots, "1209-*", attached_usb).now()) == ["1209-0001-n0001"]


async def test_a_claim_gets_the_current_path(usb: FakeUsb) -> None:
    driver = SerialDriver(Attachments(usb.roots))
    (before,) = await driver.prepare(claim(ADAPTER))
    usb.unplug("2")
    with pytest.raises(Unavailable, match=f"{ADAPTER} is not plugged in"):
        await driver.prepare(claim(ADAPTER))
    usb.plug("4", "0403", "6001", serial="A50285BI", tty="ttyUSB5")
    (after,) = await driver.prepare(claim(ADAPTER))
    assert (before.env, after.env) == (
        {VARIABLE: str(usb.roots.dev / "ttyUSB0")},
        {VARIABLE: str(usb.roots.dev / "ttyUSB5")},
    )
    assert after.devices == [after.env[VARIABLE]]


async def started(author: type[SerialDriver | SerialPlugin], usb: FakeUsb, root: Path) -> Mapping[str, Attached]:
    one = author(Attachments(usb.roots, "0403-*"))
    if isinstance(one, SerialDriver):
        await one.setup(DraOptions("n1", kubelet=root))
    else:
        await one.setup(PluginOptions(root / "device-plugins"))
    return await one.attachments.now()


@pytest.mark.parametrize("author", [SerialDriver, SerialPlugin])
async def test_a_stick_keeps_its_name_if_another_with_its_serial_number_appears_during_a_restart(
    usb: FakeUsb, root: Path, author: type[SerialDriver | SerialPlugin]
) -> None:
    before = await started(author, usb, root)
    usb.plug("1", "0403", "6001", serial="A50285BI", tty="ttyUSB7")
    after = await started(author, usb, root)
    assert after[ADAPTER].path == before[ADAPTER].path == str(usb.roots.dev / "ttyUSB0")
    assert {Path(each.path).name for each in after.values()} == {"ttyUSB0", "ttyUSB7"}


async def test_a_directory_that_cannot_be_created_is_named_in_the_error(usb: FakeUsb, root: Path) -> None:
    (root / "plugins").touch()
    with pytest.raises(Unavailable, match=r"plugins/serial.example.com cannot be created: Not a directory"):
        await SerialDriver(Attachments(usb.roots)).setup(DraOptions("n1", kubelet=root))


async def test_an_unplugged_device_is_unhealthy_until_it_is_back(usb: FakeUsb) -> None:
    plugin = SerialPlugin(Attachments(usb.roots, only="0403-*"))
    async with aclosing(plugin.devices()) as lists:  # type: ignore[type-var]
        assert [(each.id, each.health) for each in await anext(lists)] == [(ADAPTER, HEALTHY)]
        usb.unplug("2")
        while [each.health for each in await anext(lists)] != [UNHEALTHY]:
            pass
        usb.plug("2", "0403", "6001", serial="A50285BI", tty="ttyUSB0")
        while [each.health for each in await anext(lists)] != [HEALTHY]:
            pass


async def test_a_container_gets_all_its_devices(usb: FakeUsb) -> None:
    usb.plug("5", "0403", "6001", serial="B1", tty="ttyUSB1")
    grant = await SerialPlugin(Attachments(usb.roots)).allocate([ADAPTER, "0403-6001-b1-if00"])
    paths = [str(usb.roots.dev / "ttyUSB0"), str(usb.roots.dev / "ttyUSB1")]
    assert grant.devices == paths
    assert grant.env == {VARIABLE: paths[0], "DEVICE_0403_6001_B1_IF00": paths[1]}


@pytest.mark.parametrize(("author", "flag"), [(SerialDriver, "--driver-name"), (SerialPlugin, "--resource")])
async def test_flags_set_its_name_and_devices(author: type[SerialDriver | SerialPlugin], flag: str) -> None:
    one, parser = author(), ArgumentParser()
    one.arguments(parser)
    one.configure(parser.parse_args([flag, "example.com/x", *"--list usb --only a* --sysfs /s --dev /d".split()]))
    assert (one.attachments.roots, one.attachments.only) == (Roots(Path("/s"), Path("/d")), "a*")
    assert one.attachments.look is attached_usb
    assert (one.name if isinstance(one, SerialDriver) else one.resource) == "example.com/x"
