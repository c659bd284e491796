"""Device plugins that answer calls incorrectly. See `faulty_device_plugin`."""

import os
from collections.abc import Sequence
from typing import Any

import anyio

from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins.devices import Grant, Options
from devlet.testing.fake_device_plugin import NO_RESPONSE
from devlet.testing.plugin_script import Call, Context
from tests.support.mutants.sound_device_plugin import SoundDevicePlugin

__all__ = ["BUGS", "NO_REFUSALS"]

Plugin = SoundDevicePlugin


class ChangingOptions(Plugin):
    """Return different options in every second call."""

    def record(self, call: Call) -> None:
        self.options = Options(pre_start=len(self.calls) % 2 == 0)
        super().record(call)


class NoPreferences(Plugin):
    """Offer GetPreferredAllocation but not implement it."""

    def record(self, call: Call) -> None:
        self.fail("GetPreferredAllocation", "UNIMPLEMENTED", "not there")
        super().record(call)


class _Prefers(Plugin):
    """Answer GetPreferredAllocation with `chosen`."""

    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        raise NotImplementedError

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prefer = self.chosen


class PrefersOthers(_Prefers):
    """Prefer devices that are not available."""

    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [*must, *(f"other-{number}" for number in range(size - len(must)))]


class ForgetsIncluded(_Prefers):
    """Prefer devices without those that must be included."""

    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [id for id in sorted(available) if id not in must][:size]


class PrefersAll(_Prefers):
    """Prefer all available devices, whatever the size."""

    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return sorted(available)


class PrefersTwice(_Prefers):
    """Prefer the same device several times."""

    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [*must, *[sorted(available)[0]] * size][:size]


class Secretive(Plugin):
    """Prefer devices without offering GetPreferredAllocation."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = Options(pre_start=True)


class PreStartFails(Plugin):
    """Require PreStartContainer, which always fails."""

    def record(self, call: Call) -> None:
        self.fail("PreStartContainer", "INTERNAL", "no such container")
        super().record(call)


class PreStartOnce(Plugin):
    """Forget an allocation after the first PreStartContainer."""

    def record(self, call: Call) -> None:
        if self.asked("PreStartContainer"):
            self.fail("PreStartContainer", "NOT_FOUND", "nothing was allocated")
        super().record(call)


class _Grants(Plugin):
    """Change the response to Allocate."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        raise NotImplementedError

    def granted(self, ids: Sequence[str]) -> Grant:
        return self.other(super().granted(ids), ids)


def _but(right: Grant, **changes: Any) -> Grant:
    return Grant(**{name: changes.get(name, getattr(right, name)) for name in right.__struct_fields__})


class RefusesSome(_Grants):
    """List dev-1 as healthy but refuse to allocate it."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        if "dev-1" in ids:
            raise LookupError("dev-1 is busy")
        return right


class RefusesMany(_Grants):
    """Refuse to allocate more than one device at a time."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        if len(ids) > 1:
            raise ValueError("one device at a time")
        return right


class AnswersNobody(Plugin):
    """Return no container responses from Allocate."""

    def record(self, call: Call) -> None:
        self.answer("Allocate", NO_RESPONSE)
        super().record(call)


class GrantsUnknown(Plugin):
    """Ignore unknown IDs in Allocate instead of failing."""

    def granted(self, ids: Sequence[str]) -> Grant:
        return super().granted([id for id in ids if id in {device.id for device in self.devices}])


class GarbledInstead(Plugin):
    """Return an undecodable response where it should refuse."""

    def record(self, call: Call) -> None:
        if set(call.ids) <= {device.id for device in self.devices}:
            self.recover(call.method)
        else:
            self.answer(call.method, b"\xff" * 16)
        super().record(call)


class SilentInstead(Secretive):
    """Never answer methods that it does not offer."""

    def record(self, call: Call) -> None:
        self.hang("GetPreferredAllocation")
        super().record(call)


class DiesOfErrors(Plugin):
    """Exit when an unknown device is requested."""

    def granted(self, ids: Sequence[str]) -> Grant:
        try:
            return super().granted(ids)
        except LookupError:
            os._exit(2)


