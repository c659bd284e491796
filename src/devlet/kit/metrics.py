"""Metrics in Prometheus' text format, version 0.0.4: counters, gauges and histograms as plain numbers.

A metric belongs to the `Registry` that made it, and label values are given in the order of its label names. Nothing
locks: metrics are counted and read on the event loop. Label values often come from outside, so a metric keeps a limited
number of series; further ones are counted in a series whose labels are all `_other`.
"""

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

__all__ = ["CONTENT_TYPE", "Counter", "Gauge", "Histogram", "Registry"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MAX_SERIES = 10_000  # of one metric
MAX_LABEL = 1_024  # characters of a label's value; more is cut
OTHER = "_other"

Labels = tuple[str, ...]
Read = Callable[[], Mapping[Labels, float]]

_name = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*").fullmatch
_label = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*").fullmatch


class Sample(NamedTuple):
    """One line. `suffix` follows the metric's name, and `extra` its labels."""

    labels: Labels
    value: float
    suffix: str = ""
    extra: tuple[tuple[str, str], ...] = ()


class _Metric(ABC):
    type = "untyped"

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        if not _name(name) or not all(map(_label, labels)):
            raise ValueError(f"{name}{tuple(labels)} cannot be the name and labels of a metric")
        self.name = name
        self.help = help
        self.labels = tuple(labels)

    @abstractmethod
    def samples(self) -> Iterator[Sample]: ...

    def lines(self) -> Iterator[str]:
        samples = list(self.samples())
        if samples:
            yield f"# HELP {self.name} {_escaped(self.help)}"
            yield f"# TYPE {self.name} {self.type}"
        for sample in samples:
            pairs = (*zip(self.labels, sample.labels, strict=True), *sample.extra)
            shown = ",".join(f'{label}="{_quoted(value)}"' for label, value in pairs)
            where = f"{{{shown}}}" if shown else ""
            yield f"{self.name}{sample.suffix}{where} {_number(sample.value)}"


T = TypeVar("T")


class _Series(dict[Labels, T]):
    """The series of one metric. `make` makes the start of each; one without labels is there from the start."""

    def __init__(self, labels: tuple[str, ...], make: Callable[[], T]) -> None:
        super().__init__()
        self._labels = labels
        self._make = make
        if not labels:
            self[()] = make()

    def key(self, values: Labels) -> Labels:
        if len(values) != len(self._labels):
            raise ValueError(f"the labels are {self._labels}, given were {values}")
        key = tuple(value[:MAX_LABEL] for value in values)
        if key not in self:
            if len(self) >= MAX_SERIES:
                key = (OTHER,) * len(key)
            self.setdefault(key, self._make())
        return key


class Counter(_Metric):
    type = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._series = _Series(self.labels, float)

    def add(self, *labels: str, by: float = 1.0) -> None:
        """With `by=0` the series begins to be shown."""
        if not by >= 0:
            raise ValueError(f"{self.name} only counts up, not by {by}")
        self._series[self._series.key(labels)] += by

    def value(self, *labels: str) -> float:
        return self._series.get(labels, 0.0)

    def samples(self) -> Iterator[Sample]:
        for labels in sorted(self._series):
            yield Sample(labels, self._series[labels])


class Gauge(_Metric):
    """A value that is set, or read on demand."""

    type = "gauge"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), read: Read | None = None) -> None:
        super().__init__(name, help, labels)
        self._series = _Series(self.labels, float)
        self._read = read

    def set(self, value: float, *labels: str) -> None:
        self._series[self._series.key(labels)] = value

    def samples(self) -> Iterator[Sample]:
        found = self._series if self._read is None else self._read()
        for labels in sorted(found):
            yield Sample(labels, found[labels])


class _Distribution:
    def __init__(self, buckets: int) -> None:
        self.counts = [0] * (buckets + 1)  # the last one is for what is larger than every bound
        self.sum = 0.0


class Histogram(_Metric):
    """`buckets` are upper bounds, rising; +Inf is added."""

    type = "histogram"

    def __init__(self, name: str, help: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._bounds = tuple(buckets)
        if list(self._bounds) != sorted(set(self._bounds)) or "le" in self.labels:
            raise ValueError(f"{name}: bounds must rise, and no label may be called le")
        self._series = _Series(self.labels, lambda: _Distribution(len(self._bounds)))

    def observe(self, value: float, *labels: str) -> None:
        series = self._series[self._series.key(labels)]
        series.counts[bisect_left(self._bounds, value)] += 1
        series.sum += value

    def count(self, *labels: str) -> int:
        series = self._series.get(labels)
        return sum(series.counts) if series else 0

    def samples(self) -> Iterator[Sample]:
        for labels in sorted(self._series):
            series, total = self._series[labels], 0
            for bound, count in zip((*self._bounds, math.inf), series.counts, strict=True):
                total += count
                yield Sample(labels, total, "_bucket", (("le", _number(bound)),))
            yield Sample(labels, series.sum, "_sum")
            yield Sample(labels, total, "_count")


M = TypeVar("M", bound=_Metric)


class Registry:
    """The metrics of one program, each name once."""

    def __init__(self) -> None:
        self._metrics: dict[str, _Metric] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        return self._added(Counter(name, help, labels))

    def gauge(self, name: str, help: str, labels: Sequence[str] = (), read: Read | None = None) -> Gauge:
        return self._added(Gauge(name, help, labels, read))

    def histogram(self, name: str, help: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        return self._added(Histogram(name, help, buckets, labels))

    def text(self) -> str:
        """All of them as they are now, by name. A metric without series is left out."""
        lines = [line for name in sorted(self._metrics) for line in self._metrics[name].lines()]
        return "".join(f"{line}\n" for line in lines)

    def _added(self, metric: M) -> M:
        if metric.name in self._metrics:
            raise ValueError(f"there is a metric {metric.name} already")
        self._metrics[metric.name] = metric
        return metric


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
