"""The part of a list that a node may see, for lists that it may not see whole: what is on it.

Kubernetes lets a node list pods, slices and its Node object only with the field selector that names it.
"""

import re
from urllib.parse import parse_qsl, urlencode

__all__ = ["narrowed", "warning"]

_OWN = (
    (re.compile(r"/api/v1(/namespaces/[^/]+)?/pods"), "spec.nodeName"),
    (re.compile(r"/api/v1/nodes"), "metadata.name"),
    (re.compile(r"/apis/resource\.k8s\.io/[^/]+/resourceslices"), "spec.nodeName"),
)


def narrowed(target: str, node: str) -> str | None:
    """The same path and query, for what is of the node alone. None if there is no such thing, or it is that already."""
    path, _, query = target.partition("?")
    field = next((field for pattern, field in _OWN if pattern.fullmatch(path)), None)
    pairs = parse_qsl(query, keep_blank_values=True)
    given = ",".join(value for key, value in pairs if key == "fieldSelector" and value)
    if field is None or f"{field}=" in given:
        return None
    selector = f"{given},{field}={node}" if given else f"{field}={node}"
    rest = [pair for pair in pairs if pair[0] != "fieldSelector"]
    return f"{path}?{urlencode([*rest, ('fieldSelector', selector)])}"


def warning(node: str) -> str:
    return f"only what is on node {node}: it may not see more of the cluster"
