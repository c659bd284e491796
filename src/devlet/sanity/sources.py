"""The sources of the rules, which checks cite, and where to read them."""

from typing import NamedTuple

__all__ = [
    "CDI",
    "DEVICE_MANAGER",
    "DEVICE_PLUGINS",
    "DEVICE_PLUGIN_API",
    "DRA_API",
    "DRA_HELPER",
    "DRA_MANAGER",
    "GRPC",
    "KEP_4381",
    "KEP_4680",
    "KEP_5075",
    "KEP_5304",
    "PLUGIN_MANAGER",
    "POD_LIFE",
    "PRACTICE",
    "REGISTRATION_API",
    "RESOURCE_API",
    "Source",
]


class Source(NamedTuple):
    name: str
    url: str

    def __str__(self) -> str:
        return f"{self.name}, {self.url}"


_DOCS = "https://kubernetes.io/docs/concepts"
_KUBELET_API = "https://github.com/kubernetes/kubelet/blob/master/pkg/apis"
_KUBERNETES = "https://github.com/kubernetes/kubernetes/tree/v1.36.4"  # as the programs of the tests
_ENHANCEMENTS = "https://github.com/kubernetes/enhancements/issues"

# What is written down
DEVICE_PLUGINS = Source("device plugins", f"{_DOCS}/extend-kubernetes/compute-storage-net/device-plugins/")
DEVICE_PLUGIN_API = Source("device plugin API", f"{_KUBELET_API}/deviceplugin/v1beta1/api.proto")
REGISTRATION_API = Source("plugin registration API", f"{_KUBELET_API}/pluginregistration/v1/api.proto")
DRA_API = Source("DRA API", f"{_KUBELET_API}/dra/v1/api.proto")
RESOURCE_API = Source("resource.k8s.io API", "https://github.com/kubernetes/api/blob/master/resource/v1/types.go")
KEP_4381 = Source("KEP 4381", f"{_ENHANCEMENTS}/4381")
KEP_4680 = Source("KEP 4680", f"{_ENHANCEMENTS}/4680")
KEP_5075 = Source("KEP 5075", f"{_ENHANCEMENTS}/5075")
KEP_5304 = Source("KEP 5304", f"{_ENHANCEMENTS}/5304")
CDI = Source("CDI", "https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md")
POD_LIFE = Source("pod lifecycle", f"{_DOCS}/workloads/pods/pod-lifecycle/")
GRPC = Source("gRPC", "https://grpc.io/docs/guides/")

# What kubelets do
DEVICE_MANAGER = Source("kubelet's device manager", f"{_KUBERNETES}/pkg/kubelet/cm/devicemanager")
DRA_MANAGER = Source("kubelet's DRA manager", f"{_KUBERNETES}/pkg/kubelet/cm/dra")
PLUGIN_MANAGER = Source("kubelet's plugin manager", f"{_KUBERNETES}/pkg/kubelet/pluginmanager")
DRA_HELPER = Source("kubeletplugin", f"{_KUBERNETES}/staging/src/k8s.io/dynamic-resource-allocation/kubeletplugin")

# What is not written down, but expected by those who run nodes
PRACTICE = Source("good practice", "docs/sanity.md#where-the-rules-are-from")
