from contextlib import AbstractContextManager, ExitStack

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from devlet.errors import TooManyRequests
from devlet.kit.metrics import Registry
from devlet.serve.kube_api.reader_limits import ReaderLimits, Settings

LIMITS = Settings(watches_per_user=3, unread_bytes_per_user=1_000, unread_bytes=2_000)


class Client:
    def __init__(self, limits: ReaderLimits, user: str, *pieces: bytes) -> None:
        self.is_cut_off = False
        self._hold = limits.holding(user, pieces, self.cut_off)

    def cut_off(self) -> None:
        self.is_cut_off = True

    def __enter__(self) -> "Client":
        self._hold.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._hold.__exit__(None, None, None)


def test_one_watch_more_than_the_limit_is_refused_until_another_one_ends() -> None:
    limits = ReaderLimits(LIMITS)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(limits.watching("ann"))
        with limits.watching("ann"):
            with pytest.raises(
                TooManyRequests, match=r'user "ann" has 3 watches open.*limits.watchesPerUser'
            ) as refused:
                stack.enter_context(limits.watching("ann"))
            assert refused.value.retry_after >= 1
            stack.enter_context(limits.watching("bob"))
        stack.enter_context(limits.watching("ann"))
        assert limits.watches() == {"ann": 3, "bob": 1}
    assert limits.watches() == {}


def test_bytes_that_several_answers_share_count_once() -> None:
    limits, shared = ReaderLimits(LIMITS), b"x" * 900
    clients = [Client(limits, user, shared, f"{user}{i}".encode()) for user in ("ann", "bob") for i in range(10)]
    with ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        assert limits.unread_bytes == 900 + 20 * len("ann0")
    assert not any(client.is_cut_off for client in clients)
    assert limits.unread_bytes == 0


def test_beyond_a_users_budget_the_client_that_has_waited_longest_is_cut_off() -> None:
    limits, metrics = ReaderLimits(LIMITS), Registry()
    limits.show(metrics)
    with (
        Client(limits, "bob", b"b" * 900) as other,
        Client(limits, "ann", b"1" * 400) as first,
        Client(limits, "ann", b"2" * 400) as second,
        Client(limits, "ann", b"3" * 400) as third,
    ):
        assert [c.is_cut_off for c in (other, first, second, third)] == [False, True, False, False]
        assert limits.unread_bytes == 900 + 800
    assert limits.unread_bytes == 0
    assert "devlet_api_clients_cut_off_total 1\n" in metrics.text()


def test_beyond_the_common_budget_a_client_of_the_user_who_holds_most_is_cut_off() -> None:
    limits = ReaderLimits(LIMITS)
    with (
        Client(limits, "small", b"s" * 100) as small,
        Client(limits, "ann", b"1" * 500) as first,
        Client(limits, "ann", b"2" * 500) as second,
        Client(limits, "bob", b"3" * 950) as third,
    ):
        assert [c.is_cut_off for c in (small, first, second, third)] == [False, True, False, False]


def test_a_client_that_waits_again_after_reading_comes_last() -> None:
    limits = ReaderLimits(LIMITS)
    with Client(limits, "ann", b"1" * 400) as reads:
        pass
    with Client(limits, "ann", b"2" * 400) as waits, Client(limits, "ann", b"1" * 400) as reads:
        with Client(limits, "ann", b"3" * 400):
            assert (reads.is_cut_off, waits.is_cut_off) == (False, True)


class Accounting(RuleBasedStateMachine):
    """Clients of several users wait, are cut off, and leave."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = ReaderLimits(LIMITS)
        self.waiting: list[tuple[str, tuple[bytes, ...], Client]] = []
        self.watches: list[tuple[str, AbstractContextManager[None]]] = []
        self.shared = [bytes(size) for size in (10, 300, 700)]

    @rule(user=st.sampled_from("abc"), shared=st.lists(st.integers(0, 2)), own=st.integers(0, 1_500))
    def wait(self, user: str, shared: list[int], own: int) -> None:
        pieces = (*(self.shared[i] for i in shared), bytes(bytearray(own)))
        client = Client(self.limits, user, *pieces)
        self.waiting.append((user, pieces, client.__enter__()))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        _, _, client = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        client.__exit__()

    @rule(user=st.sampled_from("abc"))
    def watch(self, user: str) -> None:
        watch = self.limits.watching(user)
        if self.count(user) < LIMITS.watches_per_user:
            watch.__enter__()
            self.watches.append((user, watch))
            return
        with pytest.raises(TooManyRequests):
            watch.__enter__()

    @precondition(lambda self: self.watches)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        _, watch = self.watches.pop(data.draw(st.integers(0, len(self.watches) - 1)))
        watch.__exit__(None, None, None)

    def count(self, user: str) -> int:
        return sum(one == user for one, _ in self.watches)

    def held(self, user: str = "") -> int:
        left = [p for one, p, client in self.waiting if not client.is_cut_off and user in ("", one)]
        return sum(len(piece) for piece in {id(piece): piece for pieces in left for piece in pieces}.values())

    @invariant()
    def what_is_held_is_counted_and_within_the_budgets(self) -> None:
        assert self.limits.unread_bytes == self.held() <= LIMITS.unread_bytes
        assert all(self.held(user) <= LIMITS.unread_bytes_per_user for user in "abc")

    @invariant()
    def watches_are_counted(self) -> None:
        assert self.limits.watches() == {user: n for user in "abc" if (n := self.count(user))}

    def teardown(self) -> None:
        for _, _, client in self.waiting:
            client.__exit__()
        for _, watch in self.watches:
            watch.__exit__(None, None, None)
        assert (self.limits.unread_bytes, self.limits.watches()) == (0, {})


Accounting.TestCase.settings = settings(max_examples=100, deadline=None)
TestAccounting = Accounting.TestCase


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("ann", "user"),
        ("system:node:n1", "node"),
        ("system:serviceaccount:default:a", "serviceaccount"),
        ("system:kube-scheduler", "system"),
        ("system:anonymous", "system"),
    ],
)
def test_watches_are_shown_by_class_of_user(user: str, expected: str) -> None:
    limits, metrics = ReaderLimits(LIMITS), Registry()
    limits.show(metrics)
    with limits.watching(user), limits.watching("bob"), limits.holding("bob", [b"123"], lambda: None):
        count = 2 if expected == "user" else 1
        assert f'devlet_api_watches{{user_class="{expected}"}} {count}\n' in metrics.text()
        assert "devlet_api_unread_bytes 3\n" in metrics.text()
    assert "devlet_api_unread_bytes 0\n" in metrics.text()
