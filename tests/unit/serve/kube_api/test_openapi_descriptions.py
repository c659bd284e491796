"""Descriptions."""

import pytest

from devlet.objects.schema import messages as schema
from devlet.serve.kube_api import openapi_descriptions
from devlet.serve.kube_api.openapi_descriptions import descriptions


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_all_versions_of_a_message_share_their_descriptions(version: str) -> None:
    assert "driver" in descriptions(f"k8s.io.api.resource.{version}.ResourceSliceSpec")


def test_other_messages_have_no_descriptions() -> None:
    assert descriptions("k8s.io.api.core.v1.AzureDiskVolumeSource") == {}
    assert descriptions("") == {}


def test_every_description_is_of_an_existing_field() -> None:
    fields: dict[str, set[str]] = {}
    for message_name in _reachable():
        group, _, rest = message_name.removeprefix("k8s.io.api.").partition(".")
        fields.setdefault(f"{group}.{rest.rpartition('.')[2]}", set()).update(schema.message(message_name).properties)
    for key, said in openapi_descriptions._DESCRIPTIONS.items():
        assert said.keys() - {""} <= fields[key], key


def _reachable() -> set[str]:
    found: set[str] = set()
    waiting = list(schema.kinds().values())
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += [field.type for field in schema.message(name).properties.values() if field.is_message]
    return found
