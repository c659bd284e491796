"""Allocate devices to a claim by hand, for tests and for trying a driver without a scheduler.

    python -m devlet.testing.allocate --root ROOT CLAIM --device gpu.example.com/pool/gpu-0 [--pod POD]...

writes the claim's status as a scheduler would: these devices, each for the request that stands before it (`REQUEST=`)
or else for the first one, and reserved for these pods, which must exist. Slices, classes and other claims are not
looked at."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import click

from devlet.cluster.client import Cluster, MergePatch
from devlet.cluster.remote import kubeconfig
from devlet.cluster.remote.client import connected
from devlet.errors import DevletError, InvalidInput
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS, RESOURCE_CLAIMS

__all__ = ["allocate"]


async def allocate(
    cluster: Cluster, claim: str, devices: Sequence[str], pods: Sequence[str] = (), namespace: str = "default"
) -> Document:
    """Write the allocation, and return the claim. A device is `[REQUEST=]DRIVER/POOL/DEVICE`; its pool may have
    slashes."""
    found = await cluster.get(RESOURCE_CLAIMS, claim, namespace)
    requests = found["spec"]["devices"].get("requests") or [{"name": ""}]
    results = [_result(device, requests[0]["name"]) for device in devices]
    users = [await _consumer(cluster, pod, namespace) for pod in pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    return await cluster.patch(RESOURCE_CLAIMS, claim, MergePatch({"status": status}), namespace, subresource="status")


def _result(device: str, request: str) -> Document:
    before, equals, rest = device.rpartition("=")
    driver, _, place = rest.partition("/")
    pool, slash, name = place.rpartition("/")
    if not (slash and driver and pool and name):
        raise InvalidInput(f"{device!r} is not a device: expected [REQUEST=]DRIVER/POOL/DEVICE")
    return {"request": before if equals else request, "driver": driver, "pool": pool, "device": name}


async def _consumer(cluster: Cluster, pod: str, namespace: str) -> Document:
    uid = (await cluster.get(PODS, pod, namespace))["metadata"]["uid"]
    return {"resource": "pods", "name": pod, "uid": uid}


async def _run(root: Path, claim: str, devices: Sequence[str], pods: Sequence[str], namespace: str) -> None:
    async with connected(kubeconfig.connection([root / "kubeconfig"])) as cluster:
        await allocate(cluster, claim, devices, pods, namespace)


@click.command()
@click.argument("claim")
@click.option("--root", type=click.Path(path_type=Path), required=True, help="The root of a running devlet.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    required=True,
    help="Device, as [REQUEST=]DRIVER/POOL/DEVICE; may be repeated.",
)
@click.option("--pod", "pods", multiple=True, help="A pod that may use the claim; may be repeated.")
@click.option("--namespace", "-n", default="default", show_default=True)
def main(root: Path, claim: str, devices: tuple[str, ...], pods: tuple[str, ...], namespace: str) -> None:
    """Allocate devices to CLAIM."""
    try:
        anyio.run(partial(_run, root, claim, devices, pods, namespace))
    except DevletError as e:
        click.echo(f"error: {e}", err=True)
        sys.exit(1)
    click.echo(f"resourceclaim.resource.k8s.io/{claim} allocated")


if __name__ == "__main__":
    main()
