"""The paths of a node's files and sockets."""

from pathlib import Path

from devlet.daemon import kube_api
from devlet.daemon.root import CDI, DEVICE_PLUGINS, PLUGINS, POD_RESOURCES, REGISTRY
from devlet.serve import pod_resources

__all__ = ["NodePlaces"]


class NodePlaces:
    root: Path

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator, for kubectl and any other client."""
        return self.root / "kubeconfig"

    @property
    def socket(self) -> Path:
        """The socket of the API without TLS and credentials, for the owner of the node."""
        return self.root / kube_api.SOCKET

    @property
    def device_plugins(self) -> Path:
        """The directory of `kubelet.sock` and of the sockets of device plugins."""
        return self.root / DEVICE_PLUGINS

    @property
    def plugins_registry(self) -> Path:
        """The directory of the registration sockets of DRA drivers."""
        return self.root / REGISTRY

    @property
    def plugins(self) -> Path:
        """The directory in which each DRA driver has its own directory."""
        return self.root / PLUGINS

    @property
    def cdi(self) -> Path:
        """The directory of CDI specs."""
        return self.root / CDI

    @property
    def pod_resources(self) -> Path:
        """The socket of the PodResources service."""
        return self.root / POD_RESOURCES / pod_resources.SOCKET
