import pytest

from devlet.node.devices.releases import NoHooks, Release
from devlet.objects.identifiers import ContainerName, DeviceID, PodUID, ResourceName


@pytest.mark.anyio
async def test_without_hooks_devices_are_free_at_once() -> None:
    await NoHooks().run(Release(ResourceName("v/r"), (DeviceID("d"),), PodUID("u"), ContainerName("c")))
