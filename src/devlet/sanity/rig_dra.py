"""A DRA driver under test: its process, a kubelet and an API server for it alone, and what can be done to all three.

Below the root it is as below /var/lib/kubelet: `plugins_registry`, `plugins`. Beside them are `cdi`, and `api` with the
cluster. `stand_dra` starts it, or finds one that runs already.
"""

import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from devlet.cluster.client import Cluster
from devlet.objects.documents import Document
from devlet.objects.kinds import RESOURCE_SLICES
from devlet.sanity import host
from devlet.sanity.api_server import ApiServer
from devlet.sanity.cdi_directories import CdiDirectories
from devlet.sanity.check import CannotTell
from devlet.sanity.claim_maker import ClaimMaker, MadeClaim, Offer, Want
from devlet.sanity.dra_client import DraClient, Ref
from devlet.sanity.dra_kubelet import DraKubelet, Greeting
from devlet.sanity.driver import Driver, DriverProcess
from devlet.sanity.slice_history import SliceHistory
from devlet.testing.dice import Dice

__all__ = ["DraPlaces", "DraRig", "Settings", "log_of"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds. `wait` is how long a driver may take to be registered, and to publish. `repair`: the reference's own
    helper puts back what was deleted after 30, and within 60 of its own write not at all."""

    wait: float = 30.0
    settle: float = 0.5  # for further slices, after one has come
    quiet: float = 1.0  # in which nothing should happen
    answer: float = 45.0
    dial: float = 10.0
    late: float = 2.0  # between two steps of a kubelet's start
    stop: float = 30.0
    repair: float = 100.0
    health: float = 40.0  # for which a repetition of health is waited for


@dataclass(frozen=True, slots=True)
class DraPlaces:
    """The directories of a driver, and its cluster."""

    root: Path
    registry: Path
    plugins: Path
    cdi: Path
    kubeconfig: Path
    node: str

    @staticmethod
    def below(root: Path, node: str) -> "DraPlaces":
        return DraPlaces(
            root, root / "plugins_registry", root / "plugins", root / "cdi", root / "api" / "kubeconfig", node
        )

    @property
    def words(self) -> Mapping[str, Path]:
        """What stands in braces in commands."""
        return {
            "root": self.root,
            "registry": self.registry,
            "plugins": self.plugins,
            "cdi": self.cdi,
            "kubeconfig": self.kubeconfig,
            "node": Path(self.node),
        }


@dataclass(slots=True)
class DraRig:
    places: DraPlaces
    driver: Driver
    kubelet: DraKubelet
    api: ApiServer
    history: SliceHistory
    tasks: TaskGroup
    settings: Settings
    cdi: CdiDirectories
    second: Driver | None = None  # another instance, not started
    change_command: str = ""
    configs: Sequence[Document] = ()  # parameters that the driver takes
    dice: Dice = field(default_factory=lambda: Dice(0))
    unready: str = ""  # why it could not be driven from the beginning
    stopped: bool = False  # by a check
    _maker: ClaimMaker | None = None

    @property
    def trouble(self) -> str:
        if self.unready:
            return self.unready
        if self.driver.ending and not self.stopped:
            return f"the driver {self.driver.ending}; {log_of(self.driver)}"
        return ""

    @property
    def is_hopeless(self) -> bool:
        return bool(self.unready)

    @property
    def patience(self) -> float:
        return 4 * self.settings.wait + self.settings.stop + self.settings.repair

    def log(self) -> str:
        return self.driver.log()

    @property
    def cluster(self) -> Cluster:
        return self.api.cluster

    # Who is registered

    @property
    def greetings(self) -> list[Greeting]:
        """CannotTell if nobody was found."""
        if not self.kubelet.greetings:
            raise CannotTell(self._missing)
        return list(self.kubelet.greetings)

    @property
    def greeting(self) -> Greeting:
        """The last one of a driver; what does not serve the registration is none."""
        introduced = [each for each in self.greetings if each.type or each.name or each.versions]
        if not introduced:
            raise CannotTell(self._missing)
        return next((each for each in reversed(introduced) if not each.adopted), introduced[-1])

    @property
    def client(self) -> DraClient:
        """To the driver that registered last; CannotTell if none is."""
        if not self.kubelet.drivers:
            raise CannotTell(self._missing)
        return list(self.kubelet.drivers.values())[-1][1]

    @property
    def name(self) -> str:
        return self.greeting.name

    @property
    def _missing(self) -> str:
        """The trouble is told once, by DRA-REG-1 and in the report."""
        if self.unready:
            return "the driver did not come up: see DRA-REG-1"
        return self.trouble or "the driver is not registered, so there is nothing to call"

    async def ready_again(self, after: int, drivers: int = 1) -> bool:
        """Whether so many are registered, by greetings that came after the first `after`. A driver that ends is started
        again, as its pod would be."""
        with anyio.move_on_after(self.settings.wait):
            while self.kubelet.count == after or len(self.kubelet.drivers) < drivers or not self._newest(after):
                await self.revive()
                await self.kubelet.until(self.kubelet.taken + 1, 0.1)
            return True
        return False

    def _newest(self, after: int) -> bool:
        newest = list(self.kubelet.greetings)[-(self.kubelet.count - after) :]
        return any(each.is_registered for each in newest)

    async def revive(self) -> None:
        if self.driver.ending and not self.stopped:
            await self.driver.start()

    async def restart(self) -> bool:
        """Kill it and start it again; whether it came back."""
        before = self.kubelet.count
        await self.driver.kill()
        await self.driver.start()
        return await self.ready_again(before)

    async def found_in_registry(self) -> bool:
        """Whether there is something to be greeted, after a while."""
        with anyio.move_on_after(self.settings.wait):
            while not any(path.is_socket() for path in self.places.registry.rglob("*")):  # noqa: ASYNC110  nobody tells
                await anyio.sleep(0.02)
            return True
        return False

    async def restart_kubelet(self) -> None:
        await self.kubelet.stop()
        await self.kubelet.start()

    # What it has published

    @property
    def slices(self) -> list[Document]:
        """CannotTell if it has none."""
        if not (found := self.history.of(self.name)):
            raise CannotTell("it has published no slices: see DRA-SLICE-1")
        return found

    def pools(self) -> dict[str, list[Document]]:
        """Slices of the newest generation by pool."""
        found: dict[str, list[Document]] = {}
        for each in self.slices:
            found.setdefault(each["spec"]["pool"]["name"], []).append(each)
        newest = {name: max(_generation(each) for each in pool) for name, pool in found.items()}
        return {name: [each for each in pool if _generation(each) == newest[name]] for name, pool in found.items()}

    def offers(self) -> list[Offer]:
        return [
            Offer(pool, device)
            for pool, slices in self.pools().items()
            for each in slices
            for device in each["spec"].get("devices", ())
        ]

    def versions(self) -> dict[str, str]:
        """Of its slices by name: another version, another content."""
        return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in self.history.of(self.name)}

    async def published_again(self, within: float | None = None) -> bool:
        limit = self.settings.repair if within is None else within
        return await self.history.until(lambda: bool(self.history.of(self.name)), limit)

    async def delete_slices(self) -> None:
        for each in self.slices:
            await self.cluster.delete(RESOURCE_SLICES, each["metadata"]["name"])

    # Claims

    @property
    def maker(self) -> ClaimMaker:
        if self._maker is None:
            self._maker = ClaimMaker(
                self.cluster, lambda: self.name, self.places.node, self.offers, self._unprepare, self._given()
            )
            self.cdi.claims = lambda: self.maker.uids
        return self._maker

    def claim(self, *wants: Want, **how: object) -> AbstractAsyncContextManager[MadeClaim]:
        return self.maker.claim(wants or (Want(),), **how)  # type: ignore[arg-type]

    @asynccontextmanager
    async def claims(self, count: int) -> AsyncIterator[list[MadeClaim]]:
        """Each with a device of its own."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.claim()) for _ in range(count)]

    async def _unprepare(self, ref: Ref) -> None:
        with anyio.move_on_after(self.settings.answer):
            await self.client.unprepare(ref)

    def _given(self) -> list[Document]:
        return [
            {"source": "FromClaim", "requests": [], "opaque": {"driver": self.name, "parameters": each}}
            for each in self.configs
        ]

    # The process

    def leftovers(self) -> list[Path]:
        """Sockets of drivers, and what else lies in the registry directory."""
        sockets = [path for path in self.places.plugins.rglob("*") if path.is_socket()]
        return sorted([*self.places.registry.rglob("*"), *sockets])

    def usage(self) -> host.Usage:
        """Of the driver's process. CannotTell if it cannot be looked at."""
        if self.driver.pid is None:
            raise CannotTell("the driver's process is not known")
        try:
            return host.usage(self.driver.pid)
        except OSError as e:
            raise CannotTell(f"the driver's process cannot be looked at: {e}") from e

    def log_bytes(self) -> int:
        if not isinstance(self.driver, DriverProcess) or self.driver.pid is None:
            raise CannotTell("the driver is attached, or does not run: its log is not known")
        return self.driver.written()

    async def start_second(self) -> None:
        """Another instance beside the first. CannotTell if nobody said how."""
        if self.second is None:
            raise CannotTell("nobody said how to start a second instance: use {instance}, or give --second COMMAND")
        await self.second.start()

    async def change_devices(self) -> None:
        """Run the command that makes other devices be there. CannotTell if there is none."""
        if not self.change_command:
            raise CannotTell("nobody said how to make the devices change: give --change COMMAND")
        command = self.change_command
        for word, path in self.places.words.items():
            command = command.replace(f"{{{word}}}", str(path))
        done = await anyio.run_process(["sh", "-c", command], check=False, stderr=subprocess.STDOUT)
        if done.returncode:
            text = done.stdout.decode(errors="replace").strip()[:300]
            raise CannotTell(f"the command of --change exited with {done.returncode}: {text}")


def log_of(driver: Driver) -> str:
    text = driver.log()
    return "the end of its log:\n" + text if text else "its log is empty"


def _generation(slice: Document) -> int:
    generation: int = slice["spec"]["pool"]["generation"]
    return generation
