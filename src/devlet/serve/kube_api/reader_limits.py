"""What clients that are slow to read, or do not read at all, may cost.

A watch costs a little memory in any case, so each user may have a limited number. What has been taken from the store
and waits for its client is held as long as that takes, which may be megabytes for a large object. Each user has a
budget for it, and so have all users together. Bytes that several answers share are held, and counted, once. If a budget
is exceeded, the answer that has waited longest is cut off: for the budget of all, one of the user who holds most. A
client that reads is therefore not cut off because of others, and one that is cut off continues from the last version
that it has seen.
"""

import collections
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from devlet.errors import TooManyRequests
from devlet.kit.facts import facts
from devlet.kit.metrics import Counter, Labels, Registry

__all__ = ["ReaderLimits", "Settings"]

log = logging.getLogger(__name__)

_RETRY_AFTER = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Settings:
    watches_per_user: int = 1_000
    unread_bytes_per_user: int = 32 << 20
    unread_bytes: int = 128 << 20


class _Held:
    """Byte strings, each of which counts once however many hold it."""

    def __init__(self) -> None:
        self.bytes = 0
        self._holders: collections.Counter[int] = collections.Counter()

    def add(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self._holders[id(piece)] += 1
            if self._holders[id(piece)] == 1:
                self.bytes += len(piece)

    def remove(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self._holders[id(piece)] -= 1
            if not self._holders[id(piece)]:
                del self._holders[id(piece)]
                self.bytes -= len(piece)


@dataclass(slots=True, eq=False)
class _Waiting:
    user: str
    pieces: Sequence[bytes]
    cut_off: Callable[[], None]


@dataclass(slots=True)
class _Account:
    watches: int = 0
    held: _Held = field(default_factory=_Held)
    waiting: dict[_Waiting, None] = field(default_factory=dict)  # the one that has waited longest comes first


def user_class(name: str) -> str:
    """What metrics call the user: names would be too many."""
    words = name.split(":")
    if words[0] != "system":
        return "user"
    return words[1] if len(words) > 2 and words[1] in ("node", "serviceaccount") else "system"


class ReaderLimits:
    def __init__(self, settings: Settings = Settings()) -> None:
        self._settings = settings
        self._accounts: dict[str, _Account] = {}
        self._held = _Held()
        self._cut_offs: Counter | None = None

    @property
    def unread_bytes(self) -> int:
        """What waits for clients to read it."""
        return self._held.bytes

    def watches(self) -> Mapping[str, int]:
        """The number of watches of each user who has any."""
        return {user: account.watches for user, account in self._accounts.items() if account.watches}

    def show(self, metrics: Registry) -> None:
        """Add these figures to the metrics."""
        metrics.gauge("devlet_api_watches", "Watches that are open, by class of user", ["user_class"], self._by_class)
        text = "Bytes that were taken from the store and wait for clients to read them"
        metrics.gauge("devlet_api_unread_bytes", text, read=lambda: {(): self.unread_bytes})
        text = "Clients that were cut off because more waited for them than a limit allows"
        self._cut_offs = metrics.counter("devlet_api_clients_cut_off_total", text)

    def _by_class(self) -> Mapping[Labels, float]:
        found: dict[Labels, float] = {}
        for user, count in self.watches().items():
            labels = (user_class(user),)
            found[labels] = found.get(labels, 0) + count
        return found

    @contextmanager
    def watching(self, user: str) -> Iterator[None]:
        """Count a watch of the user. TooManyRequests if there are too many already."""
        account = self._accounts.get(user) or _Account()
        if account.watches >= self._settings.watches_per_user:
            raise TooManyRequests(
                f'user "{user}" has {account.watches} watches open, which is the limit (limits.watchesPerUser).'
                " Close some of them, or raise the limit in the configuration of devlet.",
                retry_after=_RETRY_AFTER,
            )
        self._accounts[user] = account
        account.watches += 1
        try:
            yield
        finally:
            account.watches -= 1
            self._forget(user)

    @contextmanager
    def holding(self, user: str, pieces: Sequence[bytes], cut_off: Callable[[], None]) -> Iterator[None]:
        """Count what waits for the user's client to read it. `cut_off` is called if that is too much."""
        account = self._accounts.setdefault(user, _Account())
        waiting = _Waiting(user, pieces, cut_off)
        account.waiting[waiting] = None
        account.held.add(pieces)
        self._held.add(pieces)
        self._enforce(account)
        try:
            yield
        finally:
            self._release(waiting)

    def _enforce(self, account: _Account) -> None:
        while account.held.bytes > self._settings.unread_bytes_per_user:
            self._cut_off(account, "limits.unreadBytesPerUser")
        while self._held.bytes > self._settings.unread_bytes:
            most = max(self._accounts.values(), key=lambda account: account.held.bytes)
            self._cut_off(most, "limits.unreadBytes")

    def _cut_off(self, account: _Account, limit: str) -> None:
        longest = next(iter(account.waiting))
        log.info("client cut off", extra=facts(user=longest.user, limit=limit, unread=account.held.bytes))
        if self._cut_offs is not None:
            self._cut_offs.add()
        self._release(longest)
        longest.cut_off()

    def _release(self, waiting: _Waiting) -> None:
        """Do nothing if it was released before."""
        account = self._accounts.get(waiting.user)
        if account is None or waiting not in account.waiting:
            return
        del account.waiting[waiting]
        account.held.remove(waiting.pieces)
        self._held.remove(waiting.pieces)
        self._forget(waiting.user)

    def _forget(self, user: str) -> None:
        account = self._accounts[user]
        if not account.watches and not account.waiting:
            del self._accounts[user]
