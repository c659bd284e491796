"""What is counted of the PodResources service, under the names that a kubelet has.

Calls that the rate limit rejects are not counted. The API's first version has one number for all its calls."""

from devlet.kit.metrics import Registry

__all__ = ["PodResourcesMetrics"]

_PREFIX = "kubelet_pod_resources_endpoint"
_LABELS = ("server_api_version",)
_METHODS = {"List": "list", "GetAllocatableResources": "get_allocatable", "Get": "get"}


class PodResourcesMetrics:
    def __init__(self, registry: Registry) -> None:
        self._total = registry.counter(f"{_PREFIX}_requests_total", "Requests to the PodResources service.", _LABELS)
        self._requests = {
            method: registry.counter(f"{_PREFIX}_requests_{name}", f"Requests for {method}.", _LABELS)
            for method, name in _METHODS.items()
        }
        self._errors = {
            method: registry.counter(f"{_PREFIX}_errors_{name}", f"Requests for {method} that failed.", _LABELS)
            for method, name in _METHODS.items()
        }

    def requested(self, version: str, method: str) -> None:
        self._total.add(version)
        if version == "v1":
            self._requests[method].add(version)

    def failed(self, version: str, method: str) -> None:
        if version == "v1":
            self._errors[method].add(version)
