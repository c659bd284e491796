"""What tests of drivers import: nodes, fakes that speak the real protocols, faults, builders and strategies.

pytest imports this package in every run of everyone who has devlet installed. So a module is imported when one of its
names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlet.testing import builders, strategies
    from devlet.testing.crashes import CrashPoint, crash_at, crash_points
    from devlet.testing.driver_runner import DriverRunner, Paths
    from devlet.testing.fake_clock import FakeClock
    from devlet.testing.fake_device_plugin import FakeDevicePlugin
    from devlet.testing.fake_dra_driver import FakeDraDriver
    from devlet.testing.faulty_wire import FaultyWire
    from devlet.testing.grpc_faults import Faults, Moment
    from devlet.testing.grpc_loop import GrpcLoop
    from devlet.testing.node import Node
    from devlet.testing.node_api import NodeApi
    from devlet.testing.node_process import NodeProcess
    from devlet.testing.restarts import Restarts
    from devlet.testing.roots import temporary_root
    from devlet.testing.sync_node import SyncDriver, SyncNode, node_thread
    from devlet.testing.waiting import deadline, until
    from devlet.testing.wire_faults import Direction, SocketProxy

__all__ = [
    "CrashPoint",
    "Direction",
    "DriverRunner",
    "FakeClock",
    "FakeDevicePlugin",
    "FakeDraDriver",
    "Faults",
    "FaultyWire",
    "GrpcLoop",
    "Moment",
    "Node",
    "NodeApi",
    "NodeProcess",
    "Paths",
    "Restarts",
    "SocketProxy",
    "SyncDriver",
    "SyncNode",
    "builders",
    "crash_at",
    "crash_points",
    "deadline",
    "node_thread",
    "strategies",
    "temporary_root",
    "until",
]

_MODULES = {
    "crashes": ("CrashPoint", "crash_at", "crash_points"),
    "driver_runner": ("DriverRunner", "Paths"),
    "fake_clock": ("FakeClock",),
    "fake_device_plugin": ("FakeDevicePlugin",),
    "fake_dra_driver": ("FakeDraDriver",),
    "faulty_wire": ("FaultyWire",),
    "grpc_faults": ("Faults", "Moment"),
    "grpc_loop": ("GrpcLoop",),
    "node": ("Node",),
    "node_api": ("NodeApi",),
    "node_process": ("NodeProcess",),
    "restarts": ("Restarts",),
    "roots": ("temporary_root",),
    "sync_node": ("SyncDriver", "SyncNode", "node_thread"),
    "waiting": ("deadline", "until"),
    "wire_faults": ("Direction", "SocketProxy"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:  # type checkers would take it for a promise that every name exists

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
        return getattr(module, name) if name in _HOMES else module