class KeepsAccounts(Plugin):
    """Refuse to allocate a device that it has allocated before."""

    def granted(self, ids: Sequence[str]) -> Grant:
        if any(call.method == "Allocate" and set(call.ids) & set(ids) for call in self.calls[:-1]):
            raise LookupError(f"{', '.join(ids)} is in use")
        return super().granted(ids)


class MixesUp(Plugin):
    """Keep the request of all concurrent calls in one place."""

    async def act(self, method: str, context: Context) -> bytes | None:
        wrong = await super().act(method, context)
        if method == "Allocate":
            await anyio.sleep(0.01)
        return wrong

    def granted(self, ids: Sequence[str]) -> Grant:
        known = {device.id for device in self.devices}
        newest = self.asked("Allocate")[-1].ids
        return super().granted(newest if len(newest) == 1 and set(newest) <= known else ids)


class OddEnvironment(_Grants):
    """Set an environment variable with an invalid name."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, env={"LEDS=": ids[0]})


class NoSuchNode(_Grants):
    """Return device nodes that do not exist on the host."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, devices=tuple(DeviceNode(f"/dev/{id}", f"/dev/no-such-{id}", "rw") for id in ids))


class NoSuchPath(_Grants):
    """Return mounts of paths that do not exist on the host."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, mounts=tuple(Mount(f"/etc/{id}", f"/no/such/{id}", True) for id in ids))


class OnePath(_Grants):
    """Return several devices with the same path in the container."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        hosts = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
        return _but(right, devices=tuple(DeviceNode("/dev/led", hosts[int(id[-1]) % 4], "rw") for id in ids))


class OddCdiNames(_Grants):
    """Return CDI device names that are not fully qualified."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, cdi_devices=tuple(ids))


class UnknownCdiNames(_Grants):
    """Return CDI devices that no spec defines."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, cdi_devices=tuple(f"example.com/led=no-{id}" for id in ids))


class EmptyCdiSpec(Plugin):
    """Write a CDI spec with a device node that does not exist."""

    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        for device in spec["devices"]:
            device["containerEdits"] = {"deviceNodes": [{"path": "/dev/no-such-led", "type": "c", "major": 1}]}
        return spec


class OddAnnotations(_Grants):
    """Return an annotation with an invalid key."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, annotations={"the leds": ids[0]})


class AllTheSame(_Grants):
    """Return the same response for all devices."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return Grant(env={"LEDS": "all"})


class Endless(_Grants):
    """Return a response of more than 4 MiB."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, env={"LEDS": "x" * (5 << 20)})


BUGS: dict[str, type[SoundDevicePlugin]] = {
    "DP-OPT-1": ChangingOptions,
    "DP-PREF-1": NoPreferences,
    "DP-PREF-2": PrefersOthers,
    "DP-PREF-3": ForgetsIncluded,
    "DP-PREF-4": PrefersAll,
    "DP-PREF-5": PrefersTwice,
    "DP-PREF-6": Secretive,
    "DP-PRE-1": PreStartFails,
    "DP-PRE-2": PreStartOnce,
    "DP-ALLOC-1": RefusesSome,
    "DP-ALLOC-2": RefusesMany,
    "DP-ALLOC-3": AnswersNobody,
    "DP-ALLOC-4": GrantsUnknown,
    "DP-ALLOC-5": DiesOfErrors,
    "DP-ALLOC-6": KeepsAccounts,
    "DP-ALLOC-7": MixesUp,
    "DP-ALLOC-8": OddEnvironment,
    "DP-ALLOC-9": NoSuchNode,
    "DP-ALLOC-10": NoSuchPath,
    "DP-ALLOC-11": OnePath,
    "DP-ALLOC-12": OddCdiNames,
    "DP-ALLOC-13": UnknownCdiNames,
    "DP-ALLOC-14": EmptyCdiSpec,
    "DP-ALLOC-15": OddAnnotations,
    "DP-ALLOC-16": AllTheSame,
    "DP-ALLOC-17": Endless,
}

NO_REFUSALS: dict[str, type[SoundDevicePlugin]] = {"silent": SilentInstead, "garbled": GarbledInstead}
"""For checks of what has to be refused."""
