"""Handling a request: authenticate the user, parse the path, authorize, and call the handler.

Nothing here knows about sockets: `server` listens and passes requests to `KubeApi.handle`."""

import logging
from functools import partial

from aiohttp import web
from msgspec.structs import replace

from devlet.auth.rules import Attributes
from devlet.cluster.served_store import ServedStore
from devlet.errors import DevletError
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.heavy_work import HeavyWork
from devlet.objects.kinds import Catalogue
from devlet.objects.statuses import failure
from devlet.serve.kube_api import answers, bodies, negotiation, options, paths
from devlet.serve.kube_api.answers import Rejected
from devlet.serve.kube_api.calls import Call
from devlet.serve.kube_api.endpoints import Endpoints
from devlet.serve.kube_api.gate import Gate
from devlet.serve.kube_api.handlers import Handlers, method_not_allowed
from devlet.serve.kube_api.negotiation import Format
from devlet.serve.kube_api.node_views import NodeViews
from devlet.serve.kube_api.paths import Target, WithViews
from devlet.serve.kube_api.virtual import Virtual

log = logging.getLogger(__name__)

_YAML_FACTOR = 16  # encoding a byte of YAML takes as long as processing this many bytes of JSON

_ITEM_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


class KubeApi:
    def __init__(
        self,
        store: ServedStore,
        gate: Gate,
        handlers: Handlers,
        virtual: Virtual,
        endpoints: Endpoints,
        clock: Clock,
        views: NodeViews | None = None,
        heavy: HeavyWork | None = None,
    ) -> None:
        self._catalogue: Catalogue = store.catalogue if views is None else WithViews(store.catalogue)
        self._views = views
        self._gate = gate
        self._handlers = handlers
        self._virtual = virtual
        self._endpoints = endpoints
        self._clock = clock
        self._heavy = heavy or HeavyWork()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answered(request)
        except DevletError as e:
            return answers.error(e, pretty=_is_pretty(request))
        except (ConnectionError, TimeoutError):
            raise
        except Exception as e:
            log.exception("request failed", extra=facts(method=request.method, path=request.path, err=e))
            return answers.error(Rejected(failure(500, "InternalError", "Internal error occurred: see the log")))

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        user = self._gate.authenticate(request)
        place = paths.parse(self._catalogue, paths.path_of(request.raw_path))
        if not isinstance(place, Target):
            self._gate.require(user, Attributes(request.method.lower(), request.path))
            return await self._endpoints.answer(request, place)
        verb = verb_of(request, place)
        self._gate.require(user, attributes_of(request, place, verb))
        format_ = format_of(request, watch=verb == "watch")
        call = Call(request, place, user, format_, self._clock.now(), self._heavy)
        if place.virtual or place.subresource == "token":
            response = await self._virtual.handle(call, verb)
        elif self._views is not None and paths.is_view(place.resource.kind):
            check_subresource(place)
            response = await self._views.handle(call, verb)
        else:
            check_subresource(place)
            response = await self._handlers.handle(call, verb)
        return await _in_form(response, call)


async def _in_form(response: web.StreamResponse, call: Call) -> web.StreamResponse:
    """Return the response in the form that the client asked for. YAML is encoded in Python, which takes long."""
    if call.format.media_type != bodies.YAML:
        return response
    size = len(response.body) if isinstance(response, web.Response) and isinstance(response.body, bytes) else 0
    return await call.computed(size * _YAML_FACTOR, partial(answers.in_form, response, call.format))


def verb_of(request: web.BaseRequest, target: Target) -> str:
    verbs = _ITEM_VERBS if target.name else _COLLECTION_VERBS
    verb = verbs.get(request.method)
    if verb is None or (target.virtual and verb != "create"):
        raise method_not_allowed()
    if verb in ("get", "list") and options.is_watch(request.query):
        return "watch"
    return verb


def attributes_of(request: web.BaseRequest, target: Target, verb: str) -> Attributes:
    return replace(
        attributes_of_target(target, verb),
        path=request.path,
        field_selector=request.query.get("fieldSelector", ""),
        label_selector=request.query.get("labelSelector", ""),
    )


def attributes_of_target(target: Target, verb: str) -> Attributes:
    resource = target.resource
    return Attributes(
        verb,
        group=resource.group,
        version=resource.version,
        resource=resource.plural,
        subresource=target.subresource,
        namespace=target.namespace or (target.name if resource.plural == "namespaces" else ""),
        name=target.name,
    )


def check_subresource(target: Target) -> None:
    if target.subresource and target.subresource not in target.resource.kind.subresources:
        message = "the server could not find the requested resource"
        raise Rejected(failure(404, "NotFound", message, {}))


def format_of(request: web.BaseRequest, *, watch: bool) -> Format:
    found = negotiation.negotiate(request.headers.get("Accept", ""), watch=watch, protobuf=False)
    if found is None:
        offered = negotiation.media_types(watch=watch, protobuf=False)
        raise Rejected(failure(406, "NotAcceptable", negotiation.not_acceptable(offered)))
    return found


def _is_pretty(request: web.BaseRequest) -> bool:
    agent = request.headers.get("User-Agent", "")
    return negotiation.is_pretty(Format(), request.query.get("pretty"), agent)
