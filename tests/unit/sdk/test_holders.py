import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from devlet.errors import InUse, InvalidInput, Unavailable
from devlet.objects.documents import view
from devlet.objects.types.claim import DeviceResult, ResourceClaim
from devlet.sdk.holders import Holders
from devlet.sdk.values import Claim, ClaimRef

pytestmark = pytest.mark.anyio


def claim(name: str, *devices: str, **more: Any) -> Claim:
    results = tuple(view(DeviceResult, {"request": "led", "pool": "n1", "device": each, **more}) for each in devices)
    return Claim(ClaimRef("default", name, f"{name}-0000"), results, (), view(ResourceClaim, {}), {})


@pytest.fixture
def holders(root: Path) -> Holders:
    return Holders(root / "held")


async def test_a_device_that_another_claim_has_is_refused_until_that_is_released(holders: Holders) -> None:
    await holders.take(claim("first", "red", "green"))
    with pytest.raises(InUse) as refused:
        await holders.take(claim("second", "green", "blue"))
    assert "n1/green is prepared for claim default/first with UID first-0000" in str(refused.value)
    assert f"remove {holders.directory}/first-0000.json" in str(refused.value)
    await holders.take(claim("third", "blue"))  # a refused claim has taken nothing
    await holders.release("first-0000")
    await holders.take(claim("second", "green"))


async def test_a_claim_may_take_its_devices_again_or_others_instead(holders: Holders) -> None:
    await holders.take(claim("first", "red"))
    await holders.take(claim("first", "red"))
    await holders.take(claim("first", "green"))
    await holders.take(claim("second", "red"))


async def test_a_device_of_that_name_in_another_pool_is_another_device(holders: Holders) -> None:
    await holders.take(claim("first", "red"))
    await holders.take(claim("second", "red", pool="n2"))


async def test_shares_of_a_device_are_distinguished(holders: Holders) -> None:
    await holders.take(claim("first", "red", shareID="s-1"))
    await holders.take(claim("second", "red", shareID="s-2"))
    with pytest.raises(InUse, match="n1/red/s-1"):
        await holders.take(claim("third", "red", shareID="s-1"))


async def test_admin_access_is_neither_refused_nor_in_the_way(holders: Holders) -> None:
    await holders.take(claim("first", "red"))
    await holders.take(claim("monitor", "red", "green", adminAccess=True))
    await holders.take(claim("second", "green"))


async def test_what_was_taken_survives_a_restart(holders: Holders) -> None:
    await holders.take(claim("first", "red"))
    with pytest.raises(InUse):
        await Holders(holders.directory).take(claim("second", "red"))


async def test_one_of_two_claims_that_come_at_once_gets_it(holders: Holders) -> None:
    got: list[str] = []

    async def take(name: str) -> None:
        try:
            await holders.take(claim(name, "red"))
        except InUse:
            return
        got.append(name)

    async with anyio.create_task_group() as tasks:
        for name in ("first", "second", "third"):
            tasks.start_soon(take, name)
    assert len(got) == 1


async def test_a_claim_that_has_nothing_can_be_released(holders: Holders) -> None:
    await holders.release("nobody-0000")
    await holders.take(claim("first", "red"))
    await holders.release("nobody-0000")


async def test_a_released_claim_leaves_no_file_behind_not_even_an_unfinished_one(holders: Holders) -> None:
    await holders.take(claim("first", "red"))
    (holders.directory / ".first-0000.json.x.tmp").touch()
    await holders.release("first-0000")
    assert list(holders.directory.iterdir()) == []


async def test_a_damaged_file_does_not_block_other_claims(holders: Holders) -> None:
    await holders.take(claim("first", "red"))
    (holders.directory / "first-0000.json").write_text("{")
    await holders.take(claim("second", "red"))
    await holders.take(claim("first", "green"))
    assert json.loads((holders.directory / "first-0000.json").read_text())["devices"] == ["n1/green"]


async def test_a_uid_that_would_leave_the_directory_is_refused(holders: Holders) -> None:
    with pytest.raises(InvalidInput):
        await holders.release("../first")


async def test_an_invalid_directory_is_reported(root: Path) -> None:
    (root / "held").touch()
    with pytest.raises(Unavailable, match="cannot be"):
        await Holders(root / "held").take(claim("first", "red"))
    await Holders(root / "held").release("first-0000")
