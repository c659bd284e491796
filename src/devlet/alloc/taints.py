"""Taints of devices, and the tolerations of requests."""

from collections.abc import Sequence

from devlet.objects.pods.tolerations import tolerates
from devlet.objects.types.claim import DeviceToleration
from devlet.objects.types.slice import Device, DeviceTaint

__all__ = ["untolerated"]

_EFFECTS = ("NoSchedule", "NoExecute")


def untolerated(device: Device, tolerations: Sequence[DeviceToleration]) -> DeviceTaint | None:
    """Return the first taint that keeps a request from getting the device. Unknown effects exclude no request."""
    for taint in device.taints:
        if taint.effect in _EFFECTS and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
