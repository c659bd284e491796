"""Tables of objects (`as=Table`), built by the server so that every client prints the same columns.

The table of a list has the list's resourceVersion, from which `kubectl get -w` continues to watch. In a stream, each
event has a table of one row, and only the first table describes the columns.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from devlet.errors import BadRequest
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, Resource
from devlet.objects.table_cells import Column, Printer
from devlet.objects.views import VIEWS
from devlet.serve.kube_api import (
    tables_core,
    tables_node,
    tables_pod,
    tables_rbac,
    tables_resource,
    tables_storage,
    tables_workload,
)
from devlet.serve.kube_api.answers import partial_metadata
from devlet.serve.kube_api.tables_custom import custom_printer

__all__ = [
    "INCLUDE_OBJECT",
    "Column",
    "IncludeObject",
    "Printer",
    "include_object",
    "printer",
    "table",
    "table_for_watch",
]

IncludeObject = Literal["Metadata", "Object", "None"]

INCLUDE_OBJECT: tuple[IncludeObject, ...] = ("Metadata", "Object", "None")

_PRINTERS = {view.kind.key: view.printer for view in VIEWS} | {
    "clusterrolebindings.rbac.authorization.k8s.io": tables_rbac.ROLE_BINDINGS,
    "configmaps": tables_core.CONFIG_MAPS,
    "csidrivers.storage.k8s.io": tables_storage.CSI_DRIVERS,
    "csinodes.storage.k8s.io": tables_storage.CSI_NODES,
    "customresourcedefinitions.apiextensions.k8s.io": tables_core.OTHERS,
    "daemonsets.apps": tables_workload.DAEMON_SETS,
    "deviceclasses.resource.k8s.io": tables_core.NAME_AND_AGE,
    "devicetaintrules.resource.k8s.io": tables_resource.DEVICE_TAINT_RULES,
    "events": tables_core.EVENTS,
    "leases.coordination.k8s.io": tables_core.LEASES,
    "namespaces": tables_core.NAMESPACES,
    "nodes": tables_node.NODES,
    "persistentvolumeclaims": tables_storage.PERSISTENT_VOLUME_CLAIMS,
    "persistentvolumes": tables_storage.PERSISTENT_VOLUMES,
    "poddisruptionbudgets.policy": tables_workload.POD_DISRUPTION_BUDGETS,
    "pods": tables_pod.PODS,
    "priorityclasses.scheduling.k8s.io": tables_core.PRIORITY_CLASSES,
    "replicasets.apps": tables_workload.REPLICA_SETS,
    "replicationcontrollers": tables_workload.REPLICATION_CONTROLLERS,
    "resourceclaims.resource.k8s.io": tables_resource.RESOURCE_CLAIMS,
    "resourceclaimtemplates.resource.k8s.io": tables_core.NAME_AND_AGE,
    "resourcepoolstatusrequests.resource.k8s.io": tables_resource.RESOURCE_POOL_STATUS_REQUESTS,
    "resourceslices.resource.k8s.io": tables_resource.RESOURCE_SLICES,
    "rolebindings.rbac.authorization.k8s.io": tables_rbac.ROLE_BINDINGS,
    "secrets": tables_core.SECRETS,
    "serviceaccounts": tables_core.NAME_AND_AGE,
    "services": tables_core.SERVICES,
    "statefulsets.apps": tables_workload.STATEFUL_SETS,
    "storageclasses.storage.k8s.io": tables_storage.STORAGE_CLASSES,
    "volumeattachments.storage.k8s.io": tables_storage.VOLUME_ATTACHMENTS,
}
_BUILT_IN = frozenset(kind.key for kind in BUILT_IN)


def include_object(text: str) -> IncludeObject:
    """Return the value of the query parameter `includeObject`, by default Metadata."""
    for choice in INCLUDE_OBJECT:
        if text == choice:
            return choice
    if not text:
        return "Metadata"
    raise BadRequest(f'includeObject: Invalid value: "{text[:40]}": must be {", ".join(INCLUDE_OBJECT)} or empty')


def printer(resource: Resource, additional_columns: Iterable[Document] | None = None) -> Printer:
    """Return the printer of a resource. `additional_columns` are the additionalPrinterColumns of a custom resource."""
    key = resource.kind.key
    if key in _PRINTERS:
        return _PRINTERS[key]
    return tables_core.OTHERS if key in _BUILT_IN else custom_printer(additional_columns)


def table(
    resource: Resource,
    documents: Iterable[Document],
    *,
    now: datetime,
    include_object: IncludeObject = "Metadata",
    resource_version: str = "",
    continue_: str = "",
    remaining: int | None = None,
    additional_columns: Iterable[Document] | None = None,
    version: str = "v1",
) -> Document:
    """Return the table of a list or a single object. The documents are in the API version of `resource`; `version` is
    that of meta.k8s.io."""
    metadata: Document = {"resourceVersion": resource_version}
    if continue_:
        metadata["continue"] = continue_
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    how = printer(resource, additional_columns)
    rows = [_row(how, document, now, include_object, version) for document in documents]
    return _table(version, metadata, [column.document() for column in how.columns], rows)


def table_for_watch(
    how: Printer,
    document: Document,
    *,
    now: datetime,
    first: bool,
    include_object: IncludeObject = "Metadata",
    version: str = "v1",
) -> Document:
    """Return the table of one event; `first` marks the first event of a stream. Bookmarks have a row as well, because
    the annotation that ends the initial events is in the row's object."""
    metadata = {"resourceVersion": (document.get("metadata") or {}).get("resourceVersion", "")}
    columns = [column.document() for column in how.columns] if first else None
    return _table(version, metadata, columns, [_row(how, document, now, include_object, version)])


def _table(version: str, metadata: Document, columns: list[Document] | None, rows: list[Document]) -> Document:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def _row(how: Printer, document: Document, now: datetime, include: IncludeObject, version: str) -> Document:
    row: Document = {"cells": how.cells(document, now)}
    if how.conditions and (conditions := how.conditions(document)):
        row["conditions"] = conditions
    if include == "None":
        row["object"] = None
    else:
        row["object"] = document if include == "Object" else partial_metadata(document, version=version)
    return row
