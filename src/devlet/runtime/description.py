"""What a container would get, without a container engine: its own spec, what devices add to it, and notes.

CDI is strict, as in engines: the container cannot be created if a device cannot be resolved, or if the host does not
have a device node. A device plugin may name device nodes that do not exist, as simulated devices do; these are left out
of the OCI spec and listed in `notes`. This reads the host's device nodes, so it blocks.

`Descriptions` keeps the result from the start of a container until its pod is forgotten. CDI specs are read when a
container starts, and not at all for one without CDI devices. After a restart of devlet nothing is kept yet, and a
description is derived from the present specs when it is requested.
"""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
from msgspec import Struct

from devlet.errors import InvalidInput, NotCreated, NotFound
from devlet.objects.identifiers import ContainerName, PodUID
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.runtime import oci
from devlet.runtime.cdi import names
from devlet.runtime.cdi.apply import Document
from devlet.runtime.cdi.cache import Cache, CurrentSpecs
from devlet.runtime.cdi.host_nodes import Find, Look, find, look
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.containers import Config

__all__ = ["Description", "Descriptions", "Wanted", "describe_container", "own_spec"]


class Wanted(Struct, frozen=True):
    """A container of a pod, and what it gets in addition to its own spec."""

    pod: Pod
    container: Container
    config: Config | None


class Description(Struct, frozen=True):
    """`oci` is the whole spec, `added` the part that devices add. `oci` is None if the container cannot be created, and
    a note says why."""

    oci: Document | None = None
    added: Document = {}
    notes: tuple[str, ...] = ()


def describe_container(wanted: Wanted, registry: Registry, *, look: Look = look, find: Find = find) -> Description:
    """Describe a container. Raise NotCreated if it cannot have its CDI devices with this registry and host."""
    own = own_spec(wanted.pod, wanted.container)
    if wanted.config is None:
        return Description(own)
    notes: list[str] = []
    names: tuple[str, ...] = ()
    try:
        names = oci.cdi_devices(wanted.config)
        registry.resolve(names).complete()
        whole = oci.describe(wanted.config, registry, own, look=look, find=_Lenient(find, look, notes))
    except (NotFound, InvalidInput) as e:
        raise NotCreated(str(e) if _says_which(e, names) else f"CDI devices {', '.join(names)}: {e}") from e
    return Description(whole, _added(whole, own), tuple(notes))


def own_spec(pod: Pod, container: Container) -> Document:
    """Return the parts of the container's own spec that devices may change. Values from other objects, such as secrets,
    are left out."""
    process: Document = {}
    if args := [*container.command, *container.args]:
        process["args"] = args
    if env := [f"{each.name}={each.value}" for each in container.env if each.value_from is None]:
        process["env"] = env
    if user := _user(pod, container):
        process["user"] = user
    return {"ociVersion": oci.OCI_VERSION} | ({"process": process} if process else {})


class _Lenient:
    """Finds no nodes at a path that does not exist, and adds a note."""

    def __init__(self, find: Find, look: Look, notes: list[str]) -> None:
        self._find = find
        self._look = look
        self._notes = notes

    def __call__(self, path: str) -> list[tuple[str, str]]:
        try:
            found = self._find(path)
            for _, node in found:
                self._look(node)
        except (NotFound, InvalidInput) as e:
            self._notes.append(f"no device node for the container: {e}")
            return []
        return found


def _says_which(error: Exception, names: Sequence[str]) -> bool:
    return not names or any(name in str(error) for name in names)


def _user(pod: Pod, container: Container) -> Document:
    """Return the user. The container's settings take precedence over those of its pod; only the pod has groups."""
    of_pod: dict[str, Any] = pod.spec.security_context or {}
    of_both = of_pod | (container.security_context or {})
    user = {key: of_both[name] for key, name in (("uid", "runAsUser"), ("gid", "runAsGroup")) if name in of_both}
    groups = [of_pod[key] for key in ("fsGroup",) if key in of_pod] + list(of_pod.get("supplementalGroups") or ())
    return user | ({"additionalGids": list(dict.fromkeys(groups))} if groups else {})


