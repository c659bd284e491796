"""The drivers that are printed in the README and on the page about them, run as a reader would run them."""

import re
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from devlet.kit.processes import line, process
from devlet.objects.documents import Document
from devlet.sdk import program
from devlet.testing import builders
from devlet.testing.node_process import NODE, NodeProcess, pod
from devlet.testing.waiting import until

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "drivers.md").read_text()
CLASS = {"spec": {"selectors": [{"cel": {"expression": 'device.driver == "led.example.com"'}}]}}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def programs(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_readmes_driver_is_short() -> None:
    (driver,) = programs(README)
    assert len([text for text in driver.splitlines() if text.strip()]) <= 15


@pytest.fixture
async def node(root: Path, anyio_backend: str) -> AsyncIterator[NodeProcess]:
    async with NodeProcess(root, control=True) as node:
        yield node


def command(node: NodeProcess, source: str, *flags: str) -> list[str]:
    file = node.root / "driver.py"
    file.write_text(source)
    return [sys.executable, str(file), "--kubelet-root", str(node.root), *flags]


@pytest.mark.parametrize("page", [README, PAGE], ids=["README", "drivers.md"])
async def test_the_dra_driver_gives_a_pod_an_led(node: NodeProcess, page: str) -> None:
    source = programs(page)[0]
    flags = ["--node-name", NODE, "--kubeconfig", str(node.root / "kubeconfig"), "--cdi-root", str(node.root / "cdi")]
    argv = command(node, source, *flags)
    async with process(argv, log=node.root / "driver.log", name="leds", ready=line('"registered"')):
        await node.call("POST", "/apis/resource.k8s.io/v1/deviceclasses", CLASS | {"metadata": {"name": "led"}})
        await node.call("POST", CLAIMS, _claim('device.attributes["led.example.com"].color == "green"'))
        wanted = pod("lamp", {})
        del wanted["spec"]["nodeName"]
        wanted["spec"]["resourceClaims"] = [{"name": "led", "resourceClaimName": "led"}]
        wanted["spec"]["containers"][0]["resources"] = {"claims": [{"name": "led"}]}
        await node.create(wanted)
        await node.until_phase("lamp", "Running")
        assert (await node.environment("lamp"))["LED_GREEN"] == "on"


async def test_the_device_plugin_gives_a_pod_an_led(node: NodeProcess) -> None:
    argv = command(node, programs(PAGE)[1])
    async with process(argv, log=node.root / "driver.log", name="leds", ready=line("registered")):
        await node.create(pod("lamp", {"example.com/led": 1}))
        await node.until_phase("lamp", "Running")

        async def environment() -> Mapping[str, str]:
            return await node.environment("lamp")

        assert (await until(environment))["LEDS"] == "red"


@pytest.mark.long
async def test_the_driver_with_parameters_takes_what_fits_and_refuses_the_rest(node: NodeProcess) -> None:
    flags = ["--node-name", NODE, "--kubeconfig", str(node.root / "kubeconfig"), "--cdi-root", str(node.root / "cdi")]
    argv = command(node, programs(PAGE)[2], *flags)
    async with process(argv, log=node.root / "driver.log", name="leds", ready=line('"registered"')):
        await node.call("POST", "/apis/resource.k8s.io/v1/deviceclasses", CLASS | {"metadata": {"name": "led"}})
        await use(node, "lamp", {"brightness": "half"})
        await use(node, "night", {"brightnes": "half"})
        await node.until_phase("lamp", "Running")
        assert list((await node.environment("lamp")).values()) == ["half"]

        async def told() -> list[str]:
            return [each["message"] for each in await node.events() if "unknown field" in each["message"]]

        assert "`brightnes`" in (await until(told))[0]


async def use(node: NodeProcess, name: str, parameters: Mapping[str, str]) -> None:
    claim = _claim("true")
    claim["metadata"]["name"] = name
    claim["spec"]["devices"]["config"] = [{"opaque": {"driver": "led.example.com", "parameters": parameters}}]
    await node.call("POST", CLAIMS, claim)
    await node.create(builders.pod(name, claim=name))


@pytest.mark.parametrize("parser", [program._dra_parser, program._plugin_parser])
def test_every_flag_of_the_kind_is_on_the_page(parser: Callable[..., ArgumentParser]) -> None:
    options = {each for action in parser("", {})._actions for each in action.option_strings}
    assert {each for each in options - {"-h", "--help", "--verbosity"} if f"`{each}`" not in PAGE} == set()


def test_every_flag_on_the_page_is_one() -> None:
    texts = [parser("", {}).format_help() for parser in (program._dra_parser, program._plugin_parser)]
    named = re.findall(r"`(--[\w-]+)`", PAGE)
    assert {each for each in named if not any(each in text for text in texts)} - {"--help"} == set()


def _claim(expression: str) -> Document:
    exactly = {"deviceClassName": "led", "selectors": [{"cel": {"expression": expression}}]}
    return {"metadata": {"name": "led"}, "spec": {"devices": {"requests": [{"name": "led", "exactly": exactly}]}}}
