from pathlib import Path

import pytest

from devlet.errors import InvalidInput, PluginRefused
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.channels import connection
from devlet.plugins.dra import DeviceReport, Service
from devlet.testing.dra_orders import Fault, Orders, carry_out, read, write
from devlet.testing.dra_script import GARBAGE, PREPARE, UNPREPARE
from devlet.testing.fake_dra_driver import FakeDraDriver
from devlet.wire.dra_v1 import api_pb2 as pb

pytestmark = pytest.mark.anyio

V1 = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
DEVICE = PreparedDevice("p", "d", requests=("r",))


async def prepare(driver: FakeDraDriver) -> str:
    """The answer in short."""
    request = pb.NodePrepareResourcesRequest(claims=[pb.Claim(uid="u1", name="train")])
    async with connection("p", driver.path, within=60, max_message=1 << 20) as wire:
        try:
            blob = await wire.call(f"{V1}/NodePrepareResources", request.SerializeToString(), timeout=60)
        except PluginRefused as e:
            return str(e)
    if blob == GARBAGE:
        return "garbage"
    answers = pb.NodePrepareResourcesResponse.FromString(blob).claims
    return " ".join(f"{uid}:{one.error or one.devices[0].device_name}" for uid, one in sorted(answers.items()))


def test_orders_in_a_file_are_what_was_written(root: Path) -> None:
    orders = Orders(
        7,
        (Fault("fail", UNPREPARE, times=2, after=True), Fault("answer", message=GARBAGE)),
        {"train": (DEVICE,)},
        {"serve": "no"},
        (DeviceReport("p", "d", "Unhealthy", 3.0, "hot"),),
        ("nonsense",),
        (Service.V1ALPHA4,),
        registrar=False,
        service=False,
    )
    write(root / "orders.json", orders)
    assert read(root / "orders.json") == orders


@pytest.mark.parametrize("content", ["", "{", '{"fault": []}', '{"faults": [{"do": "fail", "tmies": 1}]}'])
def test_a_file_that_has_no_orders_is_refused_by_name(root: Path, content: str) -> None:
    (root / "orders.json").write_text(content)
    with pytest.raises(InvalidInput, match=r"orders\.json"):
        read(root / "orders.json")


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        (Fault("fail", text="told so"), "told so"),
        (Fault("delay", seconds=0.01), "u1:dev-train"),
        (Fault("answer", message=GARBAGE), "garbage"),
        (Fault("fail_claim", claim="train", text="no"), "u1:no"),
        (Fault("skip_claim", claim="train"), ""),
        (Fault("answer_also", claim="u2", devices=(DEVICE,)), "u1:dev-train u2:d"),
    ],
)
async def test_a_fault_is_in_force_until_orders_come_without_it(root: Path, fault: Fault, answer: str) -> None:
    async with FakeDraDriver(root) as driver:
        await carry_out(Orders(faults=(fault,)), driver)
        assert (await prepare(driver)).endswith(answer)
        await carry_out(Orders(), driver)
        assert await prepare(driver) == "u1:dev-train"


async def test_an_unknown_fault_is_named(root: Path) -> None:
    with pytest.raises(InvalidInput, match="'explode', only fail, hang, "):
        await carry_out(Orders(faults=(Fault("explode"),)), FakeDraDriver(root))


async def test_orders_say_what_claims_get_what_is_healthy_and_what_runs(root: Path) -> None:
    report = DeviceReport("p", "d", "Healthy")
    async with FakeDraDriver(root) as driver:
        await carry_out(Orders(devices={"train": (DEVICE,)}, health=(report,), services=(Service.V1,)), driver)
        assert await prepare(driver) == "u1:d"
        assert (driver.health.reports, driver.services) == ((report,), (Service.V1,))
        driver.prepared.remove("u1")
        await carry_out(Orders(problems={"train": "no"}, registrar=False, versions=("x",)), driver)
        assert await prepare(driver) == "u1:no"
        assert driver.versions == ("x",) and not driver.registry_path.exists()
        await carry_out(Orders(service=False), driver)
        assert driver.registry_path.exists() and not driver.path.exists()
        assert driver.asked(PREPARE)
