"""`devlet token`: credentials with fewer permissions than the administrator's.

They are signed with keys in the root, so only the owner of the root can create them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from devlet.cli.session import Session
from devlet.cli.target import Target, connect, own_node
from devlet.errors import AlreadyExists, InvalidInput

if TYPE_CHECKING:
    from devlet.daemon.config import Config

_EXAMPLE = """\b
Examples:
  devlet token driver gpu.example.com
  devlet token driver gpu.example.com --node-name node2
  devlet token node node2 > node2.kubeconfig"""


@click.command(epilog=_EXAMPLE)
@click.argument("kind", type=click.Choice(["driver", "node"]), metavar="driver|node")
@click.argument("name")
@click.option("--root", metavar="DIR", help="Use the devlet on DIR. [default: as for `devlet up`]")
@click.option(
    "--node-name", metavar="NODE", help="Name of the node that the driver runs on. [default: the root's node]"
)
def command(kind: str, name: str, root: str | None, node_name: str | None) -> None:
    """Create credentials for a driver on a node, or for another node.

    For a driver, write a kubeconfig and print its path. It allows the driver to publish the ResourceSlices of its node
    and to report the status of its devices. For a node, print a kubeconfig with which the node can join this
    cluster."""
    from devlet.daemon import root_format
    from devlet.daemon.config import load

    config = load({"root": root, "node_name": node_name})
    root_format.check(config.root)
    _check_has_api(config.root, kind, name, node_name)
    made = _Root(config)
    if kind == "driver":
        click.echo(made.driver_kubeconfig(name, node_name))
    else:
        click.echo(made.credentials.node_kubeconfig(name, made.url, datetime.now(UTC)), nl=False)


def _check_has_api(root: Path, kind: str, name: str, node_name: str | None) -> None:
    """Raise InvalidInput for a node that has joined another cluster: its credentials are created there."""
    from devlet.daemon.membership import server_of

    if not (address := server_of(root)):
        return
    node = (node_name or _own_node(root) or "NODE") if kind == "driver" else ""
    there = f"devlet token {kind} {name}" + (f" --node-name {node}" if node else "")
    raise InvalidInput(
        f"the node on {root} belongs to the cluster at {address}, which must create its credentials:"
        f" if that is a devlet, run `{there}` on its machine"
    )


def _own_node(root: Path) -> str:
    session = connect(Target(root=root))
    try:
        return own_node(session)
    finally:
        session.close()


class _Root:
    """The credentials of a root on which a devlet has been started before."""

    def __init__(self, config: "Config") -> None:
        from devlet.auth import certificates, kubeconfigs
        from devlet.auth.credentials import open_credentials

        self._path, self._node = config.root, config.node_name
        clusters = kubeconfigs.read(config.root / "kubeconfig").get("clusters") or ()
        if not clusters:
            raise InvalidInput(f"{config.root} has no kubeconfig yet: start it with `devlet up --root {config.root}`")
        self.url = str(clusters[0]["cluster"]["server"])
        names = certificates.server_names([config.api_address[0]])
        self.credentials = open_credentials(config.root, names, datetime.now(UTC))

    def driver_kubeconfig(self, name: str, wanted: str | None) -> Path:
        from devlet.auth.service_accounts import DRIVER_NAMESPACE, driver_account
        from devlet.objects.names import driver_name

        if errors := driver_name(name):
            raise InvalidInput(f"driver {name!r}: {errors[0]}")
        session = connect(Target(root=self._path))
        try:
            account = _account(session, DRIVER_NAMESPACE, driver_account(name))
            own = own_node(session) or self._node
        finally:
            session.close()
        node, now = wanted or own, datetime.now(UTC)
        elsewhere = node != own
        return self.credentials.write_driver_kubeconfig(name, node, account, self.url, now, elsewhere=elsewhere)


def _account(session: Session, namespace: str, name: str) -> dict[str, Any]:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    try:
        return session.send("POST", path, {"metadata": {"name": name}})[1]
    except AlreadyExists:
        return session.get(f"{path}/{name}")
