from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
import pytest

from devlet.cassettes.cassette import DeviceHealth, Grant
from devlet.cli.cassette_source import Origin, find, origin_options
from devlet.cli.target import Target
from devlet.cluster.client import MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import InvalidInput, NotFound
from devlet.objects.kinds import NODES
from devlet.plugins import grants
from devlet.plugins.devices import Grant as Answer
from devlet.state import health_file
from devlet.state.checkpoint_file import CheckpointFile
from devlet.state.device_checkpoint import Encoder, Entry
from devlet.testing.embedded import embedded_api

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


VIEWS = "/apis/devlet.dev/v1alpha1"


def origin(api: "API", node: str = "") -> Origin:
    return Origin(Target(root=api.root), node, (api.root / "cdi",))


@pytest.fixture(autouse=True)
def objects(api: "API") -> None:
    api.put("/api/v1/nodes/n1", {"status": {"capacity": {"example.com/led": "3"}}})
    for name in ("n1", "n2"):
        spec = {"driver": "d.e", "nodeName": name, "pool": {"name": name}, "devices": [{"name": f"on-{name}"}]}
        api.put(f"/apis/resource.k8s.io/v1/resourceslices/{name}", {"spec": spec})
    api.put(f"{VIEWS}/devices/led", {"spec": {"resource": "example.com/led", "id": "a"}})
    api.put(f"{VIEWS}/plugins/led", {"spec": {"resource": "example.com/led"}})
    api.put(f"{VIEWS}/drivers/d.e", {"spec": {"driver": "d.e"}})
    api.put(f"{VIEWS}/namespaces/ns/preparedclaims/c", {"spec": {"uid": "uid-1"}})


def test_a_devlet_is_asked_for_everything_and_only_read(api: "API") -> None:
    found = find(origin(api))
    assert (found.node, found.source, found.claims) == ("n1", "devlet", {"uid-1"})
    assert [each["spec"]["devices"] for each in found.slices] == [[{"name": "on-n1"}]]
    assert [each["kind"] for each in found.slices] == ["ResourceSlice"]
    assert len(found.devices) == len(found.plugins) == len(found.drivers) == 1
    assert found.capacity == {}
    assert {method for method, _, _ in api.requests} == {"GET"}


def test_answers_of_plugins_are_in_the_checkpoint(api: "API") -> None:
    response = grants.encode(Answer(env={"L": "a,b"}, cdi_devices=("a.b/c=d",)))
    entries = [
        Entry("pod", "main", "example.com/led", {-1: ("b",), 0: ("a",)}, response),
        Entry("pod", "side", "example.com/led", None, None),
    ]
    file = CheckpointFile(api.root / "device-plugins" / "kubelet_internal_checkpoint")
    file.prepare()
    file.write(Encoder().encode(entries, {}))
    assert find(origin(api)).answers == {
        "example.com/led": [Grant(("a", "b"), env={"L": "a,b"}, cdi_devices=("a.b/c=d",))]
    }


def test_a_damaged_checkpoint_or_spec_is_left_out_with_a_warning(
    api: "API", capsys: pytest.CaptureFixture[str]
) -> None:
    for path, text in (("device-plugins/kubelet_internal_checkpoint", "{"), ("cdi/a.json", "{"), ("cdi/b.txt", "{")):
        (api.root / path).parent.mkdir(exist_ok=True)
        (api.root / path).write_text(text)
    (api.root / "cdi" / "c.yaml").write_text(
        "{cdiVersion: 0.3.0, kind: a.b/c, devices: [{name: x, containerEdits: {env: [A=b]}}]}"
    )
    found = find(origin(api))
    assert (found.answers, [file.name for file in found.specs]) == ({}, ["c.yaml"])
    warned = capsys.readouterr().err.splitlines()
    assert warned[0].startswith("Warning: the responses of plugins are not captured: the checkpoint is corrupted")
    assert warned[1].startswith("Warning: a CDI spec is not captured: ") and "a.json" in warned[1]


