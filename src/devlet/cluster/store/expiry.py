"""Expiry of Events: they are kept for a limited time, and only up to a maximum number.

On an API server a lease of etcd does this. As there, each write of an Event starts its time again. An Event that
expires is deleted like any other object: the deletion has a version, and watchers see it.
"""

import logging
from itertools import islice

from devlet.cluster.store.ledger import Ledger, Pending
from devlet.cluster.store.records import Record
from devlet.errors import DevletError
from devlet.kit.clock import Clock
from devlet.kit.facts import facts
from devlet.objects.kinds import EVENTS

log = logging.getLogger(__name__)
_BATCH = 100  # deletions, after which other writes and requests get their turn


class Expiry:
    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def run(self) -> None:
        """Delete expired Events until cancelled, at once those that expired while the store was closed."""
        settings = self._ledger.settings
        while True:
            try:
                await self.expire()
            except DevletError as e:
                log.warning("events not expired", extra=facts(err=e))
            await self._clock.sleep(min(settings.expire_every, settings.event_ttl / 2))

    async def expire(self) -> None:
        """Delete the Events that are due. Each batch is on disk before the next one begins."""
        while due := self._due():
            pending = [self._delete(record) for record in due]
            await pending[-1].durable()

    def _due(self) -> list[Record]:
        """Return the oldest Events that have to be deleted, without those that are being written meanwhile."""
        settings = self._ledger.settings
        records = self._ledger.table(EVENTS.kind).records  # in the order in which they were last written
        surplus = len(records) - settings.max_events
        horizon = self._ledger.time() - settings.event_ttl
        oldest = enumerate(islice(records.values(), _BATCH))
        due = [record for number, record in oldest if number < surplus or record.at <= horizon]
        return [record for record in due if self._ledger.newest(EVENTS.kind, record.key) is record]

    def _delete(self, record: Record) -> Pending:
        return self._ledger.write(EVENTS.kind, record.key, record.document(), deleted=True)
