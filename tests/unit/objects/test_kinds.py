import pytest

from devlet.errors import NotFound
from devlet.objects.kinds import (
    BUILT_IN,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    Catalogue,
    Kind,
    Resource,
    group_of,
    qualified,
)


def test_a_resource_is_named_as_in_messages() -> None:
    assert (PODS.name, PODS.kind_name, PODS.group, PODS.version) == ("pods", "Pod", "", "v1")
    assert RESOURCE_CLAIMS.name == "resourceclaims.resource.k8s.io"
    assert RESOURCE_CLAIMS.kind_name == "ResourceClaim.resource.k8s.io"
    assert (RESOURCE_CLAIMS.group, RESOURCE_CLAIMS.version) == ("resource.k8s.io", "v1")


def test_a_resource_knows_its_path_and_scope() -> None:
    assert (PODS.path, RESOURCE_CLAIMS.path) == ("/api/v1", "/apis/resource.k8s.io/v1")
    assert (PODS.namespaced, NODES.namespaced, PODS.plural) == (True, False, "pods")


@pytest.mark.parametrize(("api_version", "group"), [("v1", ""), ("apps/v1", "apps"), ("", "")])
def test_the_group_is_what_is_before_the_slash(api_version: str, group: str) -> None:
    assert group_of(api_version) == group
    assert qualified("things", api_version) == (f"things.{group}" if group else "things")


def test_a_kind_is_stored_once_whatever_versions_it_has() -> None:
    keys = [kind.key for kind in BUILT_IN]
    assert len(set(keys)) == len(keys)
    assert EVENTS.kind.key == "events"
    assert all(kind.storage_version in kind.api_versions for kind in BUILT_IN)


@pytest.mark.spec("KA-3.1-metadata")
def test_only_some_kinds_count_generations() -> None:
    counting = {kind.kind for kind in BUILT_IN if kind.counts_generation}
    assert {"Pod", "ResourceSlice", "DeviceClass", "DeviceTaintRule"} <= counting
    assert not counting & {"Node", "Namespace", "ConfigMap", "Secret", "Lease", "Event"}
    assert not counting & {"ResourceClaim", "ResourceClaimTemplate"}


@pytest.mark.spec("KA-3.3")
def test_only_some_kinds_have_a_status() -> None:
    having = {kind.kind for kind in BUILT_IN if kind.has_status}
    wanted = {"Pod", "Node", "Namespace", "ResourceClaim", "DeviceTaintRule", "ResourcePoolStatusRequest"}
    assert wanted <= having
    assert not having & {"ResourceSlice", "DeviceClass", "ResourceClaimTemplate", "Lease", "ConfigMap"}


def test_a_catalogue_finds_resources_by_plural_and_by_kind() -> None:
    catalogue = Catalogue(BUILT_IN)
    assert catalogue.resource("v1", "pods") == PODS
    assert catalogue.of_kind("resource.k8s.io/v1", "ResourceClaim") == RESOURCE_CLAIMS
    assert catalogue.stored("pods") is PODS.kind
    assert catalogue.stored("absent") is None
    with pytest.raises(NotFound):
        catalogue.resource("v1", "absent")
    with pytest.raises(NotFound, match='no matches for kind "Pod" in version "v2"'):
        catalogue.of_kind("v2", "Pod")


def test_kinds_come_and_go_while_a_catalogue_is_in_use() -> None:
    catalogue = Catalogue(BUILT_IN)
    thing = Kind("Thing", "things", ("example.com/v2", "example.com/v1"), storage="example.com/v1")
    listed = iter(catalogue)
    next(listed)
    catalogue.add(thing)
    assert len(list(listed)) == len(BUILT_IN) - 1  # the kinds as they were
    assert catalogue.resource("example.com/v2", "things") == Resource(thing, "example.com/v2")
    assert catalogue.stored("things.example.com") is thing
    catalogue.remove(thing)
    assert thing not in set(catalogue)
    with pytest.raises(NotFound):
        catalogue.of_kind("example.com/v1", "Thing")
