"""What a list or a watch asks for: a selection of objects, and a resourceVersion."""

from devlet.cluster.store.records import Record
from devlet.errors import BadRequest
from devlet.objects.kinds import Resource
from devlet.objects.selectors import fields as field_selectors
from devlet.objects.selectors import labels as label_selectors
from devlet.objects.selectors.fields import FieldSelector
from devlet.objects.selectors.labels import LabelSelector


class Selection:
    """Objects by namespace, labels and fields. Raise BadRequest for a selector that is not valid."""

    def __init__(self, resource: Resource, namespace: str, label_selector: str, field_selector: str) -> None:
        self.namespace = namespace
        self._labels: LabelSelector | None = label_selectors.parse(label_selector) if label_selector else None
        self._fields: FieldSelector | None = None
        if field_selector:
            self._fields = field_selectors.parse(
                field_selector, resource.api_version, resource.kind.kind, resource.namespaced
            )

    @property
    def selects(self) -> bool:
        """Return True if the selection depends on labels or fields."""
        return self._labels is not None or self._fields is not None

    def matches(self, record: Record) -> bool:
        if self.namespace and record.key[0] != self.namespace:
            return False
        if self._labels is not None and not self._labels.matches(record.metadata.labels):
            return False
        return self._fields is None or self._fields.matches(record.selectable)


def parse_version(text: str) -> int:
    """Return a resourceVersion, which is a position in the log, as a number. An empty string is 0."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise BadRequest(f'Invalid value: "{text}": resourceVersion must be a decimal number')
    return int(text)
