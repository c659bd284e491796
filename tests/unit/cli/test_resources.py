from typing import TYPE_CHECKING

import pytest

from devlet.cli.resources import VIEWS, Resource, Resources
from devlet.cli.session import Session
from devlet.errors import DevletError, InvalidInput, NotFound
from devlet.objects import views

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API


@pytest.fixture
def resources(session: Session) -> Resources:
    return Resources(session)


@pytest.mark.parametrize(
    ("text", "api_version", "plural"),
    [
        ("pods", "v1", "pods"),
        ("pod", "v1", "pods"),
        ("po", "v1", "pods"),
        ("Pod", "v1", "pods"),
        ("pods.", "v1", "pods"),
        ("pods.v1.", "v1", "pods"),
        ("events", "v1", "events"),
        ("events.events.k8s.io", "events.k8s.io/v1", "events"),
        ("deploy", "apps/v1", "deployments"),
        ("deployments.apps", "apps/v1", "deployments"),
        ("resourceclaims", "resource.k8s.io/v1", "resourceclaims"),
        ("resourceclaims.resource.k8s.io", "resource.k8s.io/v1", "resourceclaims"),
        ("resourceclaims.v1beta1.resource.k8s.io", "resource.k8s.io/v1beta1", "resourceclaims"),
        ("devicetaintrules", "resource.k8s.io/v1alpha3", "devicetaintrules"),
    ],
)
def test_what_a_name_means(resources: Resources, text: str, api_version: str, plural: str) -> None:
    found = resources.find(text)
    assert (found.api_version, found.plural) == (api_version, plural)


@pytest.mark.parametrize("text", ["", "nothing", "pods.apps", "resourceclaims.v9.resource.k8s.io", "."])
def test_what_means_nothing(resources: Resources, text: str) -> None:
    with pytest.raises(NotFound, match="doesn't have a resource type"):
        resources.find(text)


def test_the_core_group_needs_one_request(resources: Resources, api: "API") -> None:
    resources.find("pods")
    resources.find("nodes")
    assert [path for _, path, _ in api.requests] == ["/api"]


@pytest.mark.parametrize(
    ("text", "plural"),
    [
        ("devices", "devices"),
        ("Plugin", "plugins"),
        ("holder.devlet.dev", "holders"),
        ("device.v1alpha1.devlet.dev", "devices"),
        ("driver", "drivers"),
        ("pclaims", "preparedclaims"),
    ],
)
def test_the_views_of_a_node_are_known_without_asking_it(
    resources: Resources, api: "API", text: str, plural: str
) -> None:
    assert resources.find(text).plural == plural
    assert api.requests == []


@pytest.mark.parametrize(
    ("text", "plural"),
    [
        ("claim", "resourceclaims"),
        ("Claims", "resourceclaims"),
        ("slice", "resourceslices"),
        ("slices", "resourceslices"),
    ],
)
def test_short_words_mean_claims_and_slices_and_ask_for_our_own_table(
    resources: Resources, text: str, plural: str
) -> None:
    found = resources.find(text)
    assert (found.api_version, found.plural, found.joined) == ("resource.k8s.io/v1", plural, True)
    assert not resources.find(plural).joined


def test_a_type_of_that_name_goes_before_the_short_word(resources: Resources, api: "API") -> None:
    kind = {"resource": "claims", "singularResource": "claim", "responseKind": {"kind": "Claim"}, "verbs": ["get"]}
    group = {"metadata": {"name": "x.io"}, "versions": [{"version": "v1", "resources": [kind]}]}
    api.answers["GET", "/apis"] = (200, {"kind": "APIGroupDiscoveryList", "items": [group]})
    assert resources.find("claims").name == "claims.x.io"
    with pytest.raises(NotFound, match='resource type "slices"'):
        resources.find("slices")


def test_another_groups_devices_are_asked_for(resources: Resources) -> None:
    with pytest.raises(NotFound, match=r'resource type "devices\.example\.com"'):
        resources.find("devices.example.com")


def test_a_cluster_without_device_views_names_the_server_that_has_them(
    session: Session, resources: Resources, api: "API"
) -> None:
    session.is_node = False
    with pytest.raises(NotFound, match=r"served only by the devlet on that machine; use --root DIR"):
        resources.find("devices")
    with pytest.raises(NotFound, match=r'resource type "drivers": this view of a node is served only by the devlet'):
        resources.find("drivers")
    assert [path for _, path, _ in api.requests] == ["/api", "/apis"]


def test_kinds_are_found_in_their_version(resources: Resources) -> None:
    assert resources.of_kind("v1", "Pod").plural == "pods"
    assert resources.of_kind("resource.k8s.io/v1beta1", "ResourceClaim").version == "v1beta1"
    with pytest.raises(NotFound, match='does not serve kind "Pod" in version "v2"'):
        resources.of_kind("v2", "Pod")


def test_a_category_has_each_of_its_kinds_once(resources: Resources) -> None:
    assert [r.name for r in resources.category("all")] == ["pods", "deployments.apps"]


def test_an_old_server_is_said_to_be_one(resources: Resources, api: "API") -> None:
    api.answers["GET", "/api"] = (200, {"kind": "APIVersions", "versions": ["v1"]})
    with pytest.raises(DevletError, match=r"Kubernetes 1.27 or newer"):
        resources.find("pods")


def test_odd_discovery_is_passed_over(resources: Resources, api: "API") -> None:
    odd = [None, {"versions": [1, {"resources": [{}, {"verbs": ["get"]}, {"responseKind": {}}]}]}]
    api.answers["GET", "/api"] = (200, {"kind": "APIGroupDiscoveryList", "items": odd})
    assert resources.core == []


def test_paths_hold_one_name_each() -> None:
    pods = Resource("", "v1", "pods", "pod", "Pod", True)
    claims = Resource("g.io", "v1", "claims", "claim", "Claim", False)
    assert pods.item("x", "p") == "/api/v1/namespaces/x/pods/p"
    assert pods.collection("") == "/api/v1/pods"
    assert claims.item("ignored", "c d") == "/apis/g.io/v1/claims/c%20d"
    for bad in ("..", "a/b", "", "a%2f", "a\n"):
        with pytest.raises(InvalidInput, match="expected a name"):
            pods.item("x", bad)


def test_the_commands_know_the_views_by_the_names_that_they_have_in_the_api() -> None:
    kinds = [view.kind for view in views.VIEWS]
    assert [(view.plural, view.kind, view.namespaced, view.short_names, view.api_version) for view in VIEWS] == [
        (kind.plural, kind.kind, kind.namespaced, frozenset(kind.short_names), views.API_VERSION) for kind in kinds
    ]
