"""Which members of a message Go writes as JSON although they are not set, or set to their zero value."""

from devlet.objects.schema import Field

__all__ = ["is_always_written", "keeps_zero"]


def keeps_zero(field: Field) -> bool:
    """Whether a member that is set to its zero value is written."""
    return not field.omitzero if _is_struct(field) else field.pointer or not field.omitempty


def is_always_written(field: Field) -> bool:
    """Whether the member is written even if it is not set."""
    return not field.omitzero if _is_struct(field) and not field.pointer else not field.omitempty


def _is_struct(field: Field) -> bool:
    """A struct in Go: `omitempty` has no effect on it. Named list types are messages in protobuf, but no structs."""
    return field.label == "single" and "." in field.type and field.special != "items"
