"""Convert what a client sent to a document in storage form, with the right kind and types, and report unknown
fields."""

from collections.abc import Sequence

from devlet.cluster.client import FieldValidation, WriteOptions
from devlet.errors import BadRequest, Cause, InvalidObject
from devlet.objects.conversion import convert
from devlet.objects.custom_resources import DEFINITION
from devlet.objects.documents import Document
from devlet.objects.kinds import Resource
from devlet.objects.schema.messages import Message, message_of
from devlet.objects.schema.messages import message as message_named
from devlet.objects.schema.shape import conform, conform_any, conform_kind
from devlet.objects.types.definition import check_types


def accept(
    resource: Resource,
    document: Document,
    options: WriteOptions,
    *,
    patched: bool = False,
    live: Document | None = None,
) -> Document:
    """Return the document in the storage version; the caller owns it. Errors in the result of a patch are reported as
    errors of the patch.

    `live` is the object that was patched: parts of it that are in the result were checked already."""
    if not patched:
        return _accepted(resource, document, options)
    try:
        return _accepted(resource, document, options, live, patched=True)
    except BadRequest as e:
        cause = Cause("FieldValueInvalid", f"Invalid value: {e}", "patch")
        raise InvalidObject(resource.kind_name, _name_of(document), [cause]) from e


def _accepted(
    resource: Resource,
    document: Document,
    options: WriteOptions,
    live: Document | None = None,
    *,
    patched: bool = False,
) -> Document:
    document = _typed(resource, document)
    message = message_of(document["apiVersion"], document["kind"])
    if message is None:
        return convert(_untabled(resource, document), resource.kind.storage_version)
    if options.shaped:
        return convert(document, resource.kind.storage_version)
    conformed = conform(document, message, live)
    if not conformed.unknown:
        return convert(conformed.document, resource.kind.storage_version)
    _report(resource, document, conformed.unknown, options, patched)
    return _converted(resource, conformed.document)


def _converted(resource: Resource, document: Document) -> Document:
    """Convert to the storage version, which may have fields, with types, that the document's version does not have."""
    version, kind = resource.kind.storage_version, resource.kind.kind
    made = convert(document, version)
    return made if document["apiVersion"] == version else conform_kind(made, version, kind)


def _untabled(resource: Resource, document: Document) -> Document:
    """Check a definition or a custom resource, of which the schema table has only the metadata."""
    metadata = conform(document["metadata"], _metadata_message()).document
    made = {**conform_any(document), "metadata": metadata}
    if resource.kind == DEFINITION:
        check_types(made)
    return made


def _metadata_message() -> Message:
    return message_named("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta")


def _typed(resource: Resource, document: Document) -> Document:
    """Return the document with apiVersion and kind, which a client may leave out. Any served version is accepted."""
    kind = document.get("kind") or resource.kind.kind
    api_version = document.get("apiVersion") or resource.api_version
    if kind != resource.kind.kind or api_version not in resource.kind.api_versions:
        raise BadRequest(
            f'{kind} in version "{api_version}" cannot be handled as a {resource.kind.kind}:'
            f" {resource.plural} of {resource.api_version} were addressed"
        )
    metadata = {} if document.get("metadata") is None else document["metadata"]
    if not isinstance(metadata, dict):
        raise BadRequest(f'{kind} in version "{api_version}" cannot be handled as a {kind}: metadata is not an object')
    return {**document, "kind": kind, "apiVersion": api_version, "metadata": metadata}


def _report(
    resource: Resource, document: Document, unknown: Sequence[str], options: WriteOptions, patched: bool
) -> None:
    findings = [f'unknown field "{path}"' for path in unknown]
    if options.field_validation is FieldValidation.STRICT:
        text = f"strict decoding error: {', '.join(findings)}"
        if patched:
            cause = Cause("FieldValueInvalid", f"Invalid value: {text}", "patch")
            raise InvalidObject(resource.kind_name, _name_of(document), [cause])
        kind, version = document["kind"], document["apiVersion"].rpartition("/")[2]
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {text}')
    if options.field_validation is FieldValidation.WARN and options.warn is not None:
        for finding in findings:
            options.warn(finding)


def _name_of(document: Document) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
