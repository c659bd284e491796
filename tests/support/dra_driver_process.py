"""A fake DRA driver as a process, seen from the test that started it: what it is to do, what it was asked, what it has.

    async with dra_driver_process(root, "gpu.example.com", "--health") as driver:
        await driver.order(faults=(Fault("hang", PREPARE, after=True),))     # returns when it is in force
        await driver.until_asked(PREPARE)
        driver.program.send_signal(signal.SIGKILL)
        assert "uid-of-the-claim" in driver.prepared

Orders and calls are files below the root which a later process of the same driver and instance finds again: the orders
are in force from its start, and its calls come after those of the life before.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from devlet.kit.processes import Ready, RunningProcess, process
from devlet.objects.identifiers import DriverName
from devlet.testing import dra_orders, warm_start
from devlet.testing.dra_orders import Fault, Orders
from devlet.testing.dra_script import Call
from devlet.testing.fake_dra_claims import FakeDraClaims
from devlet.testing.fake_dra_program import ORDERS_TAKEN, SERVING
from devlet.testing.waiting import until

__all__ = ["DraDriverProcess", "Fault", "Orders", "dra_driver_process"]


class DraDriverProcess:
    """What `dra_driver_process` yields."""

    def __init__(self, root: Path, name: str, instance: str, cdi_directory: Path) -> None:
        self.name = name
        self.directory = root / "plugins" / name
        self.prepared = FakeDraClaims(DriverName(name), cdi_directory, self.directory / "claims")
        self.program: RunningProcess
        suffix = f"-{instance}" if instance else ""
        self.orders_file = self.directory / f"orders{suffix}.json"
        self.calls_file = self.directory / f"calls{suffix}.jsonl"
        self.log = root / f"{name}{suffix}.log"

    async def order(self, **orders: Any) -> None:
        """Replace what it was told before; the arguments are those of `Orders`. In force when it returns, or, if the
        process has ended, from the start of the next one."""
        number = 1 + (dra_orders.read(self.orders_file).number if self.orders_file.exists() else 0)
        dra_orders.write(self.orders_file, Orders(number=number, **orders))

        async def taken() -> list[str]:
            return [call.text for call in self._lines() if call.method == ORDERS_TAKEN]

        if self.program.returncode is None:
            await until(taken, lambda numbers: str(number) in numbers)

    @property
    def calls(self) -> list[Call]:
        """In the order in which they arrived, those of earlier lives first."""
        return [call for call in self._lines() if call.method != ORDERS_TAKEN]

    def asked(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method == method]

    async def until_asked(self, method: str, times: int = 1) -> list[Call]:
        """Wait until it was called so many times, in all its lives."""

        async def asked() -> list[Call]:
            return self.asked(method)

        return await until(asked, lambda calls: len(calls) >= times)

    def _lines(self) -> list[Call]:
        if not self.calls_file.exists():
            return []
        return [msgspec.json.decode(line, type=Call) for line in _complete(self.calls_file.read_bytes())]


@asynccontextmanager
async def dra_driver_process(
    root: Path, name: str = "gpu.example.com", *flags: str, instance: str = "", cdi_directory: Path | None = None
) -> AsyncIterator[DraDriverProcess]:
    """Its sockets listen on entry, unless earlier orders say otherwise; it may not be registered yet. `flags` are more
    of `python -m devlet.testing.fake_dra_driver`."""
    cdi = cdi_directory or root / "cdi"
    driver = DraDriverProcess(root, name, instance, cdi)
    driver.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    argv: list[str | Path] = [sys.executable, "-m", "devlet.testing.fake_dra_driver", "--root", root]
    argv += ["--driver", name, "--cdi-dir", cdi, "--orders", driver.orders_file, "--calls", driver.calls_file]
    argv += [*(["--instance", instance] if instance else []), *flags]
    started = process(argv, log=driver.log, name=f"driver {name}", ready=_serving(driver.log), start=warm_start.start)
    async with started as driver.program:
        yield driver


def _serving(log: Path) -> Ready:
    """By what the log gets from now on: an earlier life's line does not count."""
    before = log.stat().st_size if log.exists() else 0

    async def seen(_: RunningProcess) -> bool:
        return SERVING.encode() in (await anyio.Path(log).read_bytes())[before:]

    return seen


def _complete(content: bytes) -> list[bytes]:
    """A line that is being written, or was when its process died, has no end."""
    return content.split(b"\n")[:-1]
