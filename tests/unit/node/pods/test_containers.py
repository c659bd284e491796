"""The containers of a pod: how often their start is requested, and with what."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from devlet.node.devices.container_options import ContainerOptions
from devlet.node.pods.containers import config
from devlet.objects.documents import Document
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import Container
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.objects.types.pod import Pod
from devlet.runtime.containers import Config, Run
from devlet.runtime.none import NoneRuntime

if TYPE_CHECKING:
    from tests.unit.node.pods.conftest import NodeHarness

MakePod = Callable[..., Document]


def test_nothing_is_added_to_a_container_without_devices() -> None:
    assert config(None) is None
    assert config(ContainerOptions()) == Config()


def test_everything_that_plugins_return_reaches_the_runtime() -> None:
    options = ContainerOptions(
        env=(("A", "1"),),
        mounts=(Mount("/in", "/out", True),),
        devices=(DeviceNode("/dev/in", "/dev/out", "rw"),),
        annotations=(("k", "v"),),
        cdi_devices=("vendor.com/gpu=0",),
    )
    assert config(options) == Config(
        env=(("A", "1"),),
        mounts=(Mount("/in", "/out", True),),
        devices=(DeviceNode("/dev/in", "/dev/out", "rw"),),
        annotations=(("k", "v"),),
        cdi_devices=("vendor.com/gpu=0",),
    )


@pytest.mark.spec("DN-7.1.1")
def test_cdi_devices_of_claims_come_before_those_of_plugins_and_each_comes_once() -> None:
    options = ContainerOptions(env=(("A", "1"),), cdi_devices=("v/c=2", "v/c=0", "v/c=3"))
    found = config(options, ["v/c=1", "v/c=0", "v/c=1"])
    assert found == Config(env=(("A", "1"),), cdi_devices=("v/c=1", "v/c=0", "v/c=2", "v/c=3"))


def test_a_container_that_has_only_claims_gets_their_cdi_devices() -> None:
    assert config(None, ("v/c=1", "v/c=1", "v/c=0")) == Config(cdi_devices=("v/c=1", "v/c=0"))


class Behind:
    """A runtime that starts containers at once, and shows them after a while."""

    def __init__(self, runtime: NoneRuntime) -> None:
        self._runtime = runtime
        self.starts: list[int] = []
        self.shows = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    async def runs(self, pod: Pod) -> Mapping[ContainerName, Run]:
        return await self._runtime.runs(pod) if self.shows else {}

    async def start(self, pod: Pod, container: Container, number: int, config: Config | None) -> Run:
        self.starts.append(number)
        return await self._runtime.start(pod, container, number, config)


@pytest.mark.anyio
async def test_a_start_that_does_not_show_yet_is_not_requested_again_at_once(
    node: "NodeHarness", make_pod: MakePod
) -> None:
    runtimes: list[Behind] = []

    def use(runtime: NoneRuntime) -> Behind:
        runtimes.append(Behind(runtime))
        return runtimes[0]

    async with node.running(use_runtime=use):
        await node.create(make_pod("p"))
        status = await node.phase("p", "Pending")
        status = await node.status("p", lambda found: bool(found.get("containerStatuses")))
        assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
        assert runtimes[0].starts == [0]
        runtimes[0].shows = True
        await node.pass_time(10)
        await node.phase("p", "Running")
        assert runtimes[0].starts == [0]
