"""The view `plugins`: the device plugins of a node and how they are."""

from datetime import datetime
from typing import Annotated

from devlet.objects.documents import Document
from devlet.objects.kinds import Kind
from devlet.objects.subdocuments import at
from devlet.objects.table_cells import Cell, none_if_empty
from devlet.objects.views.description import API_VERSION, Part, Shown, Time, View


class PluginOptions(Part, frozen=True):
    """The optional calls that the plugin requested."""

    pre_start_required: Annotated[bool, "The node calls PreStartContainer before it starts a container."]
    get_preferred_allocation_available: Annotated[bool, "The node calls GetPreferredAllocation to choose devices."]


class PluginSpec(Part, frozen=True):
    """What the plugin reported when it registered."""

    resource: Annotated[str, "The resource that it offers."]
    type: Annotated[str | None, "The type reported by a plugin that could not register."] = None
    api: Annotated[str | None, "The version of the device plugin API that it uses."] = None
    socket: Annotated[str | None, "The socket that it listens on; absent while it is awaited after a restart."] = None
    options: Annotated[PluginOptions | None, "The optional calls that it requested."] = None


class PluginStatus(Part, frozen=True):
    """The state of the plugin."""

    state: Annotated[str, "Connected, Silent, Disconnected, Standby, Awaited, or Refused if it could not register."]
    since: Annotated[Time | None, "When that state began."] = None
    healthy: Annotated[int | None, "The number of its devices that are healthy."] = None
    unhealthy: Annotated[int | None, "The number of its devices that are not healthy."] = None
    held: Annotated[int | None, "The number of devices of the resource that pods hold."] = None
    pid: Annotated[int | None, "The process that listens on the socket."] = None
    message: Annotated[str | None, "The last error."] = None


def _options(plugin: Document, _: datetime) -> Cell:
    titles = {"PreStart": "preStartRequired", "PreferredAllocation": "getPreferredAllocationAvailable"}
    wanted = [title for title, key in titles.items() if at(plugin, "spec", "options", key) is True]
    return none_if_empty(",".join(wanted))


PLUGINS = View(
    Kind("Plugin", "plugins", (API_VERSION,), namespaced=False),
    "A device plugin on this node. Read-only.",
    PluginSpec,
    PluginStatus,
    (
        Shown("Resource", "spec.resource"),
        Shown("Socket", "spec.socket"),
        Shown("API", "spec.api"),
        Shown("State", "status.state"),
        Shown("Healthy", "status.healthy", type="integer"),
        Shown("Unhealthy", "status.unhealthy", type="integer"),
        Shown("Held", "status.held", type="integer"),
        Shown("Age", "status.since", "How long it has been in that state."),
        Shown("PID", "status.pid", wide=True),
        Shown("Options", _options, "The optional calls that it requested.", wide=True),
        Shown("Message", "status.message", wide=True),
    ),
    ("spec.resource", "status.state"),
)
