import math

import pytest

from devlet.kit import metrics
from devlet.kit.metrics import Registry


def test_a_counter_is_written_with_its_help_and_type() -> None:
    registry = Registry()
    counter = registry.counter("requests_total", "All of them.", ("code", "verb"))
    counter.add("200", "get")
    counter.add("200", "get", by=2.5)
    counter.add("404", "get")
    assert registry.text() == (
        "# HELP requests_total All of them.\n"
        "# TYPE requests_total counter\n"
        'requests_total{code="200",verb="get"} 3.5\n'
        'requests_total{code="404",verb="get"} 1\n'
    )
    assert (counter.value("200", "get"), counter.value("500", "get")) == (3.5, 0)


def test_a_metric_with_labels_shows_only_after_first_use_and_one_without_from_the_start() -> None:
    registry = Registry()
    counter = registry.counter("b_total", "B.", ("x",))
    registry.counter("a_total", "A.")
    registry.gauge("g", "G.")
    assert registry.text() == (
        "# HELP a_total A.\n# TYPE a_total counter\na_total 0\n# HELP g G.\n# TYPE g gauge\ng 0\n"
    )
    counter.add("1", by=0)
    assert 'b_total{x="1"} 0\n' in registry.text()


def test_help_and_label_values_are_escaped() -> None:
    registry = Registry()
    registry.counter("c_total", 'a\\b\n"c"', ("path",)).add('C:\\x\n"y"')
    text = registry.text()
    assert '# HELP c_total a\\\\b\\n"c"\n' in text
    assert 'c_total{path="C:\\\\x\\n\\"y\\""} 1\n' in text


def test_a_histogram_counts_up_to_each_bound() -> None:
    registry = Registry()
    histogram = registry.histogram("d_seconds", "D.", (0.005, 1, 2.5), ("name",))
    for seconds in (0.005, 0.5, 2.5, 100):
        histogram.observe(seconds, "x")
    assert registry.text().splitlines()[1:] == [
        "# TYPE d_seconds histogram",
        'd_seconds_bucket{name="x",le="0.005"} 1',
        'd_seconds_bucket{name="x",le="1"} 2',
        'd_seconds_bucket{name="x",le="2.5"} 3',
        'd_seconds_bucket{name="x",le="+Inf"} 4',
        'd_seconds_sum{name="x"} 103.005',
        'd_seconds_count{name="x"} 4',
    ]
    assert (histogram.count("x"), histogram.count("y")) == (4, 0)


def test_a_gauge_is_set_or_read_on_demand() -> None:
    registry = Registry()
    registry.gauge("set", "S.", ("x",)).set(-1.5, "a")
    now: dict[tuple[str, ...], float] = {("a", "b"): 1.0}
    registry.gauge("read", "R.", ("x", "y"), lambda: now)
    assert 'read{x="a",y="b"} 1\n' in registry.text()
    now[("c", "d")] = math.inf
    del now["a", "b"]
    assert [line for line in registry.text().splitlines() if line[0] != "#"] == [
        'read{x="c",y="d"} +Inf',
        'set{x="a"} -1.5',
    ]


def test_numbers_are_written_as_prometheus_reads_them() -> None:
    registry = Registry()
    gauge = registry.gauge("n", "N.", ("x",))
    for i, value in enumerate((1e6, 0.1, 1e300, -math.inf, math.nan)):
        gauge.set(value, str(i))
    shown = [line.split()[1] for line in registry.text().splitlines()[2:]]
    assert shown == ["1000000", "0.1", "1e+300", "-Inf", "NaN"]


def test_label_values_from_outside_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MAX_SERIES", 3)
    registry = Registry()
    counter = registry.counter("c_total", "C.", ("name",))
    for i in range(10):
        counter.add(f"{i}" + "x" * 5_000)
    lines = registry.text().splitlines()[2:]
    assert lines[-1] == 'c_total{name="_other"} 7'
    assert len(lines) == 4
    assert all(len(line) < 1_100 for line in lines)


def test_what_is_wrong_in_the_program_is_said_at_once() -> None:
    registry = Registry()
    counter = registry.counter("c_total", "C.", ("x",))
    wrong = (
        lambda: registry.gauge("c_total", "Twice."),
        lambda: registry.counter("c-total", "A name."),
        lambda: registry.counter("d_total", "A label.", ("__x",)),
        lambda: registry.histogram("h", "Bounds.", (2, 1)),
        lambda: registry.histogram("h", "Its own label.", (1, 2), ("le",)),
        lambda: counter.add(),
        lambda: counter.add("a", by=-1),
    )
    for call in wrong:
        with pytest.raises(ValueError):
            call()
