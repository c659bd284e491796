"""The discovery documents."""

import pytest

from devlet.errors import NotFound
from devlet.objects.kinds import BUILT_IN, Catalogue, Kind
from devlet.serve.kube_api import discovery

CATALOGUE = Catalogue(BUILT_IN)
FULL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def entries(api_version: str, catalogue: Catalogue = CATALOGUE) -> dict[str, dict[str, object]]:
    return {entry["name"]: entry for entry in discovery.resource_list(catalogue, api_version)["resources"]}


@pytest.mark.spec("KA-1.3")
def test_the_core_api_has_one_version() -> None:
    wanted = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
    assert discovery.api_versions("127.0.0.1:6443")["serverAddressByClientCIDRs"] == wanted
    assert discovery.api_versions()["versions"] == ["v1"]


@pytest.mark.spec("KA-1.3")
def test_a_group_prefers_stable_to_beta_to_alpha_and_newer_to_older() -> None:
    found = discovery.group(CATALOGUE, "resource.k8s.io")
    assert [version["version"] for version in found["versions"]] == ["v1", "v1beta2", "v1beta1", "v1alpha3"]
    assert found["preferredVersion"] == {"groupVersion": "resource.k8s.io/v1", "version": "v1"}
    odd = Catalogue([Kind("A", "as", tuple(f"x.io/{v}" for v in ("foo", "v1alpha1", "v2", "v10beta3", "v10", "v1")))])
    found = discovery.group(odd, "x.io")
    assert [version["version"] for version in found["versions"]] == ["v10", "v2", "v1", "v10beta3", "v1alpha1", "foo"]


@pytest.mark.spec("KA-1.3")
def test_the_core_group_is_not_in_the_list_of_groups() -> None:
    names = [group["name"] for group in discovery.group_list(CATALOGUE)["groups"]]
    assert "" not in names
    assert {"resource.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"} <= set(names)
    assert len(names) == len(set(names))


@pytest.mark.spec("KA-1.4")
def test_resources_have_their_names_scope_and_verbs() -> None:
    pods = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": FULL}
    assert entries("v1")["pods"] == {**pods, "shortNames": ["po"], "categories": ["all"]}
    assert entries("v1")["namespaces"]["verbs"] == [verb for verb in FULL if verb != "deletecollection"]
    assert entries("resource.k8s.io/v1")["deviceclasses"]["namespaced"] is False


@pytest.mark.spec("KA-1.4")
def test_subresources_name_their_kind() -> None:
    core = entries("v1")
    assert core["pods/status"]["verbs"] == ["get", "patch", "update"]
    assert core["pods/binding"]["kind"] == "Binding"
    eviction = {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}
    assert core["pods/eviction"] == {"name": "pods/eviction", "singularName": "", "namespaced": True, **eviction}
    assert core["serviceaccounts/token"]["kind"] == "TokenRequest"
    assert core["namespaces/finalize"]["verbs"] == ["update"]


@pytest.mark.spec("KA-1.4")
@pytest.mark.parametrize(
    ("api_version", "names"),
    [
        ("v1", {"bindings"}),
        ("authentication.k8s.io/v1", {"tokenreviews", "selfsubjectreviews"}),
        (
            "authorization.k8s.io/v1",
            {
                "selfsubjectaccessreviews",
                "selfsubjectrulesreviews",
                "subjectaccessreviews",
                "localsubjectaccessreviews",
            },
        ),
    ],
)
def test_reviews_can_only_be_created(api_version: str, names: set[str]) -> None:
    found = entries(api_version)
    assert {name for name, entry in found.items() if "/" not in name and entry["verbs"] == ["create"]} == names


@pytest.mark.spec("KA-1.3")
def test_unserved_groups_and_versions_are_not_found() -> None:
    for unknown in ("v2", "apps/v2", "nothing.io/v1", ""):
        with pytest.raises(NotFound):
            discovery.resource_list(CATALOGUE, unknown)
    for unknown in ("nothing.io", ""):
        with pytest.raises(NotFound):
            discovery.group(CATALOGUE, unknown)


@pytest.mark.spec("KA-1.2")
def test_the_aggregated_documents_have_the_core_group_and_all_others() -> None:
    core, others = discovery.aggregated(CATALOGUE, core=True), discovery.aggregated(CATALOGUE, core=False)
    assert [group["metadata"] for group in core["items"]] == [{}]
    assert {"name": "resource.k8s.io"} in [group["metadata"] for group in others["items"]]
    pods = next(found for found in core["items"][0]["versions"][0]["resources"] if found["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "", "kind": "Pod"}
    assert (pods["scope"], pods["singularResource"]) == ("Namespaced", "pod")
    kinds = {sub["subresource"]: sub["responseKind"] for sub in pods["subresources"]}
    assert kinds["status"] == {"group": "", "version": "", "kind": "Pod"}
    assert kinds["eviction"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


@pytest.mark.spec("KA-1.2")
def test_both_forms_list_the_same_resources() -> None:
    found = set()
    for core in (True, False):
        for group in discovery.aggregated(CATALOGUE, core=core)["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                api_version = f"{name}/{version['version']}" if name else version["version"]
                for resource in version["resources"]:
                    subs = [f"/{sub['subresource']}" for sub in resource.get("subresources", ())]
                    found |= {(api_version, resource["resource"] + sub) for sub in ["", *subs]}
    legacy = {(v, name) for v in discovery.group_versions(CATALOGUE) for name in entries(v)}
    assert found == legacy


def test_custom_resources_come_and_go() -> None:
    catalogue = Catalogue(BUILT_IN)
    robot = Kind("Robot", "robots", ("example.com/v1",), subresources=("scale",))
    catalogue.add(robot)
    assert entries("example.com/v1", catalogue)["robots/scale"]["group"] == "autoscaling"
    catalogue.remove(robot)
    with pytest.raises(NotFound):
        discovery.group(catalogue, "example.com")


def test_every_resource_has_verbs() -> None:
    for api_version in discovery.group_versions(CATALOGUE):
        assert all(entry["verbs"] for entry in entries(api_version).values())
