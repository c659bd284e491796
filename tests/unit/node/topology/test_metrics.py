"""Metrics of admission that are not counted."""

from devlet.node.topology.metrics import NUMA_NODE, TopologyMetrics, Uncounted


def test_what_nobody_counts_is_forgotten() -> None:
    metrics: TopologyMetrics = Uncounted()
    metrics.admission_requested()
    metrics.admission_failed()
    metrics.admission_took(0.1)
    metrics.aligned("container", NUMA_NODE)
    metrics.not_aligned("pod", NUMA_NODE)
    assert vars(metrics) == {}
