"""The API on the socket of a node that has joined another cluster.

The node answers requests for its own views, health and metrics. It forwards all other requests to the cluster's API
server with the node's credentials. Only the user who runs devlet, and root, may use the socket.
"""

import logging
import os
import socket

from aiohttp import web

from devlet.auth.authentication import peer_user
from devlet.auth.users import User
from devlet.errors import DevletError
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.kit.heavy_work import HeavyWork
from devlet.objects.kinds import VIEWS_GROUP
from devlet.objects.statuses import failure
from devlet.serve.kube_api import answers, health, paths
from devlet.serve.kube_api.answers import Rejected
from devlet.serve.kube_api.api import check_subresource, format_of, verb_of
from devlet.serve.kube_api.calls import Call
from devlet.serve.kube_api.endpoints import Endpoints
from devlet.serve.kube_api.forwarding import Forwarder
from devlet.serve.kube_api.gate import peer_uid
from devlet.serve.kube_api.node_views import NodeViews
from devlet.serve.kube_api.paths import VIEWS, Target

__all__ = ["JoinedApi"]

log = logging.getLogger(__name__)

_OWN = (["apis", VIEWS_GROUP], *([name] for name in (*health.ENDPOINTS, "metrics")))


class JoinedApi:
    def __init__(self, views: NodeViews, endpoints: Endpoints, forwarder: Forwarder, clock: Clock) -> None:
        self._views = views
        self._endpoints = endpoints
        self._forwarder = forwarder
        self._clock = clock
        self._heavy = HeavyWork()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answered(request)
        except DevletError as e:
            return answers.error(e)
        except (ConnectionError, TimeoutError):
            raise
        except Exception as e:
            log.exception("request failed", extra=facts(method=request.method, path=request.path, err=e))
            return answers.error(Rejected(failure(500, "InternalError", "Internal error occurred: see the log")))

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        user = _owner(request)
        path = paths.path_of(request.raw_path)
        words = path.strip("/").split("/")
        if not any(words[: len(own)] == own for own in _OWN):
            return await self._forwarder.forward(request)
        place = paths.parse(VIEWS, path)
        if not isinstance(place, Target):
            return await self._endpoints.answer(request, place)
        check_subresource(place)
        verb = verb_of(request, place)
        format_ = format_of(request, watch=verb == "watch")
        response = await self._views.handle(Call(request, place, user, format_, self._clock.now(), self._heavy), verb)
        return answers.in_form(response, format_)


def _owner(request: web.BaseRequest) -> User:
    """Return the user of the connection. Raise Forbidden for all users but root and the one who runs devlet."""
    connection = request.transport.get_extra_info("socket") if request.transport else None
    if connection is None or connection.family != socket.AF_UNIX:
        raise Rejected(failure(401, "Unauthorized", "Unauthorized"))
    return peer_user(peer_uid(connection), os.getuid())
