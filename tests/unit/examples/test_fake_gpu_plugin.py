from argparse import ArgumentParser
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from devlet.errors import InvalidInput
from devlet.examples.fake_gpu_plugin import CACHE, FakeGpus
from devlet.sdk.values import HEALTHY, UNHEALTHY, Mount

pytestmark = pytest.mark.anyio


async def test_gpus_are_spread_over_numa_nodes() -> None:
    (devices,) = [each async for each in FakeGpus(4, 2).devices()]
    assert [(each.id, each.health, each.numa_nodes) for each in devices] == [
        ("gpu-0", HEALTHY, (0,)),
        ("gpu-1", HEALTHY, (0,)),
        ("gpu-2", HEALTHY, (1,)),
        ("gpu-3", HEALTHY, (1,)),
    ]


async def test_a_file_makes_a_gpu_unhealthy_until_it_is_removed(root: Path) -> None:
    async with aclosing(FakeGpus(2, sick=root).devices()) as lists:  # type: ignore[type-var]
        assert [each.health for each in await anext(lists)] == [HEALTHY, HEALTHY]
        (root / "gpu-1").touch()
        while [each.health for each in await anext(lists)] != [HEALTHY, UNHEALTHY]:
            pass
        (root / "gpu-1").unlink()
        while [each.health for each in await anext(lists)] != [HEALTHY, HEALTHY]:
            pass


@pytest.mark.parametrize(
    ("available", "must_include", "size", "chosen"),
    [
        ("0123", "", 2, "01"),
        ("123", "", 2, "23"),  # the other NUMA node has one only
        ("0123", "3", 2, "32"),  # beside the one that must be in
        ("0123", "", 3, "012"),
        ("013", "", 1, "3"),  # leaves the pair
        ("12", "", 4, "12"),
    ],
)
async def test_gpus_of_one_numa_node_are_preferred(available: str, must_include: str, size: int, chosen: str) -> None:
    def gpus(numbers: str) -> list[str]:
        return [f"gpu-{number}" for number in numbers]

    assert await FakeGpus(4, 2).prefer(gpus(available), gpus(must_include), size) == gpus(chosen)


async def test_a_container_gets_the_names_and_an_empty_directory_of_its_own(root: Path) -> None:
    plugin = FakeGpus(cache=root / "cache")
    first, second = await plugin.allocate(["gpu-1", "gpu-0"]), await plugin.allocate(["gpu-2"])
    assert (first.env, second.env) == ({"GPU": "gpu-0,gpu-1"}, {"GPU": "gpu-2"})
    assert first.mounts == [Mount(str(root / "cache/gpu-0"), CACHE, read_only=False)]
    assert second.mounts[0].path != first.mounts[0].path
    (root / "cache/gpu-0/left").touch()
    await plugin.allocate(["gpu-0"])
    assert list((root / "cache/gpu-0").iterdir()) == []


async def test_flags_set_the_properties_of_the_gpus() -> None:
    plugin, parser = FakeGpus(), ArgumentParser()
    plugin.arguments(parser)
    parser.set_defaults(kubelet=Path("/k"))
    plugin.configure(parser.parse_args(["--num-devices", "3", "--numa-nodes", "1", "--resource", "example.com/x"]))
    assert plugin.resource == "example.com/x"
    assert plugin.numa_nodes == {"gpu-0": 0, "gpu-1": 0, "gpu-2": 0}
    assert (plugin.cache, plugin.sick) == (Path("/k/fake-gpu"), None)
    with pytest.raises(InvalidInput, match="at least 1"):
        plugin.configure(parser.parse_args(["--num-devices", "0"]))


async def test_concurrent_allocations_of_one_gpu_do_no_harm(root: Path) -> None:
    plugin = FakeGpus(cache=root / "cache")

    async def allocate() -> None:
        for _ in range(20):
            await plugin.allocate(["gpu-0"])

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(allocate)
    assert (root / "cache/gpu-0").is_dir()
