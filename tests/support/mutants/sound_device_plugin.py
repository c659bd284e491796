"""A device plugin without devices that keeps the whole contract, as a process of its own.

    python -m tests.support.mutants.sound_device_plugin --directory D --cdi C

It has four devices, one of them unhealthy; as many as the file `D/../devices` says, once that exists. It uses every
part of the API: topology, preferences, PreStartContainer, device nodes, mounts, annotations and a CDI spec.
`faulty_device_plugin` is this one with a bug in it.
"""

import argparse
import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from devlet.kit import facts
from devlet.kit.parts import running
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.devices import UNHEALTHY, Device, Grant, Options
from devlet.testing.fake_device_plugin import FakeDevicePlugin, numbered

__all__ = ["RESOURCE", "SoundDevicePlugin", "arguments", "run"]

RESOURCE = "example.com/led"
_LOOK = 0.05  # seconds between two looks at the file


class SoundDevicePlugin(FakeDevicePlugin):
    """`known` are the ids that it grants. It follows the file while `following` runs."""

    def __init__(self, directory: Path, cdi: Path, *, registry: Path | None = None, resource: str = RESOURCE) -> None:
        directory = registry or directory  # a kubelet that starts clears the other
        everything = Options(pre_start=True, preferred_allocation=True)
        self.count_file = directory.parent / "devices"
        devices = _devices(self._count())
        super().__init__(directory, resource, devices, options=everything, registry=registry, follow=registry is None)
        self.cdi = cdi
        self.grant = self.granted

    _last = 4

    def granted(self, ids: Sequence[str]) -> Grant:
        """LookupError, which is an error for the caller, if one is not known."""
        if unknown := [id for id in ids if id not in {device.id for device in self.devices}]:
            raise LookupError(f"no such device: {', '.join(unknown)}")
        return Grant(
            env={"LEDS": ",".join(sorted(ids))},
            devices=tuple(DeviceNode(f"/dev/{id}", "/dev/null", "rw") for id in ids),
            mounts=(Mount("/etc/leds", "/etc/passwd", True),),
            annotations={"example.com/leds": ",".join(sorted(ids))},
            cdi_devices=tuple(f"{RESOURCE}={id}" for id in ids),
        )

    def write_spec(self) -> None:
        """Replaced at once: a runtime may read it at any time."""
        self.cdi.mkdir(parents=True, exist_ok=True)
        path = self.cdi / "example.com-led.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(self.spec()))
        draft.rename(path)

    def spec(self) -> dict[str, Any]:
        edits = {"deviceNodes": [{"path": "/dev/cdi-led", "hostPath": "/dev/null"}]}
        devices = [{"name": device.id, "containerEdits": edits} for device in self.devices]
        return {"cdiVersion": "0.5.0", "kind": RESOURCE, "devices": devices}

    async def following(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Look at the file, again and again."""
        task_status.started()
        while True:
            if (count := self._count()) != len(self.devices):
                self._last = count
                self.change(_devices(count))
            await anyio.sleep(_LOOK)

    def change(self, devices: Sequence[Device]) -> None:
        self.set_devices(devices)
        self.write_spec()

    def _count(self) -> int:
        text = self.count_file.read_text().strip() if self.count_file.exists() else ""
        return int(text) if text else self._last  # it may be half written


def _devices(count: int) -> tuple[Device, ...]:
    *most, last = numbered(count, (0,))
    return (*most, Device(last.id, UNHEALTHY, last.nodes))


async def run(make: Callable[[], SoundDevicePlugin]) -> None:
    """Until SIGTERM."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        plugin = make()
        plugin.write_spec()
        async with plugin, running(plugin.following):
            async for _ in signals:
                break


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A device plugin without devices.")
    parser.add_argument("--directory", type=Path, required=True, help="where its socket and kubelet.sock are")
    parser.add_argument("--cdi", type=Path, required=True, help="where its CDI spec goes")
    parser.add_argument("--registry", type=Path, help="be found in this directory instead of registering")
    return parser


def main(words: Sequence[str] | None = None) -> None:
    given = arguments().parse_args(words)
    facts.configure("text")
    anyio.run(run, lambda: SoundDevicePlugin(given.directory, given.cdi, registry=given.registry))


if __name__ == "__main__":
    main()
