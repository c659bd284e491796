from pathlib import Path

from devlet.kit.clock import SystemClock
from devlet.node.devices.manager import DeviceManager
from devlet.node.pods.parts import Devices, Settings


def test_sixty_four_pods_are_admitted_at_once() -> None:
    assert Settings().at_once >= 64


def test_the_device_manager_is_what_workers_need(root: Path) -> None:
    devices: Devices = DeviceManager(root, SystemClock())
    assert isinstance(devices, DeviceManager)
