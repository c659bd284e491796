"""Why a pod is not admitted, in the words of its status and event."""

from msgspec import Struct

__all__ = ["Rejection"]


class Rejection(Struct, frozen=True, gc=False):
    """`reason` is one that Kubernetes uses: UnexpectedAdmissionError, TopologyAffinityError, OutOf…"""

    reason: str
    message: str
