"""Orders for a fake DRA driver in a process of its own, in a file that may be replaced at any time.

    write(path, Orders(faults=(Fault("fail", PREPARE, text="not now", times=2),)))

A driver with `--orders FILE` reads the file at its start and whenever a new file is renamed into place. A new file
replaces all previous orders: faults that it does not mention end, and calls that hang are answered. `times` counts from
the moment at which the file is read. The driver then records `number` among its calls.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from devlet.errors import InvalidInput
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, DeviceReport, Service
from devlet.testing.dra_script import PREPARE
from devlet.testing.fake_dra_driver import FakeDraDriver

__all__ = ["Fault", "Orders", "carry_out", "read", "write"]


class Fault(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fault. `do` is a method of `DraScript`: fail, hang, delay, answer, hang_up, fail_claim, skip_claim or
    answer_also. The other fields are its arguments, as far as it has them."""

    do: str
    method: str = PREPARE
    claim: str = ""
    code: str = "INTERNAL"
    text: str = "told to fail"
    seconds: float = 0.0
    message: bytes = b""  # Base64 in the file
    devices: tuple[PreparedDevice, ...] = ()
    times: int | None = None
    after: bool = False


class Orders(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Orders for a driver. `devices` and `problems` are the answers for claims, by name or UID; None changes
    nothing."""

    number: int = 0
    faults: tuple[Fault, ...] = ()
    devices: Mapping[str, tuple[PreparedDevice, ...]] = {}
    problems: Mapping[str, str] = {}
    health: tuple[DeviceReport, ...] | None = None
    versions: tuple[str, ...] | None = None
    services: tuple[Service, ...] | None = None
    registrar: bool = True  # runs
    service: bool = True


def read(path: Path) -> Orders:
    """Read a file. Raise `InvalidInput` if it is not such a file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Orders)
    except (OSError, msgspec.MsgspecError) as e:
        raise InvalidInput(f"orders {path}: {e}") from e


def write(path: Path, orders: Orders) -> None:
    """Write a file, and rename it into place."""
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(msgspec.json.encode(orders))
    draft.replace(path)


async def carry_out(orders: Orders, driver: FakeDraDriver) -> None:
    driver.recover()
    for fault in orders.faults:
        _apply(fault, driver)
    problems = {claim: ClaimProblem(text) for claim, text in orders.problems.items()}
    driver.set_all_devices({**orders.devices, **problems})
    if orders.health is not None:
        driver.health.set(orders.health)
    if orders.services is not None:
        driver.services = orders.services
    driver.versions = orders.versions
    await (driver.start_service() if orders.service else driver.stop_service())
    await (driver.start_registrar() if orders.registrar else driver.stop_registrar())


def _apply(fault: Fault, driver: FakeDraDriver) -> None:
    call: dict[str, Any] = {"times": fault.times, "after": fault.after}
    claim: dict[str, Any] = {"times": fault.times, "method": fault.method}
    known: Mapping[str, Callable[[], None]] = {
        "fail": lambda: driver.fail(fault.method, fault.code, fault.text, **call),
        "hang": lambda: driver.hang(fault.method, **call),
        "delay": lambda: driver.delay(fault.method, fault.seconds, **call),
        "answer": lambda: driver.answer(fault.method, fault.message, **call),
        "hang_up": lambda: driver.hang_up(fault.method, **call),
        "fail_claim": lambda: driver.fail_claim(fault.claim, fault.text, **claim),
        "skip_claim": lambda: driver.skip_claim(fault.claim, **claim),
        "answer_also": lambda: driver.answer_also(fault.claim, fault.devices, **claim),
    }
    if fault.do not in known:
        raise InvalidInput(f"orders: there is no fault {fault.do!r}, only {', '.join(known)}")
    known[fault.do]()
