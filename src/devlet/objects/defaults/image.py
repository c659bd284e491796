"""When an image is pulled if the pod does not say.

The tag alone decides: one that is missing means `latest`, which is looked up again each time; a digest never changes.
"""

from typing import Any

__all__ = ["pull_policy"]


def pull_policy(image: Any) -> str:
    """Always or IfNotPresent. The colon of a registry's port is not that of a tag."""
    if not isinstance(image, str) or not image:
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
