"""Views of containers."""

from devlet.objects.documents import view
from devlet.objects.types.container import Container, ContainerStatus


def test_a_container_asks_for_resources_and_claims() -> None:
    resources = {"limits": {"cpu": 1, "memory": "1Gi"}, "claims": [{"name": "gpu", "request": "big"}, {"name": "nic"}]}
    container = view(Container, {"name": "c", "resources": resources})
    assert container.resources.limits == {"cpu": 1, "memory": "1Gi"}
    assert [(claim.name, claim.request) for claim in container.resources.claims] == [("gpu", "big"), ("nic", "")]


def test_an_init_container_that_always_restarts_is_a_sidecar() -> None:
    assert view(Container, {"name": "c", "restartPolicy": "Always"}).is_sidecar
    assert not view(Container, {"name": "c"}).is_sidecar


def test_names_with_capitals_are_found() -> None:
    status = view(
        ContainerStatus,
        {
            "containerID": "none://u/c",
            "imageID": "i",
            "state": {"terminated": {"exitCode": 3, "containerID": "none://u/c"}},
            "allocatedResourcesStatus": [
                {"name": "claim:gpu", "resources": [{"resourceID": "vendor/gpu=0", "health": "Healthy"}]}
            ],
        },
    )
    assert (status.container_id, status.image_id) == ("none://u/c", "i")
    assert status.state.terminated is not None
    assert status.state.terminated.exit_code == 3
    assert status.allocated_resources_status[0].resources[0].resource_id == "vendor/gpu=0"
