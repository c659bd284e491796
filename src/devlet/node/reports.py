"""What the managers of the node have to say to its operator."""

from msgspec import Struct

__all__ = ["Report"]


class Report(Struct, frozen=True, gc=False):
    """Something the operator should see as an event of the node."""

    type: str  # Normal or Warning
    reason: str
    message: str
