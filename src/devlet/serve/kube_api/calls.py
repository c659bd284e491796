"""A request for a resource, as the handlers see it: the user, the target, the body, and work that takes long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

import anyio
from aiohttp import web

from devlet.auth.users import User
from devlet.cluster.client import WriteOptions
from devlet.cluster.served_store import Run
from devlet.kit.heavy_work import HeavyWork
from devlet.objects.kinds import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Resource
from devlet.objects.statuses import failure
from devlet.serve.kube_api import bodies, negotiation, options
from devlet.serve.kube_api.answers import Rejected
from devlet.serve.kube_api.negotiation import Format
from devlet.serve.kube_api.paths import Target

__all__ = ["BODY_TIMEOUT", "MAX_WARNINGS", "Call", "read_body"]

_READ = 1 << 16
BODY_TIMEOUT = 60.0  # seconds, as the reference allows a request
MAX_WARNINGS = 64  # of one answer; some clients read no more than 100 headers

_WITH_SELECTORS = frozenset(
    resource.kind.key for resource in (DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)
)

T = TypeVar("T")


@dataclass(slots=True)
class Call:
    """One request for a resource, after authentication and authorization."""

    http: web.BaseRequest
    target: Target
    user: User
    format: Format
    now: datetime
    heavy: HeavyWork
    warnings: list[str] = field(default_factory=list)

    @property
    def resource(self) -> Resource:
        return self.target.resource

    @property
    def query(self) -> options.Query:
        return self.http.query

    @property
    def pretty(self) -> bool:
        return negotiation.is_pretty(
            self.format, self.http.query.get("pretty"), self.http.headers.get("User-Agent", "")
        )

    def warn(self, text: str) -> None:
        if len(self.warnings) < MAX_WARNINGS and text not in self.warnings:
            self.warnings.append(text)

    async def body(self) -> bytes:
        return await read_body(self.http)

    async def decoded(self, blob: bytes, api_version: str, kind: str) -> bodies.Body:
        """Return the object in the body. An object without type and version gets these."""
        decode = partial(bodies.decode, blob, self.content_type, api_version=api_version, kind=kind)
        return await self.computed(len(blob), decode)

    async def computed(self, size: int, work: Callable[[], T]) -> T:
        """Return the result of `work`, which reads `size` bytes. If these are many, run it beside the event loop."""
        return await self.heavy.run(self.user.name, work) if size > bodies.INLINE else work()

    def runner(self, size: int) -> Run | None:
        """Return what runs the store's work on an object of `size` bytes; None if the event loop can do it."""
        compiles = self.resource.kind.key in _WITH_SELECTORS
        limit = bodies.INLINE_WITH_SELECTORS if compiles else bodies.INLINE
        return partial(self.heavy.run, self.user.name) if size > limit else None

    def write_options(self, kind: str) -> WriteOptions:
        return options.write_options(self.query, kind, self.http.headers.get("User-Agent", ""), self.warn)

    @property
    def content_type(self) -> str:
        return self.http.headers.get("Content-Type", "")


async def read_body(request: web.BaseRequest) -> bytes:
    """Return the whole body. Refuse it if it is compressed or too large, or does not arrive in time."""
    bodies.check_encoding(request.headers.get("Content-Encoding", ""))
    bodies.check_size(request.content_length)
    if request.content.is_eof():  # it came with the headers, as most bodies do
        whole = request.content.read_nowait()
        bodies.check_size(len(whole))
        return whole
    blob = bytearray()
    with anyio.move_on_after(BODY_TIMEOUT):
        async for chunk in request.content.iter_chunked(_READ):
            blob += chunk
            bodies.check_size(len(blob))
        return bytes(blob)
    raise Rejected(failure(504, "Timeout", f"Timeout: the body did not arrive within {BODY_TIMEOUT:g} s"))
