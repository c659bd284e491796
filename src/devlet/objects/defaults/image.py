"""The default image pull policy.

Only the tag matters. A missing tag means `latest`, which is always pulled; an image with a digest never changes.
"""

from typing import Any

__all__ = ["pull_policy"]


def pull_policy(image: Any) -> str:
    """Return Always or IfNotPresent. The colon before a registry's port does not start a tag."""
    if not isinstance(image, str) or not image:
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    _, _, tag = name.rpartition("/")[2].partition(":")
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
