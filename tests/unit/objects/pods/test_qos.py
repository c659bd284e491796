"""Quality-of-service classes."""

from typing import Any

import pytest

from devlet.objects.documents import Document
from devlet.objects.pods.qos import qos_class


def container(requests: Any = None, limits: Any = None) -> Document:
    return {"resources": {"requests": requests, "limits": limits}}


def pod(*containers: Document, **spec: Any) -> Document:
    return {"spec": {"containers": [*containers], **spec}}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.spec("KA-7.1")
@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (pod(container()), "BestEffort"),
        (pod({}), "BestEffort"),
        (pod(container({"gpu.example.com/gpu": "1"}, {"gpu.example.com/gpu": "1"})), "BestEffort"),
        (pod(container({"cpu": "0"}, {"memory": 0})), "BestEffort"),
        (pod(container(BOTH, BOTH)), "Guaranteed"),
        (pod(container({"cpu": "1000m", "memory": "1024Mi"}, BOTH)), "Guaranteed"),
        (pod(container({"cpu": 1, "memory": "1Gi"}, {**BOTH, "gpu.example.com/gpu": "1"})), "Guaranteed"),
        (pod(container(BOTH, BOTH), container()), "Burstable"),
        (pod(container(BOTH, BOTH), initContainers=[container()]), "Burstable"),
        (pod(container(BOTH, BOTH), initContainers=[container(BOTH, BOTH)]), "Guaranteed"),
        (pod(container({"cpu": "1"}, {"cpu": "1"})), "Burstable"),
        (pod(container({"cpu": "500m", "memory": "1Gi"}, BOTH)), "Burstable"),
        (pod(container(None, BOTH)), "Burstable"),
        (pod(container(), resources={"requests": BOTH, "limits": BOTH}), "Guaranteed"),
        (pod(container(BOTH, BOTH), resources={"requests": BOTH}), "Burstable"),
        ({}, "BestEffort"),
        ({"spec": "text"}, "BestEffort"),
        (pod(container({"cpu": "one"}, {"cpu": []})), "BestEffort"),
    ],
)
def test_the_class_follows_from_cpu_and_memory_of_all_containers(document: Document, expected: str) -> None:
    assert qos_class(document) == expected
