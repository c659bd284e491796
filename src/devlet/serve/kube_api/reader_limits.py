"""Limits on the memory that slow clients, which do not read their answers, may use.

Each watch costs a little memory, so the number of watches of a user is limited. Data that has been taken from the store
stays in memory until its client reads it; for a large object it may be megabytes. Each user has a budget for this data,
and so have all users together. Bytes that several answers share count once. If a user exceeds the budget, the answer of
the user that has waited longest is cut off. If all users together exceed theirs, this happens to the user who holds
most. So a client that reads is not cut off because of others. A client that was cut off can continue from the last
version that it has seen.
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
    """Byte strings that wait to be read. Each counts once, however many answers share it."""

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
    waiting: dict[_Waiting, None] = field(default_factory=dict)  # in the order of their waiting time, the longest first


def user_class(name: str) -> str:
    """Return the label of the user in metrics, where all names would be too many."""
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
        """Return how many bytes wait for clients to read them."""
        return self._held.bytes

    def watches(self) -> Mapping[str, int]:
        """Return the number of watches of each user who has any."""
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
        """Count a watch of the user while the block runs. Raise TooManyRequests if the user has too many already."""
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
        """Count data that waits for the user's client while the block runs. Call `cut_off` if it is too much."""
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
        """Stop counting this data, unless that was done before."""
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
