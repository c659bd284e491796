"""Find out what a server serves. The version of a group does not say which resources are enabled in it."""

from typing import TypeVar

import msgspec

from devlet.cluster.remote.http import Request, Transport
from devlet.errors import DevletError, NotFound
from devlet.objects.kinds import Kind, Resource

T = TypeVar("T")


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct):
    groups: list[_Group] | None = None


class _Core(msgspec.Struct):
    versions: list[str] | None = None


class _Info(msgspec.Struct, rename="camel"):
    git_version: str


class Discovery:
    """Discovery of a server, which is asked each time."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def server_version(self) -> str:
        """Return the release of the server: `v1.36.4`."""
        return (await self._get("/version", _Info)).git_version

    async def api_versions(self) -> frozenset[str]:
        """Return the API versions: `v1`, `resource.k8s.io/v1`."""
        core, groups = await self._get("/api", _Core), await self._get("/apis", _Groups)
        named = {version.group_version for group in groups.groups or () for version in group.versions or ()}
        return frozenset(core.versions or ()) | named

    async def resources(self, api_version: str) -> frozenset[str]:
        """Return the plurals of the resources in a version, with `/` and their subresources; empty if it is not
        served."""
        path = f"/{'apis' if '/' in api_version else 'api'}/{api_version}"
        try:
            found = await self._get(path, _Resources)
        except NotFound:
            return frozenset()
        return frozenset(resource.name for resource in found.resources or ())

    async def resource_of(self, kind: Kind) -> Resource:
        """Return the kind in the first of its versions that the server serves."""
        for api_version in kind.api_versions:
            if kind.plural in await self.resources(api_version):
                return Resource(kind, api_version)
        versions = ", ".join(kind.api_versions)
        raise NotFound(f"{self._transport.address}: serves {kind.plural} in none of {versions}", resource=kind.key)

    async def _get(self, path: str, type_: type[T]) -> T:
        answer = await self._transport.call(Request("GET", path))
        try:
            return msgspec.json.decode(answer.body, type=type_)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise DevletError(f"{self._transport.address}{path}: unexpected answer: {e}") from None
