"""Every error devlet raises on purpose, grouped by who has to act.

DevletError
├── InvalidInput           the user: object or flag is wrong, a retry cannot help
│   ├── BadRequest             the request itself cannot be understood (400)
│   ├── InvalidObject          the object breaks a rule; causes name the fields (422)
│   ├── InvalidSelector        a CEL expression does not compile
│   ├── UnsupportedPatch       this patch type does not exist for this kind (415)
│   └── TooLarge               over a limit on size (413)
├── Forbidden              the user or administrator: understood, but not allowed (403)
├── NotFound               the caller: no such object or resource (404)
├── AlreadyExists          the caller: the name is taken (409)
├── Conflict               the caller: another writer was first, read again (409, retryable)
│   └── Overlapping            the scheduler: another one allocated the same devices
├── Expired                the caller: that version is gone, list again (410)
├── Unavailable            no one: try again later (503, 504, retryable)
│   └── TooManyRequests        too many requests for now (429)
├── NotAllocated           no one: there are not enough devices now; the pod is refused
├── NotPrepared            no one: claims of a pod are not prepared or unprepared yet; retried
├── NotCreated             the driver's author, or no one: the runtime cannot create a container; retried
├── PluginError            the plugin's author: its process, socket or answer
│   ├── PluginUnavailable      not connected, or too slow (retryable)
│   └── PluginRefused          it answered with an error of its own, or with an invalid response
│       └── PluginUnimplemented    it does not have the service or method that was called
├── InUse                  the operator: another process holds it
└── StateCorrupt           the operator: a file on this node is damaged or not ours

The numbers are the HTTP codes under which a Kubernetes API reports the same thing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

MAX_CAUSES = 1_000  # of one error; further ones are not listed


class DevletError(Exception):
    """Base of all errors that are raised on purpose. The text is complete and written for people."""


class InvalidInput(DevletError):
    """The input is wrong in itself: the same input can never succeed."""


class Cause(NamedTuple):
    """One reason why an object was refused: `field` is a path such as `spec.devices[0].name`."""

    reason: str
    message: str
    field: str


class BadRequest(InvalidInput):
    """The request cannot be understood: malformed, contradictory or for another kind."""


class InvalidObject(InvalidInput):
    """An object of `kind` (with its group, as in `ResourceClaim.resource.k8s.io`) breaks rules."""

    def __init__(self, kind: str, name: str, causes: Sequence[Cause]) -> None:
        self.kind = kind
        self.name = name
        self.causes = tuple(causes[:MAX_CAUSES])
        lines = [f"{c.field}: {c.message}" if c.field else c.message for c in self.causes]
        if len(causes) > MAX_CAUSES:
            lines.append("and more")
        detail = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
        super().__init__(f'{kind} "{name}" is invalid: {detail}')


class InvalidSelector(InvalidInput):
    """A CEL expression does not compile. The text is the one that Kubernetes gives."""


class UnsupportedPatch(InvalidInput):
    """The patch type is unknown, or not defined for this kind."""


class TooLarge(InvalidInput):
    """Something is larger than the limit that the text names."""


class ResourceError(DevletError):
    """An error about one object: `resource` is the plural with its group, as in messages."""

    def __init__(self, message: str, *, resource: str = "", name: str = "", causes: Sequence[Cause] = ()) -> None:
        super().__init__(message)
        self.resource = resource
        self.name = name
        self.causes = tuple(causes[:MAX_CAUSES])


class Forbidden(ResourceError):
    """The request is understood and well formed, but not allowed."""


class NotFound(ResourceError):
    """The object or the resource does not exist."""


class AlreadyExists(ResourceError):
    """An object of that name already exists."""


class Conflict(ResourceError):
    """Another writer was first, or a precondition does not hold: read again and retry."""


class Overlapping(Conflict):
    """Devices of a claim were allocated to another claim by another scheduler."""


class Expired(ResourceError):
    """The requested version is no longer kept; `fresh_continue` continues from the newest one."""

    def __init__(self, message: str, *, fresh_continue: str = "") -> None:
        super().__init__(message)
        self.fresh_continue = fresh_continue


class Unavailable(DevletError):
    """The request cannot be served now. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyRequests(Unavailable):
    """The request is refused for now, to protect the server or what a disruption budget protects."""


class NotAllocated(DevletError):
    """The devices that a container requests cannot be allocated to it."""


class NotPrepared(DevletError):
    """The claims of a pod cannot be prepared or unprepared now. `drivers` are the drivers that cause this. `contested`
    lists devices that other claims still hold: the pod's claim, the device, and the claim that holds it."""

    def __init__(
        self, message: str, *, drivers: Iterable[str] = (), contested: Iterable[tuple[str, str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.drivers = frozenset(drivers)
        self.contested = tuple(contested)


class NotCreated(DevletError):
    """The runtime cannot create a container with its devices now, which shows as CreateContainerError in its status."""


class PluginError(DevletError):
    """An error of a plugin, which is named by the resource or driver that it serves."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f"plugin {plugin}: {message}")
        self.plugin = plugin
        self.message = message


class PluginUnavailable(PluginError):
    """The plugin's process or socket is gone, or it did not answer in time."""


class PluginRefused(PluginError):
    """The plugin answered with an error or with an invalid response."""


class PluginUnimplemented(PluginRefused):
    """The plugin does not implement the service or method: the same call can never succeed, but another one may."""


class InUse(DevletError):
    """Another process holds what we need exclusively; the text names it."""


class StateCorrupt(DevletError):
    """A file on this node is damaged, or was not written by devlet. It is left untouched. `problem` says what is wrong,
    without the file's name and what to do."""

    def __init__(self, message: str, *, problem: str = "") -> None:
        super().__init__(message)
        self.problem = problem or message
