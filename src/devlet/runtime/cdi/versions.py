"""The version of CDI that a spec needs.

A spec must name a version that has all features that it uses. Runtimes lag behind, so a writer names the lowest such
version, not the newest. It is at least 0.3.0: earlier versions exist, but no reader accepts them.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from devlet.runtime.cdi.spec import ContainerEdits, IntelRdt, Spec

__all__ = ["EARLIEST", "FEATURES", "KNOWN", "Feature", "minimum", "normalised", "problems"]

KNOWN = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
EARLIEST = "0.3.0"

_ORDER = {version: i for i, version in enumerate(KNOWN)}


class Feature(Struct, frozen=True):
    """`until` is the first version without the feature."""

    name: str
    since: str
    used: Callable[[Spec], bool]
    until: str | None = None


def _edits(used: Callable[[ContainerEdits], bool]) -> Callable[[Spec], bool]:
    return lambda spec: any(used(edits) for _, edits in spec.edits())


def _rdt(used: Callable[[IntelRdt], bool]) -> Callable[[Spec], bool]:
    return _edits(lambda edits: edits.intel_rdt is not None and used(edits.intel_rdt))


def _annotations(spec: Spec) -> bool:
    return bool(spec.annotations) or any(device.annotations for device in spec.devices)


# 0.8.0 and 1.0.0 added nothing.
FEATURES = (
    Feature("type of a mount", "0.4.0", _edits(lambda edits: any(mount.type for mount in edits.mounts))),
    Feature("hostPath of a device node", "0.5.0", _edits(lambda edits: any(n.host_path for n in edits.device_nodes))),
    Feature(
        "device name that starts with a digit", "0.5.0", lambda spec: any(d.name[:1].isdigit() for d in spec.devices)
    ),
    Feature("annotations", "0.6.0", _annotations),
    Feature("class with a dot", "0.6.0", lambda spec: "." in spec.kind.partition("/")[2]),
    Feature("additionalGids", "0.7.0", _edits(lambda edits: bool(edits.additional_gids))),
    Feature("intelRdt", "0.7.0", _edits(lambda edits: edits.intel_rdt is not None)),
    Feature("enableCMT", "0.7.0", _rdt(lambda rdt: rdt.enable_cmt is not None), until="1.1.0"),
    Feature("enableMBM", "0.7.0", _rdt(lambda rdt: rdt.enable_mbm is not None), until="1.1.0"),
    Feature("schemata", "1.1.0", _rdt(lambda rdt: rdt.schemata is not None)),
    Feature("enableMonitoring", "1.1.0", _rdt(lambda rdt: rdt.enable_monitoring)),
    Feature("netDevices", "1.1.0", _edits(lambda edits: bool(edits.net_devices))),
)


def normalised(version: str) -> str | None:
    """Return the version without a leading v, or None if there is no such version."""
    plain = version.removeprefix("v")
    return plain if plain in _ORDER else None


def minimum(spec: Spec) -> str:
    """Return the lowest version that has everything the spec uses, whatever version the spec names."""
    return max((EARLIEST, *(feature.since for feature in _used(spec))), key=_ORDER.__getitem__)


def problems(spec: Spec) -> Iterator[str]:
    """Yield the problems of the version that the spec names."""
    version = normalised(spec.cdi_version)
    if version is None:
        yield f"unknown version {spec.cdi_version!r}: known are {', '.join(KNOWN)}"
        return
    if _ORDER[version] < _ORDER[EARLIEST]:
        yield f"must be at least {EARLIEST}"
    for feature in _used(spec):
        if _ORDER[version] < _ORDER[feature.since]:
            yield f"must be at least {feature.since}, because of: {feature.name}"
        if feature.until is not None and _ORDER[version] >= _ORDER[feature.until]:
            yield f"must be lower than {feature.until}, because of: {feature.name}"


def _used(spec: Spec) -> list[Feature]:
    return [feature for feature in FEATURES if feature.used(spec)]
