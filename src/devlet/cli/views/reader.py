"""Reads the objects that a description refers to. Objects that are missing or forbidden are not shown."""

from datetime import UTC, datetime

from devlet.cli.resources import Resources
from devlet.cli.session import Document, Query, Session
from devlet.errors import Forbidden, NotFound


class Reader:
    """A reader of related objects. Ages are computed relative to `now`."""

    def __init__(self, session: Session, resources: Resources) -> None:
        self._session = session
        self._resources = resources
        self.now = datetime.now(UTC)
        self.is_node = session.is_node

    def one(self, type_: str, namespace: str, name: str) -> Document | None:
        try:
            return self._session.get(self._resources.find(type_).item(namespace, name))
        except (NotFound, Forbidden):
            return None

    def all(self, type_: str, namespace: str = "", query: Query = ()) -> list[Document]:
        try:
            path = self._resources.find(type_).collection(namespace)
            return [item for page in self._session.pages(path, query) for item in page.get("items") or ()]
        except (NotFound, Forbidden):
            return []
