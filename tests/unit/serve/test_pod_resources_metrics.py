from devlet.kit.metrics import Registry
from devlet.serve.pod_resources_metrics import PodResourcesMetrics


def shown(registry: Registry) -> list[str]:
    return [line for line in registry.text().splitlines() if not line.startswith("#")]


def test_requests_are_counted_in_all_and_by_method() -> None:
    registry = Registry()
    metrics = PodResourcesMetrics(registry)
    for method in ("List", "Get", "Get", "GetAllocatableResources"):
        metrics.requested("v1", method)
    metrics.failed("v1", "Get")
    assert shown(registry) == [
        'kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"} 1',
        'kubelet_pod_resources_endpoint_requests_get{server_api_version="v1"} 2',
        'kubelet_pod_resources_endpoint_requests_get_allocatable{server_api_version="v1"} 1',
        'kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} 1',
        'kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"} 4',
    ]


def test_the_first_version_has_one_number_for_all() -> None:
    registry = Registry()
    metrics = PodResourcesMetrics(registry)
    metrics.requested("v1alpha1", "List")
    metrics.failed("v1alpha1", "List")
    assert shown(registry) == ['kubelet_pod_resources_endpoint_requests_total{server_api_version="v1alpha1"} 1']
