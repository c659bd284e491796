import pytest
from msgspec.structs import replace

from devlet.node.devices.learning import learned
from devlet.objects.identifiers import ContainerName
from devlet.objects.types.container import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    ResourceHealth,
    ResourceStatus,
)
from devlet.objects.types.meta import ObjectMeta
from devlet.objects.types.pod import ExtendedResourceClaimStatus, ExtendedResourceMapping, Pod, PodStatus

HELD = ResourceStatus(name="vendor.com/gpu", resources=(ResourceHealth(resource_id="d1", health="Healthy"),))


def pod(state: ContainerState, *statuses: ResourceStatus) -> Pod:
    container = ContainerStatus(name=ContainerName("main"), state=state, allocated_resources_status=statuses)
    return Pod(metadata=ObjectMeta(uid="u"), status=PodStatus(container_statuses=(container,)))


def test_the_status_of_a_running_container_contains_its_devices() -> None:
    (found,) = learned(pod(ContainerState(running=ContainerStateRunning()), HELD))
    assert found.key == ("u", "main", "vendor.com/gpu") and found.devices == {"d1": ()} and found.grant is None


def test_a_container_that_has_ended_holds_nothing() -> None:
    assert learned(pod(ContainerState(terminated=ContainerStateTerminated()), HELD)) == []


def test_claims_are_not_devices_of_plugins() -> None:
    claim = ResourceStatus(name="claim:gpu", resources=HELD.resources)
    assert learned(pod(ContainerState(running=ContainerStateRunning()), claim)) == []


@pytest.mark.spec("DN-11.18")
@pytest.mark.parametrize(("container", "found"), [("main", []), ("other", ["vendor.com/gpu"])])
def test_devices_of_a_claim_behind_an_extended_resource_are_not_devices_of_plugins(
    container: str, found: list[str]
) -> None:
    running = pod(ContainerState(running=ContainerStateRunning()), HELD)
    mapping = ExtendedResourceMapping(container_name=container, resource_name=HELD.name, request_name="r")
    claim = ExtendedResourceClaimStatus(resource_claim_name="c", request_mappings=(mapping,))
    status = replace(running.status, extended_resource_claim_status=claim)
    assert [each.resource for each in learned(replace(running, status=status))] == found
