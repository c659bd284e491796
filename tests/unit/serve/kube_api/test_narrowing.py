import pytest

from devlet.serve.kube_api.narrowing import narrowed, warning


@pytest.mark.parametrize(
    ("target", "own"),
    [
        ("/api/v1/pods", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"),
        ("/api/v1/namespaces/a/pods?limit=5", "/api/v1/namespaces/a/pods?limit=5&fieldSelector=spec.nodeName%3Dn1"),
        (
            "/api/v1/pods?fieldSelector=status.phase%3DRunning&watch=true",
            "/api/v1/pods?watch=true&fieldSelector=status.phase%3DRunning%2Cspec.nodeName%3Dn1",
        ),
        ("/api/v1/nodes", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1"),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn1",
        ),
    ],
)
def test_a_list_is_narrowed_to_what_is_on_the_node(target: str, own: str) -> None:
    assert narrowed(target, "n1") == own


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/secrets",
        "/api/v1/namespaces/a/pods/p",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/api/v1/nodes/n2",
    ],
)
def test_nothing_else_is_changed(target: str) -> None:
    assert narrowed(target, "n1") is None


def test_the_warning_names_the_node() -> None:
    assert "node n1" in warning("n1")
