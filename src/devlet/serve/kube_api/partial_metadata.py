"""Objects reduced to their metadata, for clients that need no more: garbage collection, `kubectl get` of tables.

Unlike the items of other lists, those of a PartialObjectMetadataList carry kind and apiVersion."""

from collections.abc import Iterable

from devlet.objects.documents import Document

__all__ = ["partial_metadata", "partial_metadata_list"]


def partial_metadata(document: Document, *, version: str = "v1") -> Document:
    """`version` is that of meta.k8s.io."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": document.get("metadata", {}),
    }


def partial_metadata_list(documents: Iterable[Document], metadata: Document, *, version: str = "v1") -> Document:
    """`metadata` is that of the list."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "items": [partial_metadata(document, version=version) for document in documents],
    }
