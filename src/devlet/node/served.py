"""A kind in whichever of its API versions the cluster has, so that older servers do too.

A server says the same, 404, of a version that it does not serve and of an object that is not there. Only about the
object does it say a name, and that decides whether another version is worth a try.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from devlet.errors import NotFound
from devlet.objects.kinds import Kind, Resource

__all__ = ["Served"]

T = TypeVar("T")


class Served:
    """Remembers the version that was served. One that is no longer is looked for again, so an upgraded server does."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._resources = tuple(Resource(kind, version) for version in kind.api_versions)
        self._known: Resource | None = None

    @property
    def resource(self) -> Resource:
        """As it was served last; the preferred version if nothing is known."""
        return self._known or self._resources[0]

    async def ask(self, question: Callable[[Resource], Awaitable[T]]) -> T:
        """The answer in the first version that is served. NotFound without a name if there is none."""
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
