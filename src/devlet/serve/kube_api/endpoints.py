"""The endpoints that are not resources: discovery, OpenAPI, version, health and metrics."""

import platform
from collections.abc import Callable, Sequence
from functools import partial

from aiohttp import web

from devlet.kit.heavy_work import HeavyWork
from devlet.kit.metrics import CONTENT_TYPE, Registry
from devlet.objects import release
from devlet.objects.documents import Document
from devlet.objects.kinds import Catalogue
from devlet.objects.statuses import failure
from devlet.serve.kube_api import answers, bodies, discovery, health, negotiation, openapi_protobuf
from devlet.serve.kube_api.answers import Rejected
from devlet.serve.kube_api.health import Check
from devlet.serve.kube_api.negotiation import AGGREGATED
from devlet.serve.kube_api.openapi_custom import CustomSchema
from devlet.serve.kube_api.openapi_sources import Rendered
from devlet.serve.kube_api.openapi_v2 import OpenAPIV2
from devlet.serve.kube_api.openapi_v3 import OpenAPIV3
from devlet.serve.kube_api.paths import Group, GroupVersion, Other

_OPENAPI = "openapi"  # the owner, for HeavyWork, of the computations that make these documents
_PING = Check("ping")


class Endpoints:
    """`address` is where clients reach this server (HOST:PORT). `checks` are the health checks in addition to `ping`.
    `metrics` is what `/metrics` shows."""

    def __init__(
        self,
        catalogue: Catalogue,
        address: str,
        custom_schema: CustomSchema | None = None,
        *,
        metrics: Registry | None = None,
        checks: Sequence[Check] = (),
        heavy: HeavyWork | None = None,
    ) -> None:
        self._heavy = heavy or HeavyWork()
        self._catalogue = catalogue
        self._address = address
        self._metrics = metrics
        self._checks = (_PING, *checks)
        self._v2 = OpenAPIV2(catalogue, custom_schema)
        self._v3 = OpenAPIV3(catalogue, custom_schema)

    async def answer(self, request: web.BaseRequest, place: GroupVersion | Group | Other) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise Rejected(
                failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})
            )
        match place:
            case GroupVersion(api_version):
                if api_version not in discovery.group_versions(self._catalogue):
                    return _not_found()
                return answers.document(discovery.resource_list(self._catalogue, api_version))
            case Group(name):
                if not any(version.startswith(f"{name}/") for version in discovery.group_versions(self._catalogue)):
                    return _not_found()
                return answers.document(discovery.group(self._catalogue, name))
            case Other(path):
                if path.strip("/").partition("/")[0] == "openapi":
                    return await self._openapi(request, path.strip("/").partition("/")[2])
                return self._other(request, path.strip("/"))

    def _other(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        first, _, rest = path.partition("/")
        if path in ("api", "apis"):
            return self._root(request, core=path == "api")
        if path == "version":
            return answers.document(version_info(), pretty=True)
        if path == "metrics" and self._metrics is not None:
            return web.Response(text=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})
        if first in health.ENDPOINTS:
            return self._health(request, first, rest)
        return _not_found()

    def _root(self, request: web.BaseRequest, *, core: bool) -> web.StreamResponse:
        form = negotiation.negotiate_discovery(request.headers.get("Accept", ""), aggregated=True, protobuf=False)
        if form is None:
            offered = negotiation.media_types(protobuf=False)
            raise Rejected(failure(406, "NotAcceptable", negotiation.not_acceptable(offered)))
        if form.as_kind == AGGREGATED:
            shown = discovery.aggregated(self._catalogue, core=core)
        else:
            shown = discovery.api_versions(self._address) if core else discovery.group_list(self._catalogue)
        response = web.Response(body=answers.encode(shown), headers={"Vary": "Accept"})
        response.headers["Content-Type"] = form.content_type()
        return response

    def _health(self, request: web.BaseRequest, endpoint: str, name: str) -> web.StreamResponse:
        checks = [check for check in self._checks if endpoint in check.endpoints]
        if not name:
            query = request.query
            found = health.all_of(endpoint, checks, verbose="verbose" in query, excluded=query.getall("exclude", ()))
            return answers.text(found.text, found.code)
        for check in checks:
            if check.name == name:
                found = health.one(check)
                return answers.text(found.text, found.code)
        return _not_found()

    async def _openapi(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """Serve a document. A thread makes the documents, one at a time: definitions may be as large as any object."""
        version, _, group_version = path.partition("/")
        make: Callable[[], Rendered | None] | None = None
        media_type = bodies.JSON
        if path == "v2":
            media_type = _openapi_type(request)
            make = partial(self._v2.document, media_type)
        elif version == "v3":
            make = partial(self._v3.document, group_version) if group_version else self._v3.index
        found = await self._heavy.run(_OPENAPI, make) if make else None
        if found is None:
            return _not_found()
        headers = {"ETag": found.etag, "Vary": "Accept"}
        if request.headers.get("If-None-Match") == found.etag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=found.body, content_type=media_type, headers=headers)


def _openapi_type(request: web.BaseRequest) -> str:
    media_type = negotiation.negotiate_openapi(request.headers.get("Accept", ""))
    if media_type is None:
        offered = (bodies.JSON, openapi_protobuf.MEDIA_TYPE)
        raise Rejected(failure(406, "NotAcceptable", negotiation.not_acceptable(offered)))
    return media_type


def version_info() -> Document:
    major, minor, _ = release.KUBERNETES.removeprefix("v").split(".")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "gitVersion": release.KUBERNETES,
        "gitCommit": f"devlet-{release.DEVLET}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "python",
        "platform": f"linux/{machine}",
    }


def _not_found() -> web.Response:
    return answers.text("404 page not found\n", 404)
