"""Schemas of the node's views, for `kubectl explain`."""

from devlet.objects.documents import Document
from devlet.objects.kinds import VIEWS_GROUP, group_of
from devlet.objects.views import VIEWS
from devlet.serve.kube_api.openapi_custom import CustomSchema

__all__ = ["with_views"]


def with_views(custom: CustomSchema) -> CustomSchema:
    """Return the schemas of the views, and for other groups those that `custom` returns."""

    def schema(api_version: str, kind: str) -> Document | None:
        return _SCHEMAS.get(kind) if group_of(api_version) == VIEWS_GROUP else custom(api_version, kind)

    return schema


_SCHEMAS = {view.kind.kind: view.schema for view in VIEWS}
