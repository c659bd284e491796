from argparse import ArgumentParser
from contextlib import aclosing
from pathlib import Path

import pytest

from devlet.errors import InvalidInput, NotFound
from devlet.examples.dev_nodes import File, Files, NodeDriver, NodePlugin, parse
from devlet.objects.identifiers import DeviceName
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.sdk.slices.resources import wanted
from devlet.sdk.values import HEALTHY, UNHEALTHY, Capacity, Claim, ClaimRef, DeviceNode, Pool

pytestmark = pytest.mark.anyio


def test_a_flag_has_a_name_a_path_and_optional_permissions() -> None:
    assert parse("zero=/dev/zero") == File("zero", Path("/dev/zero"), "rw")
    assert parse("tun=/dev/net/tun:rwm") == File("tun", Path("/dev/net/tun"), "rwm")


@pytest.mark.parametrize("text", ["zero", "=/dev/zero", "zero=dev", "Zero=/dev/zero", "z=/dev/z:", "z=/dev/z:x", ""])
def test_an_invalid_flag_is_refused_and_the_error_quotes_it(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"--device {text}: "):
        parse(text)


async def test_a_file_is_offered_while_it_exists(root: Path) -> None:
    driver = NodeDriver(Files([File("here", Path("/dev/zero")), File("later", root / "later")]))
    async with aclosing(driver.devices()) as lists:  # type: ignore[type-var]
        (device,) = await anext(lists)
        assert (device.name, device.attributes, device.capacity) == ("here", {"path": "/dev/zero"}, {})
        (root / "later").touch()
        while [each.name for each in await anext(lists)] != ["here", "later"]:
            pass


async def test_a_path_that_is_too_long_does_not_prevent_publishing(root: Path) -> None:
    (file := root / ("é" * 50)).touch()
    async with aclosing(NodeDriver(Files([File("deep", file)])).devices()) as lists:  # type: ignore[type-var]
        devices = await anext(lists)
    assert wanted({"n1": Pool(devices)}, "dev.example.com", "n1")


async def test_a_device_for_several_users_has_a_capacity_of_one_for_each() -> None:
    driver = NodeDriver(Files([File("zero", Path("/dev/zero"))], users=3))
    async with aclosing(driver.devices()) as lists:  # type: ignore[type-var]
        (device,) = await anext(lists)
    places = device.capacity["users"]
    assert device.allow_multiple_allocations and isinstance(places, Capacity) and places.value == 3


async def test_a_claim_gets_the_file() -> None:
    driver = NodeDriver(Files([File("zero", Path("/dev/zero"), "r"), File("gone", Path("/dev/not-there"))]))

    def claim(device: str) -> Claim:
        return Claim(ClaimRef("default", "c", "u"), (DeviceResult(device=DeviceName(device)),), (), ResourceClaim(), {})

    (prepared,) = await driver.prepare(claim("zero"))
    assert prepared.devices == [DeviceNode("/dev/zero", permissions="r")]
    with pytest.raises(NotFound, match="gone: /dev/not-there does not exist"):
        await driver.prepare(claim("gone"))
    with pytest.raises(NotFound, match="other is no longer one of the files of this driver"):
        await driver.prepare(claim("other"))


async def test_a_plugin_has_a_device_for_each_user_and_a_container_each_file_once(root: Path) -> None:
    plugin = NodePlugin(Files([File("a-b", Path("/dev/zero")), File("later", root / "later")], users=2))
    async with aclosing(plugin.devices()) as lists:  # type: ignore[type-var]
        assert [(each.id, each.health) for each in await anext(lists)] == [
            ("a-b-0", HEALTHY),
            ("a-b-1", HEALTHY),
            ("later-0", UNHEALTHY),
            ("later-1", UNHEALTHY),
        ]
    assert (await plugin.allocate(["a-b-0", "a-b-1"])).devices == [DeviceNode("/dev/zero")]


@pytest.mark.parametrize(("author", "flag"), [(NodeDriver, "--driver-name"), (NodePlugin, "--resource")])
async def test_flags_set_its_name_and_files(author: type[NodeDriver | NodePlugin], flag: str) -> None:
    one, parser = author(), ArgumentParser()
    one.arguments(parser)
    one.configure(parser.parse_args([flag, "example.com/x", "--device", "zero=/dev/zero", "--users", "2"]))
    assert one.files.all == {"zero": File("zero", Path("/dev/zero"))} and one.files.users == 2
    assert (one.name if isinstance(one, NodeDriver) else one.resource) == "example.com/x"
    for wrong in ([], ["--device", "a=/a", "--device", "a=/b"], ["--device", "a=/a", "--users", "0"]):
        with pytest.raises(InvalidInput):
            one.configure(parser.parse_args(wrong))
