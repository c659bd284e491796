"""`python -m devlet.testing.fake_dra_driver`: a fake DRA driver as a process that can be killed like a real one.

Its claims are kept in files, so that they outlive it. Each call is a line of JSON in the file of `--calls`; what it is
to do beside the usual it reads from the file of `--orders`.
"""

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import TaskStatus
from inotify_simple import INotify, flags

from devlet.cluster.remote import client, kubeconfig
from devlet.errors import DevletError, NotFound
from devlet.kit.facts import configure, facts
from devlet.kit.parts import running
from devlet.objects.kinds import NODES
from devlet.plugins.dra import HealthService, Service
from devlet.testing import dra_orders
from devlet.testing.dra_script import Call
from devlet.testing.fake_dra_cluster import allocated, publish
from devlet.testing.fake_dra_driver import FakeDraDriver

__all__ = ["ORDERS_TAKEN", "SERVING", "main"]

log = logging.getLogger("devlet.testing.fake_dra_driver")

SERVING = "driver serving"  # the line of its log
ORDERS_TAKEN = "orders taken"  # among the calls, with the number of the orders

T = TypeVar("T")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one driver until SIGTERM. It ends if its orders cannot be read, at the start or later."""
    given = _parser().parse_args(arguments)
    configure("text")
    try:
        anyio.run(_run, given)
    except* DevletError as errors:
        sys.exit(f"fake_dra_driver: {'; '.join(map(str, _leaves(errors)))}")


def _leaves(errors: BaseExceptionGroup[DevletError]) -> Iterator[DevletError]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _run(given: argparse.Namespace) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with AsyncExitStack() as stack:
            driver = await stack.enter_async_context(_driver(given))
            if given.kubeconfig:
                await _publish(stack, driver, given)
            if given.orders:
                await stack.enter_async_context(running(_Following(driver, given.orders).run))
            else:
                await driver.start()
            log.info(SERVING, extra=facts(driver=driver.name, socket=str(driver.path)))
            async for _ in signals:
                break


def _driver(given: argparse.Namespace) -> FakeDraDriver:
    root = given.root.absolute()
    driver = FakeDraDriver(
        root,
        given.driver,
        services=given.services,
        health_services=given.health,
        versions=given.versions,
        pool=given.pool or given.node_name,
        cdi_directory=(given.cdi_dir or root / "cdi").absolute(),
        instance=given.instance,
        one_socket=given.one_socket,
        service_path=given.service_path and given.service_path.absolute(),
        keep=True,
        autostart=False,
    )
    driver.health.every = given.health_interval
    if given.calls:
        driver.on_call = _CallFile(given.calls).add
    return driver


async def _publish(stack: AsyncExitStack, driver: FakeDraDriver, given: argparse.Namespace) -> None:
    connection = kubeconfig.connection([given.kubeconfig])
    cluster = await stack.enter_async_context(client.connected(connection))
    try:
        uid = (await cluster.get(NODES, given.node_name))["metadata"]["uid"]
    except NotFound:
        uid = ""
    await publish(cluster, driver.name, given.node_name, given.devices, pool=driver.pool, node_uid=uid)
    driver.handler = allocated(cluster, driver.name)


class _CallFile:
    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, call: Call) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(call) + b"\n")


class _Following:
    """Executes the present orders, and each later file of that name."""

    def __init__(self, driver: FakeDraDriver, path: Path) -> None:
        self._driver = driver
        self._path = path

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        with INotify(nonblocking=True) as changes:
            changes.add_watch(self._path.absolute().parent, flags.MOVED_TO)
            await self._take(missing_is_fine=True)
            task_status.started()
            while True:
                await anyio.wait_readable(changes)
                if any(event.name == self._path.name for event in changes.read(timeout=0)):
                    await self._take()

    async def _take(self, *, missing_is_fine: bool = False) -> None:
        if missing_is_fine and not self._path.exists():
            await self._driver.start()
            return
        orders = dra_orders.read(self._path)
        await dra_orders.carry_out(orders, self._driver)
        self._driver.on_call(Call(ORDERS_TAKEN, text=str(orders.number), at=anyio.current_time()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fake_dra_driver", description="A DRA driver with simulated devices, for tests."
    )
    add = parser.add_argument
    add("--root", type=Path, required=True, help="directory with plugins_registry and plugins, like /var/lib/kubelet")
    add("--driver", default="gpu.example.com", help="name of the driver (gpu.example.com)")
    add("--instance", default="", help="suffix of the socket names, for a second instance of a driver")
    add(
        "--services",
        type=_list(Service),
        default=(Service.V1, Service.V1BETA1),
        help="APIs to serve: " + ", ".join(Service),
    )
    add(
        "--health",
        type=_list(_health),
        nargs="?",
        const=(HealthService.V1ALPHA1,),
        default=(),
        help="health APIs: v1, v1alpha1",
    )
    add("--health-interval", type=float, help="number of seconds after which the health is repeated")
    add("--versions", type=_list(str), help="versions to advertise, even if they are not served")
    add("--cdi-dir", type=Path, help="directory of CDI files; by default cdi in the root")
    add("--one-socket", action="store_true", help="serve everything on the registration socket")
    add("--service-path", type=Path, help="path of the socket that serves the calls for claims")
    add("--pool", default="", help="name of the pool; by default the name of the node")
    add("--node-name", default="node", help="name of the node (node)")
    add(
        "--kubeconfig",
        type=Path,
        help="publish the devices in this cluster, and prepare the devices that are allocated to claims",
    )
    add("--devices", type=int, default=4, help="number of devices to publish (4)")
    add("--orders", type=Path, help="file with faults and other orders, which is read again when it is replaced")
    add("--calls", type=Path, help="write the calls that the driver gets to this file")
    return parser


def _list(convert: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    def parse(text: str) -> tuple[T, ...]:
        return tuple(convert(word) for word in text.split(",") if word)

    return parse


def _health(word: str) -> HealthService:
    try:
        return HealthService(f"{word}.DRAResourceHealth")
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"{word}: there are v1 and v1alpha1") from e
