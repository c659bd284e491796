"""Where the files and sockets of a node are, by its root."""

from pathlib import Path

from devlet.daemon import kube_api
from devlet.daemon.root import CDI, DEVICE_PLUGINS, PLUGINS, POD_RESOURCES, REGISTRY
from devlet.serve import pod_resources

__all__ = ["NodePlaces"]


class NodePlaces:
    root: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, for kubectl and for any client of Kubernetes."""
        return self.root / "kubeconfig"

    @property
    def socket(self) -> Path:
        """The API without TLS and credentials, for the owner of the node."""
        return self.root / kube_api.SOCKET

    @property
    def device_plugins(self) -> Path:
        """The directory of `kubelet.sock`, and of the sockets of device plugins."""
        return self.root / DEVICE_PLUGINS

    @property
    def plugins_registry(self) -> Path:
        """Where DRA drivers put their registration sockets."""
        return self.root / REGISTRY

    @property
    def plugins(self) -> Path:
        """Where each DRA driver has a directory of its own."""
        return self.root / PLUGINS

    @property
    def cdi(self) -> Path:
        """Where drivers put their CDI specs."""
        return self.root / CDI

    @property
    def pod_resources(self) -> Path:
        """The socket of the PodResources service."""
        return self.root / POD_RESOURCES / pod_resources.SOCKET
