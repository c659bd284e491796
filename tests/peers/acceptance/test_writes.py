"""Writes over plain HTTP: versions, generated names, content types, protobuf."""

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.50")
async def test_kubectl_creates_with_protobuf_bodies(site: "Site") -> None:
    made = await site.prints("create", "cm", "c2", "--from-literal=a=b")
    assert made == "configmap/c2 created\n"
    assert site.get("configmaps", "c2").document["data"] == {"a": "b"}
    assert await site.prints("create", "secret", "generic", "s2", "--from-literal=a=b") == "secret/s2 created\n"
    assert site.get("secrets", "s2").document["data"] == {"a": "Yg=="}
    assert await site.prints("create", "sa", "sa2") == "serviceaccount/sa2 created\n"
    assert site.get("serviceaccounts", "sa2").code == 200


@pytest.mark.spec("KA-10.60")
async def test_a_write_of_an_old_version_conflicts(site: "Site") -> None:
    old = site.created("configmaps", site.config_map())
    site.patch("configmaps", "cm1", {"data": {"k": "newer"}})
    answer = site.put("configmaps", old)
    assert answer.summary == "409 Conflict"
    assert answer.document["details"] == {"name": "cm1", "kind": "configmaps"}
    assert answer.document["message"] == (
        'Operation cannot be fulfilled on configmaps "cm1": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


@pytest.mark.spec("KA-10.62")
async def test_a_generated_name_has_five_letters_that_make_no_words(site: "Site") -> None:
    stored = site.created("configmaps", {"metadata": {"generateName": "x-"}})
    assert re.fullmatch("x-[bcdfghjklmnpqrstvwxz2456789]{5}", stored["metadata"]["name"])
    assert stored["metadata"]["generateName"] == "x-"


@pytest.mark.spec("KA-10.63")
async def test_writing_what_is_there_is_no_change(site: "Site") -> None:
    stored = site.created("configmaps", site.config_map())
    version = stored["metadata"]["resourceVersion"]
    with site.server.watch(site.path("configmaps") + f"?resourceVersion={version}&timeoutSeconds=1") as stream:
        answers = [site.put("configmaps", stored) for _ in range(2)]
        assert [answer.code for answer in answers] == [200, 200]
        assert [answer.document["metadata"]["resourceVersion"] for answer in answers] == [version] * 2
        assert [e for e in stream.rest() if e["object"]["metadata"]["name"] == "cm1"] == []


@pytest.mark.spec("KA-10.78")
async def test_a_lease_is_updated_with_its_version_or_created_by_the_update(site: "Site") -> None:
    lease = {"metadata": {"name": "l1"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 40}}
    created = site.put("leases", lease)
    assert created.code == 201
    refused = site.put("leases", lease)
    assert refused.summary == "422 Invalid"
    assert [(cause["field"], cause["message"]) for cause in refused.causes] == [
        ("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
    ]
    assert site.put("leases", created.document).code == 200


@pytest.mark.spec("KA-10.79")
async def test_a_body_of_an_unknown_type_is_not_read(site: "Site") -> None:
    posted = site.server.request("POST", site.path("configmaps"), site.config_map(), content_type="text/plain")
    assert posted.summary == "415 UnsupportedMediaType"
    site.created("configmaps", site.config_map())
    patched = site.server.request("PATCH", site.path("configmaps", "cm1"), {"data": {"k": "x"}})
    assert patched.summary == "415 UnsupportedMediaType"


@pytest.mark.spec("KA-10.80")
async def test_an_answer_in_html_is_not_to_be_had(site: "Site") -> None:
    answer = site.server.request("GET", site.path("configmaps"), accept="text/html")
    assert answer.summary == "406 NotAcceptable"
