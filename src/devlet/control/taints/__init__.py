"""Tainted devices that are in use: who has to go and when, who may not come, and what a rule has done so far."""

from devlet.control.taints.controller import Settings, TaintController
from devlet.control.taints.device_taints import DeviceTaints
from devlet.control.taints.sharing import blocking

__all__ = ["DeviceTaints", "Settings", "TaintController", "blocking"]
