"""What a node shows of itself in the API. Each view is described once, in a module of its name.

Views are made when they are read, and stored nowhere. `node` makes the documents; the API, its schemas and its tables
take everything else from the description.
"""

from typing import Any

from devlet.objects.views.description import API_VERSION, View
from devlet.objects.views.device import DEVICES
from devlet.objects.views.driver import DRIVERS
from devlet.objects.views.holder import HOLDERS
from devlet.objects.views.plugin import PLUGINS
from devlet.objects.views.prepared_claim import PREPARED_CLAIMS

__all__ = ["API_VERSION", "VIEWS"]

VIEWS: tuple[View[Any, Any], ...] = (DEVICES, PLUGINS, HOLDERS, DRIVERS, PREPARED_CLAIMS)
