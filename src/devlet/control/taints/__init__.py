"""Tainted devices in use: which pods must leave them and when, which may not start, and what each rule has done."""

from devlet.control.taints.controller import Settings, TaintController
from devlet.control.taints.device_taints import DeviceTaints
from devlet.control.taints.evictions import blocking

__all__ = ["DeviceTaints", "Settings", "TaintController", "blocking"]
