"""Create, apply, replace, diff and patch, by kubectl, on a config map."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


def data_of(site: "Site", name: str = "cm1") -> dict[str, str] | None:
    found: dict[str, str] | None = site.get("configmaps", name).document.get("data")
    return found


@pytest.mark.spec("KA-10.20")
@pytest.mark.spec("KA-10.21")
async def test_applying_creates_then_changes_nothing_then_changes(site: "Site") -> None:
    assert await site.prints("apply", "-f", "-", stdin=[site.config_map()]) == "configmap/cm1 created\n"
    assert await site.prints("apply", "-f", "-", stdin=[site.config_map()]) == "configmap/cm1 unchanged\n"
    assert await site.prints("apply", "-f", "-", stdin=[site.config_map(k="v2")]) == "configmap/cm1 configured\n"
    assert data_of(site) == {"k": "v2"}


@pytest.mark.spec("KA-10.22")
@pytest.mark.spec("KA-10.23")
@pytest.mark.spec("KA-10.24")
async def test_applying_on_the_server_takes_over_only_by_force(site: "Site") -> None:
    await site.prints("apply", "-f", "-", stdin=[site.config_map(k="v2")])
    applied = await site.prints("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=[site.config_map()])
    assert applied == "configmap/cm1 serverside-applied\n"
    assert data_of(site) == {"k": "v"}

    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm1"}, "data": {"k": "other"}}
    refused = site.patch("configmaps", "cm1", other, kind="apply", query="?fieldManager=other")
    assert refused.summary == "409 Conflict"
    assert [(cause["reason"], cause["field"]) for cause in refused.causes] == [("FieldManagerConflict", ".data.k")]
    assert refused.document["message"] == 'Apply failed with 1 conflict: conflict with "kubectl": .data.k'
    forced = site.patch("configmaps", "cm1", other, kind="apply", query="?fieldManager=other&force=true")
    assert (forced.code, data_of(site)) == (200, {"k": "other"})


@pytest.mark.spec("KA-10.25")
async def test_a_dry_run_changes_nothing(site: "Site") -> None:
    dry = ("apply", "--dry-run=server", "-f", "-")
    assert await site.prints(*dry, stdin=[site.config_map()]) == "configmap/cm1 created (server dry run)\n"
    assert site.get("configmaps", "cm1").code == 404
    answer = site.create("configmaps", site.config_map(), query="?dryRun=All")
    assert answer.code == 201
    assert {"uid", "creationTimestamp"} <= set(answer.document["metadata"])
    assert "resourceVersion" not in answer.document["metadata"]

    await site.prints("apply", "-f", "-", stdin=[site.config_map()])
    assert await site.prints(*dry, stdin=[site.config_map(k="x")]) == "configmap/cm1 configured (server dry run)\n"
    assert data_of(site) == {"k": "v"}


@pytest.mark.spec("KA-10.26")
async def test_a_diff_is_shown_and_is_exit_code_1(site: "Site", tmp_path: Path) -> None:
    await site.prints("apply", "-f", "-", stdin=[site.config_map()])
    file, log = tmp_path / "cm.json", tmp_path / "diff.log"
    file.write_text(json.dumps(site.config_map(k="changed")))
    async with site.running_kubectl(log, "diff", "-f", str(file)) as running:
        assert await running.wait() == 1
    shown = log.read_text().splitlines()
    assert {"-  k: v", "+  k: changed"} <= set(shown)
    assert data_of(site) == {"k": "v"}


@pytest.mark.spec("KA-10.27")
async def test_an_object_is_replaced(site: "Site") -> None:
    site.created("configmaps", site.config_map(old="1"))
    assert await site.prints("replace", "-f", "-", stdin=[site.config_map()]) == "configmap/cm1 replaced\n"
    assert data_of(site) == {"k": "v"}


@pytest.mark.spec("KA-10.28")
@pytest.mark.spec("KA-10.29")
@pytest.mark.spec("KA-10.30")
async def test_an_object_is_patched_in_three_ways(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    patched = "configmap/cm1 patched\n"
    assert await site.prints("patch", "cm", "cm1", "-p", '{"data":{"k":"s"}}') == patched
    assert data_of(site) == {"k": "s"}
    assert await site.prints("patch", "cm", "cm1", "--type=merge", "-p", '{"data":{"k":null}}') == patched
    assert not data_of(site)
    add = '[{"op":"add","path":"/data","value":{"k":"j"}}]'
    assert await site.prints("patch", "cm", "cm1", "--type=json", "-p", add) == patched
    assert data_of(site) == {"k": "j"}


@pytest.mark.spec("KA-10.31")
async def test_a_failed_test_in_a_patch_is_an_invalid_request(site: "Site") -> None:
    site.created("configmaps", site.config_map())
    test = [{"op": "test", "path": "/data/k", "value": "no"}]
    assert site.patch("configmaps", "cm1", test, kind="json").summary == "422 Invalid"
    text = await site.fails("patch", "cm", "cm1", "--type=json", "-p", json.dumps(test))
    site.server.differs("a patch does not fit the object", text.strip())
    assert data_of(site) == {"k": "v"}


@pytest.mark.spec("KA-10.58")
async def test_an_unknown_field_is_refused_warned_about_or_dropped_as_asked(site: "Site") -> None:
    strict = await site.fails("create", "-f", "-", stdin=[site.config_map() | {"dataa": {}}])
    assert strict == (
        'Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a '
        'ConfigMap: strict decoding error: unknown field "dataa"\n'
    )
    warned = await site.kubectl("create", "--validate=warn", "-f", "-", stdin=[site.config_map("cm2") | {"dataa": {}}])
    assert (warned.stdout, warned.stderr) == ("configmap/cm2 created\n", 'Warning: unknown field "dataa"\n')
    silent = await site.kubectl("create", "--validate=false", "-f", "-", stdin=[site.config_map("cm3") | {"dataa": {}}])
    assert (silent.stdout, silent.stderr) == ("configmap/cm3 created\n", "")
    kept = "kept" if "dataa" in site.get("configmaps", "cm3").document else "dropped"
    site.server.differs("an object has an unknown field, and strict validation is not requested", kept)
