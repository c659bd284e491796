"""What the parts of the node report: to the operator as an event of the node, and to the owner of a rejected pod."""

from msgspec import Struct

__all__ = ["Rejection", "Report"]


class Report(Struct, frozen=True, gc=False):
    """Something that the operator should see as an event of the node."""

    type: str  # Normal or Warning
    reason: str
    message: str


class Rejection(Struct, frozen=True, gc=False):
    """Why a pod is not admitted, as its status and its event say it.

    `reason` is one that Kubernetes uses: UnexpectedAdmissionError, TopologyAffinityError, OutOf…"""

    reason: str
    message: str
