"""When images are pulled."""

from typing import Any

import pytest

from devlet.objects.defaults.image import pull_policy


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry.example.com:5000/team/app", "Always"),
        ("registry.example.com:5000/team/app:v1", "IfNotPresent"),
        ("app@sha256:0123", "IfNotPresent"),
        ("app:latest@sha256:0123", "Always"),
        ("", "IfNotPresent"),
        (None, "IfNotPresent"),
        (7, "IfNotPresent"),
    ],
)
@pytest.mark.spec("KA-7.1")
def test_only_the_latest_image_is_always_pulled(image: Any, policy: str) -> None:
    assert pull_policy(image) == policy
