from dataclasses import replace
from datetime import UTC, datetime

import pytest

from devlet.cluster.client import DeleteOptions
from devlet.cluster.store import preparing
from devlet.cluster.store.deletion import Outcome, decide
from devlet.cluster.store.strategy import STRATEGIES, Strategy, strategy_of
from devlet.objects.documents import Document
from devlet.objects.kinds import BUILT_IN, CONFIG_MAPS, NAMESPACES, PODS, RESOURCE_CLAIMS, Kind, Resource

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def namesake(resource: Resource) -> Resource:
    """Return a custom resource that has the name of a built-in kind."""
    api_version = "example.com/v1"
    kind = replace(resource.kind, api_versions=(api_version,), storage="")
    return Resource(kind, api_version)


def test_every_entry_is_for_a_kind_that_exists() -> None:
    assert STRATEGIES.keys() <= {kind.key for kind in BUILT_IN}


def test_a_kind_without_an_entry_has_the_default_strategy() -> None:
    assert strategy_of(CONFIG_MAPS.kind) == Strategy()


@pytest.mark.parametrize("resource", [PODS, NAMESPACES, RESOURCE_CLAIMS], ids=lambda resource: resource.name)
def test_a_custom_resource_that_is_called_like_a_built_in_kind_has_the_default_strategy(resource: Resource) -> None:
    custom: Kind = namesake(resource).kind
    assert custom.kind == resource.kind.kind
    assert strategy_of(resource.kind) != strategy_of(custom) == Strategy()


def test_a_custom_resource_that_is_called_pod_needs_no_spec() -> None:
    resource = namesake(PODS)
    made: Document = {"kind": "Pod", "apiVersion": resource.api_version, "metadata": {"name": "x"}}
    preparing.prepare_create(resource.kind, made, uid="u", now=NOW)
    made["metadata"]["resourceVersion"] = "7"
    assert "spec" not in made
    assert decide(resource, made, DeleteOptions(), NOW) == Outcome(remove=True)
