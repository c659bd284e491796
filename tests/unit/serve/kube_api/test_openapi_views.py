import json
from typing import Any

from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue
from devlet.serve.kube_api.openapi_v3 import OpenAPIV3
from devlet.serve.kube_api.openapi_views import with_views
from devlet.serve.kube_api.paths import VIEWS, WithViews


def nothing(api_version: str, kind: str) -> Document | None:
    return None


def test_every_view_and_each_of_its_fields_is_described() -> None:
    def check(schema: dict[str, Any], where: str) -> None:
        for name, field in schema.get("properties", {}).items():
            assert field["description"], f"{where}.{name}"
            check(field, f"{where}.{name}")
            check(field.get("items", {}), f"{where}.{name}")

    for kind in VIEWS:
        schema = with_views(nothing)(kind.api_versions[0], kind.kind)
        assert schema and schema["description"].endswith(("Read only.", "Deleting it releases it."))
        check(schema, kind.kind)


def test_other_kinds_are_left_to_those_who_know_them() -> None:
    schema = with_views(lambda api_version, kind: {"title": f"{api_version} {kind}"})
    assert schema("x.io/v1", "Device") == {"title": "x.io/v1 Device"}


def test_the_document_of_the_group_has_what_can_be_done_and_no_more() -> None:
    openapi = OpenAPIV3(WithViews(Catalogue(())), with_views(nothing))
    rendered = openapi.document("apis/devlet.dev/v1alpha1")
    assert rendered is not None
    assert b'"dev.devlet.v1alpha1.Device"' in rendered.body
    paths = json.loads(rendered.body)["paths"]
    methods = {path: set(item) - {"get", "parameters"} for path, item in paths.items()}
    releasing = "/apis/devlet.dev/v1alpha1/namespaces/{namespace}/preparedclaims/{name}"
    assert {path: rest for path, rest in methods.items() if rest} == {releasing: {"delete"}}
