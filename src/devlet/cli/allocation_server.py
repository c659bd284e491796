"""Objects of an allocation from a server, which is a devlet on this machine or a cluster. They are only read."""

from collections.abc import Iterator

from devlet.cli.allocation_input import KINDS, Objects, stored
from devlet.cli.resources import Resources
from devlet.cli.session import Document, Session
from devlet.errors import Forbidden, NotFound
from devlet.objects.identifiers import ObjectKey

__all__ = ["Server"]

_NEEDED = ("nodes", "deviceclasses", "resourceslices", "resourceclaims")
_OF_PODS = ("pods", "resourceclaimtemplates")


class Server:
    """Adds the objects of a server. Objects that are already present, because they come from a file, are kept."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._resources = Resources(session)

    def fill(self, objects: Objects, *, pods: bool) -> None:
        """Add the input of the allocator; with `pods`, also all pods and claim templates."""
        for plural in (*_NEEDED, *_OF_PODS) if pods else _NEEDED:
            self._fill(objects, plural)
        try:
            self._fill(objects, "devicetaintrules")
        except (NotFound, Forbidden):
            pass  # the server does not serve them, or the user may not read them

    def _fill(self, objects: Objects, plural: str) -> None:
        for document in self._all(plural):
            objects.add(document, self._session.address, is_default=True)

    def add(self, objects: Objects, plural: str, key: ObjectKey) -> bool:
        """Add one object. Return whether it exists."""
        resource = self._resources.find(_full(plural))
        try:
            found = self._session.get(resource.item(*key))
        except NotFound:
            return False
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        objects.add(stored(head | found, KINDS[resource.kind]), self._session.address, is_default=True)
        return True

    def _all(self, plural: str) -> Iterator[Document]:
        try:
            resource = self._resources.find(_full(plural))
        except NotFound as e:
            raise NotFound(f"{e}: allocation needs the API group resource.k8s.io") from e
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        try:
            for page in self._session.pages(resource.collection("")):
                for item in page.get("items") or ():
                    yield stored(head | item, KINDS[resource.kind])
        except Forbidden as e:
            needed = ", ".join(_NEEDED)
            raise Forbidden(f"{e}: this command must be allowed to list {needed} in all namespaces") from e


def _full(plural: str) -> str:
    return plural if plural in ("nodes", "pods") else f"{plural}.resource.k8s.io"
