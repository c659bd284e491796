"""What a container would get, without a container engine: its own spec, what devices add to it, and what is odd.

CDI is strict, as engines are: a device that cannot be resolved, or a device node that the host does not have, and there
is no container. A device plugin may name device nodes that are not there, as pretended devices do; these are left out
of the OCI spec and told in `notes`. Looks at the host's device nodes, and so blocks."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from devlet.errors import InvalidInput, NotCreated, NotFound
from devlet.objects.types.container import Container
from devlet.objects.types.pod import Pod
from devlet.runtime import oci
from devlet.runtime.cdi.apply import Document
from devlet.runtime.cdi.host_nodes import Find, Look, find, look
from devlet.runtime.cdi.registry import Registry
from devlet.runtime.containers import Config

__all__ = ["Description", "Wanted", "describe_container", "own_spec"]


class Wanted(Struct, frozen=True):
    """A container of a pod, and what it gets besides its own spec."""

    pod: Pod
    container: Container
    config: Config | None


class Description(Struct, frozen=True):
    """`oci` is the whole spec, `added` the part of it that is not the container's own. Without `oci` the container
    cannot be made, and a note says why."""

    oci: Document | None = None
    added: Document = {}
    notes: tuple[str, ...] = ()


def describe_container(wanted: Wanted, registry: Registry, *, look: Look = look, find: Find = find) -> Description:
    """NotCreated if the CDI devices cannot be given as the registry and the host are."""
    own = own_spec(wanted.pod, wanted.container)
    if wanted.config is None:
        return Description(own)
    notes: list[str] = []
    names: tuple[str, ...] = ()
    try:
        names = oci.cdi_devices(wanted.config)
        registry.resolve(names).complete()
        whole = oci.describe(wanted.config, registry, own, look=look, find=_Lenient(find, look, notes))
    except (NotFound, InvalidInput) as e:
        raise NotCreated(str(e) if _says_which(e, names) else f"CDI devices {', '.join(names)}: {e}") from e
    return Description(whole, _added(whole, own), tuple(notes))


def own_spec(pod: Pod, container: Container) -> Document:
    """What pod and container ask for themselves, as far as devices may change it. Values from elsewhere, such as of
    secrets, are left out."""
    process: Document = {}
    if args := [*container.command, *container.args]:
        process["args"] = args
    if env := [f"{each.name}={each.value}" for each in container.env if each.value_from is None]:
        process["env"] = env
    if user := _user(pod, container):
        process["user"] = user
    return {"ociVersion": oci.OCI_VERSION} | ({"process": process} if process else {})


class _Lenient:
    """Finds nothing where there is nothing, and notes it."""

    def __init__(self, find: Find, look: Look, notes: list[str]) -> None:
        self._find = find
        self._look = look
        self._notes = notes

    def __call__(self, path: str) -> list[tuple[str, str]]:
        try:
            found = self._find(path)
            for _, node in found:
                self._look(node)
        except (NotFound, InvalidInput) as e:
            self._notes.append(f"no device node for the container: {e}")
            return []
        return found


def _says_which(error: Exception, names: Sequence[str]) -> bool:
    return not names or any(name in str(error) for name in names)


def _user(pod: Pod, container: Container) -> Document:
    """The container's own settings go before those of its pod; groups are the pod's alone."""
    of_pod: dict[str, Any] = pod.spec.security_context or {}
    of_both = of_pod | (container.security_context or {})
    user = {key: of_both[name] for key, name in (("uid", "runAsUser"), ("gid", "runAsGroup")) if name in of_both}
    groups = [of_pod[key] for key in ("fsGroup",) if key in of_pod] + list(of_pod.get("supplementalGroups") or ())
    return user | ({"additionalGids": list(dict.fromkeys(groups))} if groups else {})


def _added(whole: Document, own: Document) -> Document:
    """Without what was there before, and without the version."""
    added = {key: value for key, value in whole.items() if key not in own}
    had, has = own.get("process") or {}, whole.get("process") or {}
    process: Document = {}
    if env := _more(has.get("env"), had.get("env")):
        process["env"] = env
    groups = (has.get("user") or {}).get("additionalGids")
    if new := _more(groups, (had.get("user") or {}).get("additionalGids")):
        process["user"] = {"additionalGids": new}
    return ({"process": process} if process else {}) | {key: v for key, v in added.items() if key != "process"}


def _more(after: Any, before: Any) -> list[Any]:
    return [each for each in after or () if each not in (before or ())]
