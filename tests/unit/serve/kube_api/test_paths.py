import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import BadRequest, DevletError, NotFound
from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.serve.kube_api.paths import Group, GroupVersion, Other, Target, WithViews, is_view, parse, path_of

CATALOGUE = Catalogue(BUILT_IN)


def target(path: str) -> tuple[str, str, str, str]:
    found = parse(CATALOGUE, path)
    assert isinstance(found, Target)
    return found.resource.name, found.namespace, found.name, found.subresource


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces/ns/pods", ("pods", "ns", "", "")),
        ("/api/v1/namespaces/ns/pods/p", ("pods", "ns", "p", "")),
        ("/api/v1/namespaces/ns/pods/p/status", ("pods", "ns", "p", "status")),
        ("/api/v1/namespaces", ("namespaces", "", "", "")),
        ("/api/v1/namespaces/ns", ("namespaces", "", "ns", "")),
        ("/api/v1/namespaces/ns/status", ("namespaces", "", "ns", "status")),
        ("/api/v1/namespaces/ns/finalize", ("namespaces", "", "ns", "finalize")),
        ("/api/v1/namespaces/ns/bindings", ("bindings", "ns", "", "")),
        ("/apis/resource.k8s.io/v1beta1/resourceslices/s", ("resourceslices.resource.k8s.io", "", "s", "")),
        ("/apis/authentication.k8s.io/v1/tokenreviews", ("tokenreviews.authentication.k8s.io", "", "", "")),
        ("/api/v1/nodes/a%2Eb", ("nodes", "", "a.b", "")),
    ],
)
def test_a_path_names_a_resource(path: str, expected: tuple[str, str, str, str]) -> None:
    assert target(path) == expected


def test_other_paths_are_distinguished() -> None:
    assert parse(CATALOGUE, "/api/v1") == GroupVersion("v1")
    assert parse(CATALOGUE, "/apis/apps/v1/") == GroupVersion("apps/v1")
    assert parse(CATALOGUE, "/apis/apps") == Group("apps")
    assert parse(CATALOGUE, "/readyz/ping") == Other("/readyz/ping")
    assert parse(CATALOGUE, "/") == Other("/")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/foos",
        "/apis/nope/v1/pods",
        "/api/v1/namespaces/ns/nodes",
        "/api/v1/nodes/n/status/x/y",
        "/api/v1/nodes/a%2Fb",
        "/api/v1/nodes/a%00b",
        "/api/v1/nodes/%ff",
        "/api/v1/namespaces/../../etc/passwd",
    ],
)
def test_absent_objects_and_resources_are_not_found(path: str) -> None:
    with pytest.raises(NotFound):
        parse(CATALOGUE, path)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/../pods",
        "/api/v1/nodes/%2e%2e",
        "/api/v1/nodes/.",
        "/api/v1/namespaces//pods",
        "/" + "a" * 5000,
    ],
)
def test_misleading_and_overlong_paths_are_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        parse(CATALOGUE, path)


@given(st.lists(st.sampled_from(["api", "apis", "v1", "namespaces", "pods", "%ff", "..", "", "x", "status"])))
def test_any_path_is_parsed_or_refused(parts: list[str]) -> None:
    try:
        found = parse(CATALOGUE, "/" + "/".join(parts))
    except DevletError:
        return
    assert isinstance(found, Target | GroupVersion | Group | Other)


def test_views_are_found_beside_the_changing_stored_kinds() -> None:
    stored = Catalogue(())
    both = WithViews(stored)
    robot = Kind("Robot", "robots", ("x.io/v1",))
    stored.add(robot)
    assert [kind.plural for kind in both] == ["robots", "devices", "plugins", "holders", "drivers", "preparedclaims"]
    assert both.resource("x.io/v1", "robots").kind is robot is both.stored("robots.x.io")
    assert both.of_kind("x.io/v1", "Robot").kind is robot
    device = both.of_kind("devlet.dev/v1alpha1", "Device").kind
    assert is_view(device) and device is both.stored("devices.devlet.dev")
    assert not is_view(robot)
    with pytest.raises(NotFound):
        both.resource("devlet.dev/v1alpha1", "robots")


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/version", "/version"),
        ("/api/v1/pods?watch=1", "/api/v1/pods"),
        ("/apis/http://x/y", "/apis/http://x/y"),
        ("https://localhost:6443/api/v1/pods?a=b://c", "/api/v1/pods"),
        ("http://localhost", "/"),
        ("http://localhost?a=/b", "/"),
        ("*", "*"),
    ],
)
def test_the_path_of_a_request_may_be_in_a_whole_url(target: str, path: str) -> None:
    assert path_of(target) == path
