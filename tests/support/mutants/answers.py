"""Plugins that answer what they are asked in a wrong way. See `faulty_device_plugin`."""

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
    def record(self, call: Call) -> None:
        self.options = Options(pre_start=len(self.calls) % 2 == 0)
        super().record(call)


class NoPreferences(Plugin):
    def record(self, call: Call) -> None:
        self.fail("GetPreferredAllocation", "UNIMPLEMENTED", "not there")
        super().record(call)


class _Prefers(Plugin):
    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        raise NotImplementedError

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prefer = self.chosen


class PrefersOthers(_Prefers):
    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [*must, *(f"other-{number}" for number in range(size - len(must)))]


class ForgetsIncluded(_Prefers):
    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [id for id in sorted(available) if id not in must][:size]


class PrefersAll(_Prefers):
    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return sorted(available)


class PrefersTwice(_Prefers):
    def chosen(self, available: Sequence[str], must: Sequence[str], size: int) -> Sequence[str]:
        return [*must, *[sorted(available)[0]] * size][:size]


class Secretive(Plugin):
    """Prefers some, and does not say so."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.options = Options(pre_start=True)


class PreStartFails(Plugin):
    def record(self, call: Call) -> None:
        self.fail("PreStartContainer", "INTERNAL", "no such container")
        super().record(call)


class PreStartOnce(Plugin):
    """Forgets an allocation once it was used."""

    def record(self, call: Call) -> None:
        if self.asked("PreStartContainer"):
            self.fail("PreStartContainer", "NOT_FOUND", "nothing was allocated")
        super().record(call)


class _Grants(Plugin):
    """Answers Allocate in another way."""

    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        raise NotImplementedError

    def granted(self, ids: Sequence[str]) -> Grant:
        return self.other(super().granted(ids), ids)


def _but(right: Grant, **changes: Any) -> Grant:
    return Grant(**{name: changes.get(name, getattr(right, name)) for name in right.__struct_fields__})


class RefusesSome(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        if "dev-1" in ids:
            raise LookupError("dev-1 is busy")
        return right


class RefusesMany(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        if len(ids) > 1:
            raise ValueError("one device at a time")
        return right


class AnswersNobody(Plugin):
    def record(self, call: Call) -> None:
        self.answer("Allocate", NO_RESPONSE)
        super().record(call)


class GrantsUnknown(Plugin):
    def granted(self, ids: Sequence[str]) -> Grant:
        return super().granted([id for id in ids if id in {device.id for device in self.devices}])


class GarbledInstead(Plugin):
    """Where it should refuse, it answers what nobody can read."""

    def record(self, call: Call) -> None:
        if set(call.ids) <= {device.id for device in self.devices}:
            self.recover(call.method)
        else:
            self.answer(call.method, b"\xff" * 16)
        super().record(call)


class SilentInstead(Secretive):
    """What it does not offer it does not refuse either."""

    def record(self, call: Call) -> None:
        self.hang("GetPreferredAllocation")
        super().record(call)


class DiesOfErrors(Plugin):
    def granted(self, ids: Sequence[str]) -> Grant:
        try:
            return super().granted(ids)
        except LookupError:
            os._exit(2)


class KeepsAccounts(Plugin):
    def granted(self, ids: Sequence[str]) -> Grant:
        if any(call.method == "Allocate" and set(call.ids) & set(ids) for call in self.calls[:-1]):
            raise LookupError(f"{', '.join(ids)} is in use")
        return super().granted(ids)


class MixesUp(Plugin):
    """Keeps what is asked for in one place for all calls."""

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
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, env={"LEDS=": ids[0]})


class NoSuchNode(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, devices=tuple(DeviceNode(f"/dev/{id}", f"/dev/no-such-{id}", "rw") for id in ids))


class NoSuchPath(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, mounts=tuple(Mount(f"/etc/{id}", f"/no/such/{id}", True) for id in ids))


class OnePath(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        hosts = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
        return _but(right, devices=tuple(DeviceNode("/dev/led", hosts[int(id[-1]) % 4], "rw") for id in ids))


class OddCdiNames(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, cdi_devices=tuple(ids))


class UnknownCdiNames(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, cdi_devices=tuple(f"example.com/led=no-{id}" for id in ids))


class EmptyCdiSpec(Plugin):
    def spec(self) -> dict[str, Any]:
        spec = super().spec()
        for device in spec["devices"]:
            device["containerEdits"] = {"deviceNodes": [{"path": "/dev/no-such-led", "type": "c", "major": 1}]}
        return spec


class OddAnnotations(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return _but(right, annotations={"the leds": ids[0]})


class AllTheSame(_Grants):
    def other(self, right: Grant, ids: Sequence[str]) -> Grant:
        return Grant(env={"LEDS": "all"})


class Endless(_Grants):
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
