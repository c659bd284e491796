"""Prepare and unprepare claims: read each claim, call the driver's author, and answer the node.

An error with one claim is the answer for that claim only. Claims are handled one after the other, and by one instance
of the driver at a time, unless the author chose otherwise.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Protocol

import anyio

from devlet.errors import DevletError, InvalidInput
from devlet.kit.facts import facts
from devlet.objects.types.claim import PreparedDevice
from devlet.sdk.cdi_files import CdiFiles
from devlet.sdk.claim_reader import ClaimReader
from devlet.sdk.holders import Holders
from devlet.sdk.metadata_files import MetadataFiles
from devlet.sdk.mistakes import asked, described, listed
from devlet.sdk.values import Claim, ClaimRef, Prepared

__all__ = ["Author", "ClaimPreparer"]

log = logging.getLogger(__name__)


class Author(Protocol):
    """The methods that the driver's author implemented."""

    async def prepare(self, claim: Claim) -> Sequence[Prepared]: ...
    async def unprepare(self, claim: ClaimRef) -> None: ...


class ClaimPreparer:
    """`exclusion` is held while claims are handled; with None, all claims of a call are handled at the same time. With
    `holders` a device that one claim has is refused to others. `parameters` is the type of parameters to accept."""

    def __init__(
        self,
        author: Author,
        reader: ClaimReader,
        cdi: CdiFiles,
        exclusion: AbstractAsyncContextManager[object] | None = None,
        metadata: MetadataFiles | None = None,
        holders: Holders | None = None,
        parameters: type | None = dict,
    ) -> None:
        self._author = author
        self._reader = reader
        self._cdi = cdi
        self._exclusion = exclusion
        self._metadata = metadata
        self._holders = holders
        self._parameters = parameters

    async def prepare(self, refs: Sequence[ClaimRef]) -> dict[str, Sequence[PreparedDevice] | Exception]:
        claims = await self._reader.read(refs)
        answers: dict[str, Sequence[PreparedDevice] | Exception] = {}

        async def one(ref: ClaimRef) -> None:
            claim = claims[ref.uid]
            answers[ref.uid] = claim if isinstance(claim, Exception) else await self._prepare(claim)

        await self._each(refs, one)
        return answers

    async def unprepare(self, refs: Sequence[ClaimRef]) -> dict[str, Exception | None]:
        answers: dict[str, Exception | None] = {}

        async def one(ref: ClaimRef) -> None:
            answers[ref.uid] = await self._unprepare(ref)

        await self._each(refs, one)
        return answers

    async def _prepare(self, claim: Claim) -> Sequence[PreparedDevice] | Exception:
        try:
            for result in claim.results:
                claim.parameters_for(result, self._parameters)
            if self._holders is not None:
                await self._holders.take(claim)
            prepared = _checked(claim, await asked(self._author.prepare, claim))
            ids = await anyio.to_thread.run_sync(self._write, claim, prepared)
        except Exception as e:
            return _failed("claim not prepared", claim.ref, e)
        log.info("claim prepared", extra=facts(claim=_text(claim.ref), devices=len(prepared)))
        return [_answer(each, given) for each, given in zip(prepared, ids, strict=True)]

    async def _unprepare(self, ref: ClaimRef) -> Exception | None:
        try:
            await asked(self._author.unprepare, ref)
            await anyio.to_thread.run_sync(self._remove, ref)
            if self._holders is not None:
                await self._holders.release(ref.uid)
        except Exception as e:
            return _failed("claim not unprepared", ref, e)
        log.info("claim unprepared", extra=facts(claim=_text(ref)))
        return None

    def _write(self, claim: Claim, prepared: Sequence[Prepared]) -> list[tuple[str, ...]]:
        ids = self._cdi.write(claim.ref, prepared)
        if self._metadata is None:
            return ids
        try:
            more = self._metadata.write(claim, prepared)
        except DevletError as e:  # containers can run without it
            log.warning("device metadata not written", extra=facts(claim=_text(claim.ref), err=e))
            return ids
        return [own + additional for own, additional in zip(ids, more, strict=True)]

    def _remove(self, ref: ClaimRef) -> None:
        self._cdi.remove(ref.uid)
        if self._metadata is not None:
            self._metadata.remove(ref.uid)

    async def _each(self, refs: Sequence[ClaimRef], act: Callable[[ClaimRef], Coroutine[Any, Any, None]]) -> None:
        """Run `act` for each claim. When the node cancels the call, only a task group waits for the threads, which
        cannot be cancelled. The exclusion must not be released before they are done."""
        if self._exclusion is None:
            return await _at_once(partial(act, ref) for ref in refs)

        async def one_by_one() -> None:
            for ref in refs:
                await act(ref)

        async with self._exclusion:
            await _at_once([one_by_one])


async def _at_once(acts: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    async with anyio.create_task_group() as tasks:
        for act in acts:
            tasks.start_soon(act)


def _checked(claim: Claim, given: object) -> tuple[Prepared, ...]:
    """Check what `prepare` returned. The node would refuse wrong devices too, but with a less helpful error."""
    prepared = listed(given, "prepare()", "Prepared")
    for each in prepared:
        if not isinstance(each, Prepared):
            raise InvalidInput(f"prepare() gave {each!r}, expected a Prepared for each result")
        if each.result not in claim.results:
            raise InvalidInput(f"{each.result.pool}/{each.result.device} is not a result of claim {_text(claim.ref)}")
    _warn_of_missing(claim, prepared)
    return prepared


def _warn_of_missing(claim: Claim, prepared: Sequence[Prepared]) -> None:
    given = [each.result for each in prepared]
    if missing := [f"{each.pool}/{each.device}" for each in claim.results if each not in given]:
        named = facts(claim=_text(claim.ref), results=", ".join(missing))
        log.warning("prepare() left out results, containers get nothing with them", extra=named)


def _answer(prepared: Prepared, cdi_devices: Sequence[str]) -> PreparedDevice:
    result = prepared.result
    return PreparedDevice(
        pool=result.pool,
        device=result.device,
        share=result.share_id,
        requests=(result.request.partition("/")[0],),
        cdi_devices=tuple(cdi_devices),
    )


def _failed(what: str, ref: ClaimRef, error: Exception) -> Exception:
    """Log an error. One that is not a DevletError is a bug in the driver, and logged with its traceback."""
    known = isinstance(error, DevletError)
    log.warning(what, extra=facts(claim=_text(ref), err=error), exc_info=None if known else error)
    return error if known else DevletError(described(error))


def _text(ref: ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name}"
