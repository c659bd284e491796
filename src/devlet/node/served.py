"""A kind in whichever of its API versions the cluster serves, so that older clusters can be used.

A server answers 404 both for a version that it does not serve and for an object that does not exist. Only in the second
case does the answer name the object. In the first case another version is tried.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from devlet.errors import NotFound
from devlet.objects.kinds import Kind, Resource

__all__ = ["Served"]

T = TypeVar("T")


class Served:
    """Remembers the version that is served, and looks for another one if it no longer is, as after an upgrade."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._resources = tuple(Resource(kind, version) for version in kind.api_versions)
        self._known: Resource | None = None

    @property
    def resource(self) -> Resource:
        """The kind in the version that was last served, or in the preferred version if that is not known."""
        return self._known or self._resources[0]

    async def ask(self, question: Callable[[Resource], Awaitable[T]]) -> T:
        """Return the answer in the first version that is served. Raise NotFound without a name if there is none."""
        first = self.resource
        for resource in (first, *(other for other in self._resources if other is not first)):
            try:
                answer = await question(resource)
            except NotFound as e:
                if not e.name:
                    continue
                self._known = resource
                raise
            self._known = resource
            return answer
        self._known = None
        versions = ", ".join(self._kind.api_versions)
        raise NotFound(f"the cluster serves {self._kind.plural} in none of {versions}", resource=self._kind.key)
