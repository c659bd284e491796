"""The commands of docs/examples.md print what the page says, and its manifests fit the programs."""

import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from devlet.examples import fake_gpu_dra, fake_gpu_plugin
from devlet.objects.documents import Document
from devlet.sdk import DevicePlugin, DraDriver, program
from devlet.testing.node import Node
from tests.docs.test_devices_docs import check, section

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "examples.md").read_text()
UNDER_A_KUBELET = "Under a kubelet"
RUN = ["GPUs as a resource", "GPUs for claims", "Files in /dev"]
MANIFESTS: dict[str, str] = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", section(PAGE, UNDER_A_KUBELET), re.DOTALL))


@pytest.mark.long
@pytest.mark.parametrize("title", RUN)
def test_the_commands_of_a_section_print_what_the_page_says(title: str, root: Path) -> None:
    check(PAGE, title, root)


def test_every_section_with_commands_is_run() -> None:
    titles = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert [title for title in titles if "```console" in section(PAGE, title)] == RUN


def test_every_bundled_driver_is_on_the_page() -> None:
    modules = (ROOT / "src/devlet/examples").glob("*.py")
    drivers = {each.stem for each in modules if "__main__" in each.read_text()}
    assert drivers == set(re.findall(r"^\| `devlet\.examples\.(\w+)`", PAGE, re.MULTILINE))


@pytest.mark.parametrize("command", "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines())
def test_a_command_that_needs_hardware_has_flags_that_exist(command: str) -> None:
    words = shlex.split(command)
    done = subprocess.run([sys.executable, *words[1:], "--help"], capture_output=True, text=True, check=True)
    assert {each for each in words if each.startswith("--") and each not in done.stdout} == set()


def daemon_set(name: str) -> Document:
    return next(each for each in yaml.safe_load_all(MANIFESTS[name]) if each["kind"] == "DaemonSet")


@pytest.mark.anyio
@pytest.mark.parametrize("name", MANIFESTS)
async def test_its_objects_are_taken_by_the_embedded_api(name: str) -> None:
    async with Node.start(control=False) as node:
        await node.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}")
        await node.apply(MANIFESTS[name])
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "of-it", "namespace": "kube-system"}}
        await node.apply({**pod, "spec": daemon_set(name)["spec"]["template"]["spec"]})  # a pod's rules are stricter


def flags(driver: DraDriver | DevicePlugin, parser: ArgumentParser, name: str) -> Any:
    driver.arguments(parser)
    arguments = parser.parse_args(daemon_set(name)["spec"]["template"]["spec"]["containers"][0]["args"])
    driver.configure(arguments)
    return arguments


def mounted(name: str) -> set[Path]:
    """Directories that have the same path in the container and on the host."""
    pod = daemon_set(name)["spec"]["template"]["spec"]
    hosts = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"]}
    inside = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    assert hosts == inside
    return {Path(each) for each in hosts.values()}


def test_the_plugins_directories_are_mounted() -> None:
    plugin = fake_gpu_plugin.FakeGpus()
    arguments = flags(plugin, program._plugin_parser("", {}), "fake-gpu-plugin.yaml")
    assert mounted("fake-gpu-plugin.yaml") == {program.plugin_options(arguments).directory, plugin.cache}


def test_the_drivers_directories_are_mounted_and_its_variables_set() -> None:
    driver = fake_gpu_dra.FakeGpus()
    container = daemon_set("fake-gpu-dra.yaml")["spec"]["template"]["spec"]["containers"][0]
    variables = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    options = program.dra_options(flags(driver, program._dra_parser("", variables), "fake-gpu-dra.yaml"), driver.name)
    assert (options.node_name, options.instance) == ("spec.nodeName", "metadata.uid")
    data, registry = options.data(driver.name), options.registry_socket(driver.name).parent
    assert mounted("fake-gpu-dra.yaml") == {data, registry, options.cdi_directory}


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_program_of_a_manifest_is_one_of_the_page(name: str) -> None:
    pod = daemon_set(name)["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"][:2] == ["python", "-m"]
    assert f"`{pod['containers'][0]['command'][2]}`" in PAGE
    assert "privileged" not in str(pod)