def _added(whole: Document, own: Document) -> Document:
    """Return what `whole` has and `own` does not, without the version."""
    added = {key: value for key, value in whole.items() if key not in own}
    had, has = own.get("process") or {}, whole.get("process") or {}
    process: Document = {}
    if env := _more(has.get("env"), had.get("env")):
        process["env"] = env
    groups = (has.get("user") or {}).get("additionalGids")
    if new := _more(groups, (had.get("user") or {}).get("additionalGids")):
        process["user"] = {"additionalGids": new}
    return ({"process": process} if process else {}) | {key: v for key, v in added.items() if key != "process"}


def _more(after: Any, before: Any) -> list[Any]:
    return [each for each in after or () if each not in (before or ())]


class Descriptions:
    """The descriptions of containers by pod. If `cdi` is None, all are empty."""

    def __init__(self, cdi: Cache | None) -> None:
        self._specs = CurrentSpecs(cdi) if cdi is not None else None
        self._where = ", ".join(map(str, cdi.directories)) if cdi is not None else ""
        self._kept: dict[PodUID, dict[ContainerName, Description]] = {}

    def get(self, pod: PodUID, container: ContainerName) -> Description | None:
        return self._kept.get(pod, {}).get(container)

    def keep(self, wanted: Wanted, description: Description) -> None:
        self._kept.setdefault(wanted.pod.uid, {})[wanted.container.name] = description

    def forget(self, pod: PodUID) -> None:
        self._kept.pop(pod, None)

    async def make(self, wanted: Wanted) -> Description:
        """Describe the container as it would be now. Raise NotCreated if it cannot be created."""
        if self._specs is None:
            return Description()
        registry = await self._registry([wanted])
        if not _looks_at_host(wanted.config):
            return describe_container(wanted, registry)
        try:
            return await anyio.to_thread.run_sync(describe_container, wanted, registry)
        except NotCreated as e:
            raise NotCreated(f"{e}; CDI specs are read from {self._where}") from e

    async def all(self, wanted: Sequence[Wanted], *, lasting: Callable[[Wanted], bool]) -> list[Description]:
        """Return the description of each container: the one that was kept, or else a new one, which is kept if the
        container is `lasting`. If a container cannot be created, the notes say why."""
        missing = [each for each in wanted if self.get(*_key(each)) is None]
        made = dict(zip(map(_key, missing), await self._now(missing), strict=True))
        for each in missing:
            # The container may have been started or removed in the meantime.
            if made[_key(each)].oci is not None and lasting(each) and self.get(*_key(each)) is None:
                self.keep(each, made[_key(each)])
        return [self.get(*_key(each)) or made.get(_key(each)) or Description() for each in wanted]

    async def _now(self, wanted: Sequence[Wanted]) -> list[Description]:
        if self._specs is None or not wanted:
            return [Description()] * len(wanted)
        return await anyio.to_thread.run_sync(_described, wanted, await self._registry(wanted))

    async def _registry(self, wanted: Sequence[Wanted]) -> Registry:
        needed = any(_has_cdi_devices(each.config) for each in wanted)
        return await self._specs.registry() if needed and self._specs is not None else Registry()


def _key(wanted: Wanted) -> tuple[PodUID, ContainerName]:
    return wanted.pod.uid, wanted.container.name


def _has_cdi_devices(config: Config | None) -> bool:
    if config is None:
        return False
    return bool(config.cdi_devices) or any(key.startswith(names.ANNOTATION_PREFIX) for key, _ in config.annotations)


def _looks_at_host(config: Config | None) -> bool:
    return config is not None and (bool(config.devices) or _has_cdi_devices(config))


def _described(wanted: Sequence[Wanted], registry: Registry) -> list[Description]:
    return [_or_why_not(each, registry) for each in wanted]


def _or_why_not(wanted: Wanted, registry: Registry) -> Description:
    try:
        return describe_container(wanted, registry)
    except NotCreated as e:
        return Description(notes=(f"cannot be started: {e}",))
