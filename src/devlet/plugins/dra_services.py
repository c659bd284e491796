"""Choose the services of a DRA driver to call, and their names on the wire. Pure.

The advertised name is not always the name of the gRPC service: `v1alpha3.NodeService` stands for `v1alpha3.Node`, with
the messages of v1alpha4. The newest service is chosen, whatever the order in which the driver advertises them. Drivers
up to Kubernetes 1.33 may advertise a bare version such as `1.0.0`: the first call finds out which service they have.
"""

import re
from collections.abc import Sequence

from devlet.errors import InvalidInput
from devlet.plugins.dra import HealthService, Service

__all__ = [
    "choose",
    "health",
    "health_path",
    "names_no_service",
    "on_the_wire",
    "prepare_path",
    "takes_one_claim",
    "unprepare_path",
]

# Newest first.
_ADVERTISED = {
    Service.V1: "v1.DRAPlugin",
    Service.V1BETA1: "v1beta1.DRAPlugin",
    Service.V1ALPHA4: "v1alpha3.NodeService",
}
_ON_THE_WIRE = {
    Service.V1: "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    Service.V1BETA1: "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
    Service.V1ALPHA4: "v1alpha3.Node",  # its package kept the name of the previous version
    Service.V1ALPHA3: "v1alpha3.Node",
    Service.V1ALPHA2: "v1alpha2.Node",
    Service.V1ALPHA1: "v1alpha1.Node",
}
_ONE_CLAIM = frozenset({Service.V1ALPHA2, Service.V1ALPHA1})
_bare_version = re.compile(r"v?[0-9]{1,9}(\.[0-9]{1,9}){0,2}").fullmatch  # as in 1.0.0


def choose(versions: Sequence[str], legacy: Service | None = None) -> tuple[Service, ...]:
    """Return the services to call, in the order in which they are tried. `legacy` is the configured API of this driver:
    nothing else is tried then. Raise `InvalidInput` if there is no service to call."""
    if not versions:
        raise InvalidInput("the list of supported versions is empty: a DRA driver must name the services that it has")
    if legacy is not None:
        return (legacy,)
    if chosen := tuple(service for service, name in _ADVERTISED.items() if name in versions):
        return chosen
    if names_no_service(versions):
        return tuple(_ADVERTISED)
    listed, known = " ".join(versions), " ".join(_ADVERTISED.values())
    raise InvalidInput(f"none of the supported versions [{listed}] is known, there are [{known}]")


def names_no_service(versions: Sequence[str]) -> bool:
    """Return True if the versions do not tell which service the driver has."""
    return any(map(_bare_version, versions)) and not any(name in versions for name in _ADVERTISED.values())


def health(versions: Sequence[str]) -> HealthService | None:
    return next((service for service in HealthService if service in versions), None)


def on_the_wire(service: Service) -> str:
    """Return the name of the gRPC service."""
    return _ON_THE_WIRE[service]


def prepare_path(service: Service) -> str:
    """Return the full path of the gRPC method."""
    return f"/{_ON_THE_WIRE[service]}/NodePrepareResource{_plural(service)}"


def unprepare_path(service: Service) -> str:
    return f"/{_ON_THE_WIRE[service]}/NodeUnprepareResource{_plural(service)}"


def health_path(service: HealthService) -> str:
    return f"/{service}/NodeWatchResources"


def takes_one_claim(service: Service) -> bool:
    """Return True if the service takes one claim per call, and not a list."""
    return service in _ONE_CLAIM


def _plural(service: Service) -> str:
    return "" if takes_one_claim(service) else "s"
