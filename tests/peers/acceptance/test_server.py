"""What a server says about itself: version, health, resources, their fields."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.1")
async def test_its_version_is_1_36(site: "Site") -> None:
    assert "Server Version: v1.36." in await site.prints("version")


@pytest.mark.spec("KA-10.2")
@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_it_is_healthy(site: "Site", path: str) -> None:
    assert await site.prints("get", "--raw", path) == "ok"


@pytest.mark.spec("KA-10.3")
async def test_its_readiness_lists_the_checks(site: "Site") -> None:
    lines = (await site.prints("get", "--raw", "/readyz?verbose")).splitlines()
    assert "[+]ping ok" in lines
    assert lines[-1] == "readyz check passed"


@pytest.mark.spec("KA-10.4")
async def test_the_resources_of_the_resource_group_have_their_versions(site: "Site") -> None:
    found = {row[0]: row[1] for row in await site.rows("api-resources", "--api-group=resource.k8s.io", "--no-headers")}
    v1 = dict.fromkeys(("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"), "v1")
    other = {"devicetaintrules": "v1beta2", "resourcepoolstatusrequests": "v1alpha3"}
    assert found == {name: f"resource.k8s.io/{version}" for name, version in (v1 | other).items()}


@pytest.mark.spec("KA-10.5")
async def test_the_api_versions_include_those_of_the_resource_group(site: "Site") -> None:
    resource = {f"resource.k8s.io/{version}" for version in ("v1", "v1beta2", "v1beta1")}
    others = {"v1", "coordination.k8s.io/v1", "events.k8s.io/v1"}
    assert resource | others <= set((await site.prints("api-versions")).split())


@pytest.mark.spec("KA-10.6")
async def test_the_four_namespaces_are_there(site: "Site") -> None:
    status = {row[0]: row[1] for row in await site.rows("get", "ns")}
    assert status["NAME"] == "STATUS"
    names = ("default", "kube-system", "kube-public", "kube-node-lease")
    assert {name: status.get(name) for name in names} == dict.fromkeys(names, "Active")


@pytest.mark.spec("KA-10.18")
async def test_all_in_all_namespaces_can_be_listed(site: "Site") -> None:
    site.created("pods", site.pod_document())
    assert [site.namespace, "pod/p1"] in [row[:2] for row in await site.rows("get", "all", "-A")]


@pytest.mark.spec("KA-10.19")
async def test_a_field_is_explained(site: "Site") -> None:
    assert "FIELD: resourceClaims <[]PodResourceClaim>" in await site.prints("explain", "pod.spec.resourceClaims")


@pytest.mark.spec("KA-10.57")
async def test_what_does_not_exist_is_named(site: "Site") -> None:
    assert await site.fails("get", "pod", "nosuch") == 'Error from server (NotFound): pods "nosuch" not found\n'
    assert await site.fails("get", "foo") == 'error: the server doesn\'t have a resource type "foo"\n'
