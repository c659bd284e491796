"""That a node puts its files there is tested in test_node and test_sync_node."""

from pathlib import Path

from devlet.daemon.root import LAYOUT
from devlet.testing.node_places import NodePlaces


def test_the_directories_are_those_of_a_root() -> None:
    places = NodePlaces()
    places.root = Path("/r")
    folders = [places.device_plugins, places.plugins_registry, places.plugins, places.cdi, places.pod_resources.parent]
    assert {path.relative_to("/r").as_posix() for path in folders} == set(LAYOUT)
