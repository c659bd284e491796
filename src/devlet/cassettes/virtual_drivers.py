"""A driver and a plugin that serve the content of a cassette, written with the SDK like any other."""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from devlet.cassettes import absent, edits, grants
from devlet.cassettes.cassette import OWN_POOL
from devlet.cassettes.cassette import Driver as RecordedDriver
from devlet.cassettes.cassette import Plugin as RecordedPlugin
from devlet.cassettes.cassette import Pool as RecordedPool
from devlet.cassettes.placeholders import NODE, changed, filled
from devlet.errors import InvalidInput
from devlet.kit.facts import facts
from devlet.objects.documents import Document
from devlet.sdk.device_plugin import DevicePlugin
from devlet.sdk.dra_driver import DraDriver
from devlet.sdk.health import HEALTH_SERVICES
from devlet.sdk.values import Claim, Device, DeviceHealth, DeviceNode, Grant, Mount, PluginDevice, Pool, Prepared

__all__ = ["VirtualDriver", "virtual_driver", "virtual_plugin"]

log = logging.getLogger(__name__)

_PERMISSIONS: Final = "rw"  # for a device node whose plugin gave no permissions


def virtual_driver(recorded: RecordedDriver, node: str, *, strict: bool = False) -> "VirtualDriver":
    """Return a driver, which reports health if the real one did. Raises InvalidInput if two pools would have the same
    name."""
    if {OWN_POOL, node} <= {pool.name for pool in recorded.pools}:
        problem = f"on node {node} its pools {OWN_POOL} and {node} would be one: play it on a node of another name"
        raise InvalidInput(f"{recorded.name}: {problem}")
    reports_health = recorded.health or set(HEALTH_SERVICES) & set(recorded.versions)
    return (_DriverWithHealth if reports_health else VirtualDriver)(recorded, node, strict=strict)


class VirtualDriver(DraDriver):
    """A driver with the pools of a recorded one. With `strict`, claims also get what this machine does not have, which
    runtimes may refuse."""

    parameters = dict  # accepts everything, because the real driver's parameters are not known

    def __init__(self, recorded: RecordedDriver, node: str, *, strict: bool = False) -> None:
        self.name = recorded.name
        self._recorded = recorded
        self._node = node
        self._strict = strict

    async def devices(self) -> AsyncIterator[Mapping[str, Pool]]:
        yield {self._name(pool.name): _pool(pool) for pool in self._recorded.pools}

    def _name(self, pool: str) -> str:
        return self._node if pool == OWN_POOL else pool

    async def prepare(self, claim: Claim) -> Sequence[Prepared]:
        found = []
        for result in claim.results:
            pool = OWN_POOL if result.pool == self._node else result.pool
            given = edits.for_device(self._recorded, edits.Given(pool, result.device, claim.uid))
            given = changed(given, lambda text: filled(text, {NODE: self._node}))
            if not self._strict and (missing := absent.absent_of_edits(given)):
                log.warning("not on this machine, left out", extra=facts(driver=self.name, paths=missing))
                given = absent.present_edits(given)
            found.append(Prepared(result, edits=given))
        return found


class _DriverWithHealth(VirtualDriver):
    async def health(self) -> AsyncIterator[Sequence[DeviceHealth]]:
        yield [
            DeviceHealth(self._name(each.pool), each.device, each.health, each.message)
            for each in self._recorded.health
        ]


def _pool(pool: RecordedPool) -> Pool:
    counters = {each["name"]: _amounts(each) for each in pool.shared_counters}
    return Pool([Device(each["name"], more=_without_name(each)) for each in pool.devices], counters)


def _amounts(counters: Document) -> dict[str, str | int]:
    return {name: (each or {}).get("value", "0") for name, each in (counters.get("counters") or {}).items()}


def _without_name(device: Document) -> Document:
    return {key: value for key, value in device.items() if key != "name"}


def virtual_plugin(recorded: RecordedPlugin, *, strict: bool = False) -> DevicePlugin:
    """Return a plugin with the optional calls that were recorded; the SDK offers those that the class has."""
    methods: dict[str, Any] = {}
    if recorded.options.get_preferred_allocation_available:
        methods["prefer"] = _prefer
    if recorded.options.pre_start_required:
        methods["pre_start"] = _pre_start
    made: DevicePlugin = type("VirtualPlugin", (_VirtualPlugin,), methods)(recorded, strict)
    return made


class _VirtualPlugin(DevicePlugin):
    def __init__(self, recorded: RecordedPlugin, strict: bool) -> None:
        self.resource = recorded.resource
        self._recorded = recorded
        self._strict = strict

    async def devices(self) -> AsyncIterator[Sequence[PluginDevice]]:
        yield [PluginDevice(each.id, each.health, each.numa_nodes) for each in self._recorded.devices]

    async def allocate(self, ids: Sequence[str]) -> Grant:
        given = grants.for_devices(self._recorded, sorted(ids))
        if not self._strict and (missing := absent.absent_of_grant(given)):
            log.warning("not on this machine, left out", extra=facts(resourceName=self.resource, paths=missing))
            given = absent.present_grant(given)
        return Grant(
            env=given.env,
            devices=[DeviceNode(n.host_path, n.container_path, n.permissions or _PERMISSIONS) for n in given.devices],
            mounts=[Mount(each.host_path, each.container_path, each.read_only) for each in given.mounts],
            annotations=given.annotations,
            cdi_devices=given.cdi_devices,
        )


async def _prefer(
    self: DevicePlugin, available: Sequence[str], must_include: Sequence[str], size: int
) -> Sequence[str]:
    """Prefer the first devices, because the preferences of the real plugin are not recorded."""
    return [*must_include, *(id for id in sorted(available) if id not in must_include)][:size]


async def _pre_start(self: DevicePlugin, ids: Sequence[str]) -> None:
    """Do nothing: the call is offered only because the real plugin required it."""
