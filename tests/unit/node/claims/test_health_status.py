import pytest

from devlet.node.claims.health import Health
from devlet.node.claims.health_status import extended_resources, statuses
from devlet.node.claims.records import ClaimKey, ContainerClaim, DriverPart
from devlet.objects.identifiers import ClaimName, ContainerName, DeviceIdentity, DriverName, ResourceName
from devlet.objects.types.claim import PreparedDevice
from devlet.objects.types.container import ResourceHealth, ResourceStatus
from devlet.objects.types.pod import ExtendedResourceClaimStatus, ExtendedResourceMapping, Pod, PodStatus

GPU, NIC = DriverName("gpu.example.com"), DriverName("nic.example.com")


def claim(*parts: DriverPart, name: str = "gpu", request: str = "", object: str = "made-gpu") -> ContainerClaim:
    return ContainerClaim(name, request, ClaimKey("default", ClaimName(object)), parts)


def part(*devices: PreparedDevice, driver: DriverName = GPU) -> DriverPart:
    return DriverPart(driver, devices)


def device(name: str, *requests: str, cdi: tuple[str, ...] = (), share: str | None = None) -> PreparedDevice:
    return PreparedDevice("pool", name, share, requests or None, cdi or None)


def healthy(device: DeviceIdentity) -> Health:
    return Health("Healthy", f"{device.device} is fine")


def found(*claims: ContainerClaim, **resources: str) -> tuple[ResourceStatus, ...]:
    names = {request.replace("_", "-"): ResourceName(name) for request, name in resources.items()}
    return statuses(claims, healthy, messages=False, resources=names)


def ids(*claims: ContainerClaim) -> dict[str, list[str]]:
    return {status.name: [each.resource_id for each in status.resources] for status in found(*claims)}


@pytest.mark.spec("DN-10.H11")
def test_the_id_is_the_first_cdi_device_or_else_driver_pool_and_device() -> None:
    devices = part(device("a", cdi=("example.com/gpu=a", "example.com/all=1")), device("b"))
    assert ids(claim(devices)) == {"claim:gpu": ["example.com/gpu=a", "gpu.example.com/pool/b"]}


@pytest.mark.spec("DN-10.H12")
@pytest.mark.parametrize(
    ("message", "messages", "shown"), [("hot", True, "hot"), ("", True, None), ("hot", False, None), ("", False, None)]
)
def test_a_message_is_left_out_if_it_is_empty_or_not_wanted(message: str, messages: bool, shown: str | None) -> None:
    claims = [claim(part(device("a")))]
    (status,) = statuses(claims, lambda _: Health("Unhealthy", message), messages=messages, resources={})
    expected = ResourceHealth(resource_id="gpu.example.com/pool/a", health="Unhealthy", message=shown)
    assert status == ResourceStatus(name="claim:gpu", resources=(expected,))


@pytest.mark.spec("DN-10.H13")
@pytest.mark.parametrize("object", ["gpu", "another-name", "pod-gpu-x7k2p"])
def test_a_claim_is_listed_under_its_name_in_the_pod(object: str) -> None:
    assert list(ids(claim(part(device("a")), name="gpu", object=object))) == ["claim:gpu"]


@pytest.mark.spec("DN-9.2.35")
@pytest.mark.spec("DN-10.H13")
def test_the_health_of_a_share_is_that_of_its_device() -> None:
    asked = []

    def health(device: DeviceIdentity) -> Health:
        asked.append(str(device))
        return Health("Unhealthy")

    shares = part(device("a", share="s1"), device("a", share="s2"))
    (status,) = statuses([claim(shares)], health, messages=True, resources={})
    assert [(each.resource_id, each.health) for each in status.resources] == [("gpu.example.com/pool/a", "Unhealthy")]
    assert set(asked) == {"gpu.example.com/pool/a"}


@pytest.mark.spec("DN-10.H14")
def test_a_request_has_its_own_devices() -> None:
    devices = part(device("a", "main"), device("b", "side"), device("c"), device("d", "main/sub"))
    names = {each: f"gpu.example.com/pool/{each}" for each in "abcd"}
    assert ids(claim(devices, request="main/sub")) == {"claim:gpu/main/sub": [names["a"], names["c"], names["d"]]}
    assert ids(claim(devices, request="main")) == {"claim:gpu/main": [names["a"], names["c"], names["d"]]}
    assert ids(claim(devices, request="side")) == {"claim:gpu/side": [names["b"], names["c"]]}
    assert ids(claim(devices)) == {"claim:gpu": list(names.values())}


@pytest.mark.spec("DN-8.5")
@pytest.mark.spec("DN-11.17")
def test_each_id_is_listed_once_under_a_name_in_the_order_of_preparation() -> None:
    gpu = device("a", cdi=("example.com/gpu=a",))
    both = claim(part(device("z"), gpu, gpu), part(device("b"), driver=NIC))
    one = claim(part(gpu), request="main")
    assert ids(both, one, both) == {
        "claim:gpu": ["gpu.example.com/pool/z", "example.com/gpu=a", "nic.example.com/pool/b"],
        "claim:gpu/main": ["example.com/gpu=a"],
    }


@pytest.mark.spec("DN-8.5")
def test_a_claim_without_devices_has_no_entry() -> None:
    assert found(claim(part()), claim(DriverPart(GPU, None), name="nic")) == ()
    assert found() == ()


@pytest.mark.spec("DN-11.18")
def test_devices_of_an_extended_resource_are_listed_under_its_name() -> None:
    first = claim(part(device("a", "container-0-request-0")), name="", request="container-0-request-0")
    second = claim(part(device("b", "container-0-request-1")), name="", request="container-0-request-1")
    shown = found(first, second, container_0_request_0="example.com/gpu", container_0_request_1="example.com/nic")
    assert [(each.name, each.resources[0].resource_id) for each in shown] == [
        ("example.com/gpu", "gpu.example.com/pool/a"),
        ("example.com/nic", "gpu.example.com/pool/b"),
    ]
    assert found(first) == ()  # a server would refuse any other name


@pytest.mark.spec("DN-11.18")
def test_the_pod_status_maps_requests_to_the_resources_of_a_container() -> None:
    mappings = tuple(
        ExtendedResourceMapping(container_name=container, resource_name=resource, request_name=request)
        for container, resource, request in (
            ("init", "example.com/gpu", "container-0-request-0"),
            ("main", "example.com/gpu", "container-1-request-0"),
            ("main", "example.com/nic", "container-1-request-1"),
        )
    )
    status = ExtendedResourceClaimStatus(resource_claim_name="c", request_mappings=mappings)
    pod = Pod(status=PodStatus(extended_resource_claim_status=status))
    assert extended_resources(pod, ContainerName("init")) == {"container-0-request-0": "example.com/gpu"}
    assert extended_resources(pod, ContainerName("main")) == {
        "container-1-request-0": "example.com/gpu",
        "container-1-request-1": "example.com/nic",
    }
    assert extended_resources(Pod(), ContainerName("main")) == {}


@pytest.mark.spec("DN-11.17")
def test_devices_with_the_same_first_cdi_device_have_different_ids() -> None:
    devices = part(device("a", cdi=("example.com/gpu=common", "x/y=a")), device("b", cdi=("example.com/gpu=common",)))
    assert ids(claim(devices)) == {"claim:gpu": ["example.com/gpu=common", "gpu.example.com/pool/b"]}
