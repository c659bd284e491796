"""Run kube-scheduler and kube-controller-manager, unmodified, against whatever API server a kubeconfig names.

    async with kube_scheduler(binaries, root, kubeconfig), kube_controller_manager(binaries, root, kubeconfig):
        ...  # pods are scheduled, claims generated

Each is entered once it reports itself healthy, on a loopback port of its own. Healthy is not synced: the scheduler
is ready when its informers are, the controller manager while its controllers still read their objects.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType

from devlet.errors import InvalidInput
from devlet.kit.processes import SHORT_GRACE, RunningProcess, process
from devlet.testing.waiting import DEADLINE
from tests.support.free_ports import LOOPBACK, free_ports
from tests.support.peers.health import answers

__all__ = ["CONTROLLERS", "FEATURE_GATES", "kube_controller_manager", "kube_scheduler", "switches"]

Program = AbstractAsyncContextManager[RunningProcess]

# Without these two, v1alpha3 and the taint rules are not served even when the versions are switched on.
FEATURE_GATES: Mapping[str, bool] = MappingProxyType({"DRADeviceTaintRules": True, "DRAResourcePoolStatus": True})

CONTROLLERS = (
    "resourceclaim-controller",
    "device-taint-eviction-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
)


# A pod that it has put aside, and whose event it missed, is looked at again after five minutes otherwise.
LOOK_AGAIN = "--pod-max-in-unschedulable-pods-duration=10s"


def kube_scheduler(
    binaries: Path,
    root: Path,
    kubeconfig: Path,
    *,
    feature_gates: Mapping[str, bool] = FEATURE_GATES,
    flags: Sequence[str] = (LOOK_AGAIN,),
    timeout: float = DEADLINE,
) -> Program:
    """Its log is `root/kube-scheduler.log`. `--kube-api-content-type=application/json` in `flags` keeps it from
    sending protobuf."""
    return _program("kube-scheduler", binaries, root, kubeconfig, "/readyz", feature_gates, flags, timeout)


def kube_controller_manager(
    binaries: Path,
    root: Path,
    kubeconfig: Path,
    *,
    controllers: Sequence[str] = CONTROLLERS,
    service_account_key: Path | None = None,
    root_ca: Path | None = None,
    feature_gates: Mapping[str, bool] = FEATURE_GATES,
    flags: Sequence[str] = (),
    timeout: float = DEADLINE,
) -> Program:
    """Runs `controllers` and no others; its log is `root/kube-controller-manager.log`. Without `root_ca` nothing
    publishes the authority's certificate to the namespaces."""
    chosen = [f"--controllers={','.join(controllers)}"]
    if service_account_key:
        chosen.append(f"--service-account-private-key-file={service_account_key.absolute()}")
    if root_ca:
        chosen.append(f"--root-ca-file={root_ca.absolute()}")
    flags = [*chosen, *flags]
    return _program("kube-controller-manager", binaries, root, kubeconfig, "/healthz", feature_gates, flags, timeout)


def _program(
    name: str,
    binaries: Path,
    root: Path,
    kubeconfig: Path,
    health: str,
    feature_gates: Mapping[str, bool],
    flags: Sequence[str],
    timeout: float,
) -> Program:
    if not shutil.which(binaries / name):
        raise InvalidInput(f"{binaries} has no {name}: run `make peers`")
    [port] = free_ports(1)
    certs = root.absolute() / "certs" / name
    argv: list[str | Path] = [
        binaries / name,
        f"--kubeconfig={kubeconfig.absolute()}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={certs}",
        "--authentication-skip-lookup=true",
        *switches("--feature-gates", feature_gates),
        *flags,
    ]
    ready = answers(f"https://{LOOPBACK}:{port}{health}", ca_file=certs / f"{name}.crt")
    return process(argv, log=root / f"{name}.log", ready=ready, timeout=timeout, grace=SHORT_GRACE)


def switches(flag: str, values: Mapping[str, bool]) -> list[str]:
    """`--feature-gates=A=true,B=false`, and the like; nothing if there are none."""
    if not values:
        return []
    return [f"{flag}=" + ",".join(f"{name}={str(on).lower()}" for name, on in values.items())]
