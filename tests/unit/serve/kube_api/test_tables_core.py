"""Events in both shapes, services, and objects with keys."""

from datetime import UTC, datetime
from typing import Any

import pytest

from devlet.objects.conversion import convert
from devlet.serve.kube_api.tables_core import CONFIG_MAPS, EVENTS, OTHERS, SECRETS, SERVICES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVENT: dict[str, Any] = {
    "kind": "Event",
    "apiVersion": "v1",
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "type": "Normal",
    "reason": "Scheduled",
    "message": "done\n",
    "source": {"component": "scheduler"},
    "firstTimestamp": "2026-01-02T03:03:55Z",
    "lastTimestamp": "2026-01-02T03:04:00Z",
    "count": 3,
}

pytestmark = pytest.mark.spec("KA-5")


@pytest.mark.spec("KA-10.44")
@pytest.mark.parametrize("api_version", ["v1", "events.k8s.io/v1"])
def test_an_event_is_the_same_in_both_shapes(api_version: str) -> None:
    cells = EVENTS.cells(convert(EVENT, api_version), NOW)
    assert cells == ["5s", "Normal", "Scheduled", "pod/p", "", "scheduler", "done", "10s", 3, "e"]


def test_a_series_counts_for_all_its_events() -> None:
    series = {"count": 9, "lastObservedTime": "2026-01-02T03:04:04.000000Z"}
    cells = EVENTS.cells({**EVENT, "series": series}, NOW)
    assert (cells[0], cells[8]) == ("1s", 9)


def test_an_event_without_counts_has_happened_once() -> None:
    new = {"regarding": {"kind": "Node"}, "eventTime": "2026-01-02T03:04:00.5Z", "reportingController": "c"}
    cells = EVENTS.cells({**new, "reportingInstance": "i"}, NOW)
    assert (cells[0], cells[3], cells[5], cells[8]) == ("4s", "node", "c, i", 1)


def test_the_number_of_keys_is_shown() -> None:
    assert CONFIG_MAPS.cells({"data": {"a": "b"}, "binaryData": {"c": "ZA=="}}, NOW)[1] == 2
    assert SECRETS.cells({"type": "Opaque", "data": {"a": "b"}}, NOW)[1:3] == ["Opaque", 1]


def test_a_service_without_an_address_is_shown_as_pending() -> None:
    spec = {
        "type": "LoadBalancer",
        "clusterIP": "10.0.0.1",
        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
    }
    assert SERVICES.cells({"spec": spec}, NOW)[1:5] == ["LoadBalancer", "10.0.0.1", "<pending>", "80:30080/TCP"]


def test_other_kinds_show_when_they_were_created() -> None:
    metadata = {"name": "x", "creationTimestamp": "2026-01-02T03:04:00Z"}
    assert OTHERS.cells({"metadata": metadata}, NOW) == ["x", "2026-01-02T03:04:00Z"]
