"""The calls that a kubelet makes to a DRA driver, with unmodified responses.

Methods are called by their literal paths. Responses are not corrected, so that checks see missing claims, devices
without names, and IDs that no runtime accepts.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from devlet.errors import PluginRefused
from devlet.plugins.channels import Connection, connection
from devlet.sanity.check import Garbled
from devlet.sanity.patience import Patience
from devlet.wire.dra_health import api_pb2 as pb_health
from devlet.wire.dra_v1 import api_pb2 as pb_v1
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1

__all__ = ["HEALTH_SERVICES", "SERVICES", "DraClient", "Ref", "connected"]

SERVICES: dict[str, ModuleType] = {"v1.DRAPlugin": pb_v1, "v1beta1.DRAPlugin": pb_v1beta1}
"""The services as they are advertised, the newest first."""
HEALTH_SERVICES = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")

MAX_MESSAGE = 64 << 20


class Ref(NamedTuple):
    """A claim as a kubelet names it."""

    namespace: str
    name: str
    uid: str


class DraClient:
    """A connected driver. `driver` is its name for messages; `service` is one of SERVICES."""

    def __init__(
        self, driver: str, connection: Connection, service: str, answer: float, patience: Patience | None = None
    ) -> None:
        self.driver = driver
        self.connection = connection
        self.path = connection.path
        self.service = service
        self._answer = answer
        self._patience = patience or Patience()

    def by(self, service: str) -> "DraClient":
        """Return a client of the same driver through another service."""
        return DraClient(self.driver, self.connection, service, self._answer, self._patience)

    async def prepare(self, *refs: Ref) -> Any:
        """Return a NodePrepareResourcesResponse. Raises PluginError if the call as a whole failed."""
        return await self._call("NodePrepareResources", refs)

    async def unprepare(self, *refs: Ref) -> Any:
        return await self._call("NodeUnprepareResources", refs)

    async def prepared(self, ref: Ref) -> list[Any]:
        """Prepare one claim and return its devices. Raises PluginError if it was not prepared."""
        answer = (await self.prepare(ref)).claims
        if ref.uid not in answer:
            raise PluginRefused(self.driver, f"the response to NodePrepareResources has no entry for claim {ref.name}")
        if error := answer[ref.uid].error:
            raise PluginRefused(self.driver, f"NodePrepareResources failed for claim {ref.name}: {error}")
        return list(answer[ref.uid].devices)

    async def unprepared(self, ref: Ref) -> None:
        """Unprepare one claim. Raises PluginError if it was not unprepared."""
        answer = (await self.unprepare(ref)).claims
        if ref.uid not in answer:
            raise PluginRefused(
                self.driver, f"the response to NodeUnprepareResources has no entry for claim {ref.name}"
            )
        if error := answer[ref.uid].error:
            raise PluginRefused(self.driver, f"NodeUnprepareResources failed for claim {ref.name}: {error}")

    async def raw(self, method: str, blob: bytes) -> bytes:
        path = f"/k8s.io.kubelet.pkg.apis.dra.{self.service}/{method}"
        with self._patience.waiting(method, self._answer) as limit:
            return await self.connection.call(path, blob, timeout=limit)

    async def health(self, service: str) -> AsyncGenerator[pb_health.NodeWatchResourcesResponse, None]:
        """Yield health messages. The end of the stream is an error."""
        stream = self.connection.stream(f"/{service}/NodeWatchResources", b"")
        try:
            async for blob in stream:
                with self._decoding("NodeWatchResources"):
                    message = pb_health.NodeWatchResourcesResponse.FromString(blob)
                yield message
        finally:
            await stream.aclose()

    async def _call(self, method: str, refs: Sequence[Ref]) -> Any:
        pb: Any = SERVICES[self.service]
        claims = [pb.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid) for ref in refs]
        request = getattr(pb, f"{method}Request")(claims=claims)
        blob = await self.raw(method, request.SerializeToString())
        with self._decoding(method):
            return getattr(pb, f"{method}Response").FromString(blob)

    @contextmanager
    def _decoding(self, method: str) -> Iterator[None]:
        try:
            yield
        except DecodeError as e:
            raise Garbled(self.driver, f"the response to {method} cannot be decoded: {e}") from e


@asynccontextmanager
async def connected(
    driver: str,
    path: Path,
    service: str,
    *,
    dial: float,
    answer: float,
    patience: Patience | None = None,
    below: Path | None = None,
) -> AsyncIterator[DraClient]:
    async with connection(driver, path, within=dial, max_message=MAX_MESSAGE, below=below) as dialled:
        yield DraClient(driver, dialled, service, answer, patience)
