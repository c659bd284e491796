"""Who asks for what: the facts about a request that authentication, authorization and the handlers share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Struct

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=(UNAUTHENTICATED,))


class Attributes(Struct, frozen=True, gc=False):
    """What is to be done, in the words of authorization: `verb` is get, list, watch, create, update, patch, delete or
    deletecollection for resources, the lower-case HTTP method for other paths."""

    verb: str
    path: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""  # the plural; empty for paths that are no resources
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""
