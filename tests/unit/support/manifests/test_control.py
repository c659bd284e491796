"""The environments run in tests/peers. Here: that they say what they lack, and which loops are whose."""

from pathlib import Path

import pytest

from devlet.errors import InvalidInput
from tests.support.manifests.control import BESIDE, REPLACED, embedded_environment, kubernetes_environment

pytestmark = [pytest.mark.anyio, pytest.mark.long]


def test_no_loop_runs_twice() -> None:
    assert not set(BESIDE) & set(REPLACED)
    assert "garbage-collector-controller" in BESIDE


async def test_without_kube_scheduler_there_is_no_reference(root: Path) -> None:
    with pytest.raises(InvalidInput, match="no kube-scheduler: run `make peers`"):
        async with embedded_environment(root, root, root, control="reference"):
            pass


async def test_without_drivers_there_is_nothing_to_try(root: Path) -> None:
    with pytest.raises(InvalidInput, match="no dra-example-kubeletplugin: run `make peers`"):
        async with embedded_environment(root, root, root, control="devlet"):
            pass


async def test_without_kube_apiserver_there_is_no_kubernetes(root: Path) -> None:
    with pytest.raises(InvalidInput, match="kube-apiserver"):
        async with kubernetes_environment(root, root, root, root, control="devlet"):
            pass
