"""What each container would get, kept from its start until its pod is forgotten.

CDI specs are looked at when a container starts, and not at all for one without CDI devices. After a restart of devlet
nothing is kept yet, and what is asked for is worked out from the specs of that moment."""

from collections.abc import Callable, Sequence

import anyio

from devlet.errors import NotCreated
from devlet.objects.identifiers import ContainerName, PodUID
from devlet.runtime.cdi import annotations
from devlet.runtime.cdi.cache import Cache
from devlet.runtime.cdi.current import CurrentSpecs
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.containers import Config
from devlet.runtime.description import Description, Wanted, describe_container

__all__ = ["Descriptions"]


class Descriptions:
    """`cdi` None: nothing is known of any container."""

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
        """As it is now, whatever was kept. NotCreated if there can be no such container."""
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
        """One for each, as it was kept; what was not is made now, and kept if it is `lasting`. One that cannot be made
        says why in its notes."""
        missing = [each for each in wanted if self.get(*_key(each)) is None]
        made = dict(zip(map(_key, missing), await self._now(missing), strict=True))
        for each in missing:
            # It may have been started, or be gone, by now.
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
    return bool(config.cdi_devices) or any(key.startswith(annotations.PREFIX) for key, _ in config.annotations)


def _looks_at_host(config: Config | None) -> bool:
    return config is not None and (bool(config.devices) or _has_cdi_devices(config))


def _described(wanted: Sequence[Wanted], registry: Registry) -> list[Description]:
    return [_or_why_not(each, registry) for each in wanted]


def _or_why_not(wanted: Wanted, registry: Registry) -> Description:
    try:
        return describe_container(wanted, registry)
    except NotCreated as e:
        return Description(notes=(f"cannot be started: {e}",))
