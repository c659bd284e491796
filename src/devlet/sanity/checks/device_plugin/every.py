"""Runs a check of one plugin on all plugins that a driver has registered."""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps

from devlet.errors import PluginError
from devlet.sanity.check import CannotTell, Failed, Outcome, Passed, Skipped, Warned
from devlet.sanity.plugin_client import PluginClient
from devlet.sanity.rig_device_plugin import DevicePluginRig

__all__ = ["every_plugin"]

_BADNESS = (Skipped, Passed, Warned, Failed)


def every_plugin(
    check: Callable[[DevicePluginRig, PluginClient], Awaitable[Outcome]],
) -> Callable[[DevicePluginRig], Awaitable[Outcome]]:
    """Return a check whose outcome is the worst one, with the name of the resource if there are several."""

    @wraps(check)
    async def run(rig: DevicePluginRig) -> Outcome:
        plugins = rig.plugins
        outcomes = [_about(plugin.resource, len(plugins), await _one(check, rig, plugin)) for plugin in plugins]
        return worst(outcomes)

    return run


async def _one(
    check: Callable[[DevicePluginRig, PluginClient], Awaitable[Outcome]], rig: DevicePluginRig, plugin: PluginClient
) -> Outcome:
    try:
        return await check(rig, plugin)
    except CannotTell as e:
        return Skipped(str(e))
    except PluginError as e:
        return Failed(e.message)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    return max(outcomes, key=lambda outcome: _BADNESS.index(type(outcome)))


def _about(resource: str, count: int, outcome: Outcome) -> Outcome:
    match outcome:
        case Failed(seen, how) if count > 1:
            return Failed(f"{resource}: {seen}", how)
        case Warned(seen, how) if count > 1:
            return Warned(f"{resource}: {seen}", how)
    return outcome
