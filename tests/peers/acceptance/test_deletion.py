"""Deletion: by name, all of a kind, with preconditions, with finalizers, with dependents."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.55")
async def test_what_was_deleted_is_not_found_the_second_time(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    deleted = await site.prints("delete", "cm", "cm1")
    assert deleted == f'configmap "cm1" deleted from {site.namespace} namespace\n'
    assert await site.fails("delete", "cm", "cm1") == ('Error from server (NotFound): configmaps "cm1" not found\n')


@pytest.mark.spec("KA-10.56")
async def test_all_are_deleted_and_each_is_named(site: "Site") -> None:
    names = ("cm1", "cm2")
    for name in names:
        site.created("configmaps", site.config_map(name))
    deleted = (await site.prints("delete", "cm", "--all")).splitlines()
    assert {f'configmap "{name}" deleted from {site.namespace} namespace' for name in names} <= set(deleted)
    assert [site.get("configmaps", name).code for name in names] == [404, 404]
    assert await site.prints("delete", "cm", "-l", "a=b") == "No resources found\n"


@pytest.mark.spec("KA-10.61")
async def test_a_deletion_that_names_another_uid_is_refused(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    answer = site.delete("configmaps", "cm1", {"preconditions": {"uid": "not-this-one"}})
    assert answer.summary == "409 Conflict"
    assert "the UID in the precondition (not-this-one) does not match the UID in record" in answer.document["message"]
    assert site.get("configmaps", "cm1").code == 200


@pytest.mark.spec("KA-10.70")
async def test_a_finalizer_keeps_an_object_until_it_is_removed(site: "Site") -> None:
    document = site.config_map()
    document["metadata"]["finalizers"] = ["example.com/hold"]
    site.created("configmaps", document)
    held = site.delete("configmaps", "cm1")
    assert held.code == 200
    assert held.document["metadata"]["deletionTimestamp"]
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    refused = site.patch("configmaps", "cm1", more)
    assert refused.summary == "422 Invalid"
    assert "no new finalizers can be added if the object is being deleted" in refused.document["message"]
    assert site.patch("configmaps", "cm1", {"metadata": {"finalizers": None}}).code == 200
    assert site.get("configmaps", "cm1").code == 404


@pytest.mark.spec("KA-10.71")
async def test_an_owner_deleted_in_the_foreground_waits_for_its_dependent(site: "Site") -> None:
    owner = site.created("configmaps", site.config_map("owner"))
    dependent = site.config_map("dependent")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    dependent["metadata"] |= {
        "finalizers": ["example.com/hold"],
        "ownerReferences": [reference | {"blockOwnerDeletion": True}],
    }
    site.created("configmaps", dependent)
    # The reference's collector watches: give it the time of a command to see both before the owner goes.
    await site.prints("get", "cm")

    deleted = site.delete("configmaps", "owner", query="?propagationPolicy=Foreground")
    assert deleted.code == 200
    assert deleted.document["metadata"]["finalizers"] == ["foregroundDeletion"]
    site.eventually(lambda: "deletionTimestamp" in site.get("configmaps", "dependent").document["metadata"])
    assert site.get("configmaps", "owner").document["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert site.patch("configmaps", "dependent", {"metadata": {"finalizers": None}}).code == 200
    site.eventually(lambda: site.get("configmaps", "owner").code == 404)
    assert site.get("configmaps", "dependent").code == 404
