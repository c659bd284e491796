"""Each check finds the bug that it is for."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from devlet.sanity.check import Check, Failed
from devlet.sanity.checks.device_plugin import lists
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as pb

if TYPE_CHECKING:
    from tests.unit.sanity.checks.conftest import IsFound
    from tests.unit.sanity.conftest import Runs

pytestmark = [pytest.mark.anyio, pytest.mark.long]

CHECKS = [pytest.param(check, id=check.id) for check in lists.checks]


@pytest.mark.parametrize("check", CHECKS)
async def test_the_bug_is_found(check: Check[Any], faulty: "Runs", is_found: "IsFound") -> None:
    is_found(await faulty(check))


class Plugin:
    resource = "v.com/led"

    async def devices(self) -> list[pb.Device]:
        return [pb.Device(ID=f"dev-{number}") for number in (*range(100_000), 7)]


async def test_many_devices_are_compared_in_no_time() -> None:
    [check] = [check for check in lists.checks if check.id == "DP-LIST-4"]
    found = await check.run(cast(Any, SimpleNamespace(plugins=[Plugin()])))
    assert found == Failed("listed more than once: dev-7")
