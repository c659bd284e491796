"""Which objects of a kind a list or watch is about."""

from devlet.cluster.store.records import Record
from devlet.objects.kinds import Resource
from devlet.objects.selectors import fields as field_selectors
from devlet.objects.selectors import labels as label_selectors
from devlet.objects.selectors.fields import FieldSelector
from devlet.objects.selectors.labels import LabelSelector


class Selection:
    """Namespace, labels and fields together. Raises BadRequest for a selector that cannot be understood."""

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
        """Whether labels or fields narrow the namespace down."""
        return self._labels is not None or self._fields is not None

    def matches(self, record: Record) -> bool:
        if self.namespace and record.key[0] != self.namespace:
            return False
        if self._labels is not None and not self._labels.matches(record.metadata.labels):
            return False
        return self._fields is None or self._fields.matches(record.selectable)