def test_which_of_several_nodes_has_to_be_said(api: "API") -> None:
    api.put("/api/v1/nodes/n2", {})
    with pytest.raises(InvalidInput, match="the cluster has 2 nodes: choose one with --node: n1, n2"):
        find(origin(api))
    assert find(origin(api, "n2")).node == "n2"
    with pytest.raises(NotFound, match="n3"):
        find(origin(api, "n3"))
    for number in range(3, 14):
        api.put(f"/api/v1/nodes/n{number}", {})
    with pytest.raises(InvalidInput, match=r"the cluster has 13 nodes: .*, n6 and 3 more$"):
        find(origin(api))
    for number in range(3, 14):
        api.remove(f"/api/v1/nodes/n{number}")
    api.remove("/api/v1/nodes/n1")
    api.remove("/api/v1/nodes/n2")
    with pytest.raises(InvalidInput, match="the cluster has no nodes"):
        find(origin(api))


def test_without_a_devlet_it_says_so(root: Path) -> None:
    with pytest.raises(Exception, match="no devlet runs on"):
        find(Origin(Target(root=root)))


def test_a_devlet_of_a_cluster_with_several_nodes_is_its_own(api: "API") -> None:
    api.put("/api/v1/nodes/n2", {})
    api.texts["/metrics"] = 'kubelet_node_name{node="n2"} 1\n'
    assert find(origin(api)).node == find(origin(api, "n2")).node == "n2"
    with pytest.raises(
        InvalidInput, match=r"\.sock belongs to node n2, not n1: run `devlet capture` on its machine, or"
    ):
        find(origin(api, "n1"))


def test_health_is_in_a_file_of_the_node(api: "API", capsys: pytest.CaptureFixture[str]) -> None:
    told = health_file.DeviceHealth("n1", "a", "Unhealthy", datetime(2026, 1, 2, tzinfo=UTC), 30.0, "too hot")
    file = api.root / "dra_health_state"
    assert find(origin(api)).health == {}
    file.write_bytes(health_file.encode({"d.e": [told]}))
    assert find(origin(api)).health == {"d.e": [DeviceHealth("n1", "a", "Unhealthy", "too hot")]}
    file.write_text("{")
    assert find(origin(api)).health == {}
    warned = capsys.readouterr().err
    assert warned.startswith(f"Warning: the health of devices is not captured: {file}: ")


@pytest.mark.anyio
async def test_what_does_not_fit_onto_a_cassette_is_remarked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    amounts = {"gpu.example.com/memory": "17179869184"}
    async with embedded_api(root) as api, connected(kubeconfig.connection([api.kubeconfig])) as cluster:
        await cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        await cluster.patch(NODES, "n1", MergePatch({"status": {"capacity": amounts}}), subresource="status")
        found = await anyio.to_thread.run_sync(find, Origin(Target(api.kubeconfig), "n1"))
    assert (found.source, found.capacity) == ("cluster", amounts)
    assert capsys.readouterr().err.startswith("Warning: gpu.example.com/memory is left out: 17179869184 are more than")


def part(api: "API", number: int) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": "d.e", "nodeName": "n1", "pool": pool, "devices": [{"name": f"gpu-{number}"}]}
    api.put(f"/apis/resource.k8s.io/v1/resourceslices/p-{number}", {"spec": spec})


def test_a_pool_that_is_being_published_is_waited_for(api: "API", capsys: pytest.CaptureFixture[str]) -> None:
    part(api, 0)
    found = find(origin(api), sleep=lambda seconds: part(api, 1))
    assert len(found.slices) == 3 and capsys.readouterr().err == ""


def test_a_pool_that_stays_incomplete_causes_a_warning(api: "API", capsys: pytest.CaptureFixture[str]) -> None:
    part(api, 0)
    slept: list[float] = []
    assert len(find(origin(api), sleep=slept.append).slices) == 2
    assert sum(slept) == 5.0
    assert capsys.readouterr().err.startswith("Warning: pool p of driver d.e is incomplete, devices may be missing: 1 ")


def parsed(*arguments: str, name: str = "devlet") -> Origin:
    found: list[Any] = []

    @click.command()
    @origin_options
    def command(origin: Origin) -> None:
        found.append(origin)

    command.main(list(arguments), prog_name=name, standalone_mode=False)
    (origin,) = found
    assert isinstance(origin, Origin)
    return origin


def test_nothing_is_asked_and_everything_is_passed_on() -> None:
    given = parsed("--node", "n1", "--root", "/r", "--cdi-root", "/a", "--cdi-root", "/b")
    assert given == Origin(Target(root=Path("/r")), "n1", (Path("/a"), Path("/b")))
    given = parsed("--kubeconfig", "/k", "--context", "c", name="kubectl devlet")
    assert given.target == Target(Path("/k"), "c", None, of_kubectl=True)
