"""Device classes, slices, claims and their templates: base.yaml of the checklist, and what the server refuses."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.7")
@pytest.mark.spec("KA-10.8")
async def test_the_objects_of_a_node_are_created_once(site: "Site") -> None:
    created = await site.prints("create", "-f", "-", stdin=site.base())
    assert created.splitlines() == [
        f"node/{site.node} created",
        f"deviceclass.resource.k8s.io/{site.driver} created",
        "resourceclaimtemplate.resource.k8s.io/tmpl created",
        f"resourceslice.resource.k8s.io/slice-{site.word} created",
    ]
    refused = (await site.fails("create", "-f", "-", stdin=site.base())).splitlines()
    assert [line.startswith("Error from server (AlreadyExists)") for line in refused] == [True] * 4
    assert [line.endswith("already exists") for line in refused] == [True] * 4


@pytest.mark.spec("KA-10.9")
async def test_slices_are_listed_with_node_driver_and_pool(site: "Site") -> None:
    site.created("resourceslices", site.slice_document())
    header, *rows = await site.rows("get", "resourceslices")
    assert header == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert [f"slice-{site.word}", site.node, site.driver, site.node] in [row[:4] for row in rows]


@pytest.mark.spec("KA-10.10")
async def test_a_slice_has_a_generation(site: "Site") -> None:
    site.created("resourceslices", site.slice_document())
    name = f"slice-{site.word}"
    assert await site.prints("get", "resourceslice", name, "-o", "jsonpath={.metadata.generation}") == "1"


@pytest.mark.spec("KA-10.11")
async def test_slices_are_selected_by_driver_and_node(site: "Site") -> None:
    site.created("resourceslices", site.slice_document())
    selector = f"--field-selector=spec.driver={site.driver},spec.nodeName={site.node}"
    found = await site.prints("get", "resourceslices", selector, "-o", "name")
    assert found == f"resourceslice.resource.k8s.io/slice-{site.word}\n"


@pytest.mark.spec("KA-10.12")
async def test_slices_are_not_selected_by_their_pool(site: "Site") -> None:
    text = await site.fails("get", "resourceslices", "--field-selector=spec.pool.name=x")
    assert text.startswith("Error from server (BadRequest)")
    assert "field label not supported" in text


@pytest.mark.spec("KA-10.13")
async def test_an_old_version_of_a_slice_has_its_old_shape_and_a_warning(site: "Site") -> None:
    site.created("resourceslices", site.slice_document())
    done = await site.kubectl("get", "resourceslices.v1beta1.resource.k8s.io", f"slice-{site.word}", "-o", "yaml")
    assert "  - basic: {}\n    name: gpu-0\n" in done.stdout
    assert done.stderr == (
        "Warning: resource.k8s.io/v1beta1 ResourceSlice is deprecated in v1.35+, unavailable in v1.38+\n"
    )


@pytest.mark.spec("KA-10.75")
async def test_a_claim_is_allocated_before_it_is_reserved_and_keeps_its_allocation(site: "Site") -> None:
    claim = site.created("resourceclaims", site.claim_document())
    pod = site.pod_document()
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c1"}]
    reserved = [{"resource": "pods", "name": "p1", "uid": site.created("pods", pod)["metadata"]["uid"]}]
    early = site.put("resourceclaims", claim | {"status": {"reservedFor": reserved}}, "status")
    assert early.summary == "422 Invalid"

    result = {"request": "gpu", "driver": site.driver, "pool": site.node, "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}}
    allocated = site.put("resourceclaims", claim | {"status": {"allocation": allocation}}, "status")
    assert allocated.code == 200
    assert (await site.rows("get", "resourceclaims", "--no-headers"))[0][:2] == ["c1", "allocated"]
    both = site.put(
        "resourceclaims", allocated.document | {"status": {"allocation": allocation, "reservedFor": reserved}}, "status"
    )
    assert both.code == 200
    assert (await site.rows("get", "resourceclaims", "--no-headers"))[0][:2] == ["c1", "allocated,reserved"]

    other = {"devices": {"results": [result | {"device": "gpu-1"}]}}
    changed = site.put(
        "resourceclaims", both.document | {"status": {"allocation": other, "reservedFor": reserved}}, "status"
    )
    assert (changed.summary, [cause["field"] for cause in changed.causes]) == ("422 Invalid", ["status.allocation"])
    cleared = site.put("resourceclaims", both.document | {"status": {}}, "status")
    assert cleared.code == 200
    assert not cleared.document["status"]


@pytest.mark.spec("KA-10.76")
async def test_a_slice_stays_on_its_node(site: "Site") -> None:
    stored = site.created("resourceslices", site.slice_document())
    stored["spec"]["nodeName"] = "elsewhere"
    answer = site.put("resourceslices", stored)
    assert answer.summary == "422 Invalid"
    assert [(cause["field"], cause["reason"]) for cause in answer.causes] == [("spec.nodeName", "FieldValueInvalid")]
    assert "field is immutable" in answer.causes[0]["message"]


@pytest.mark.spec("KA-10.77")
async def test_a_slice_has_at_most_128_devices(site: "Site") -> None:
    answer = site.create("resourceslices", site.slice_document(devices=129))
    assert answer.summary == "422 Invalid"
    assert [(cause["field"], cause["reason"]) for cause in answer.causes] == [("spec.devices", "FieldValueTooMany")]
    assert answer.causes[0]["message"] == "Too many: 129: must have at most 128 items"
