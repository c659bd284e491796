from devlet.node.devices.learning import learned
from devlet.objects.container import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    ResourceHealth,
    ResourceStatus,
)
from devlet.objects.identifiers import ContainerName
from devlet.objects.meta import ObjectMeta
from devlet.objects.pod import Pod, PodStatus

HELD = ResourceStatus(name="vendor.com/gpu", resources=(ResourceHealth(resource_id="d1", health="Healthy"),))


def pod(state: ContainerState, *statuses: ResourceStatus) -> Pod:
    container = ContainerStatus(name=ContainerName("main"), state=state, allocated_resources_status=statuses)
    return Pod(metadata=ObjectMeta(uid="u"), status=PodStatus(container_statuses=(container,)))


def test_a_running_container_tells_what_it_holds() -> None:
    (found,) = learned(pod(ContainerState(running=ContainerStateRunning()), HELD))
    assert found.key == ("u", "main", "vendor.com/gpu") and found.devices == {"d1": ()} and found.grant is None


def test_a_container_that_has_ended_holds_nothing() -> None:
    assert learned(pod(ContainerState(terminated=ContainerStateTerminated()), HELD)) == []


def test_claims_are_not_devices_of_plugins() -> None:
    claim = ResourceStatus(name="claim:gpu", resources=HELD.resources)
    assert learned(pod(ContainerState(running=ContainerStateRunning()), claim)) == []
