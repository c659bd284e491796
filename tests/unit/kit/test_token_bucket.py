import pytest

from devlet.kit.token_bucket import TokenBucket, TokenBuckets
from devlet.testing.fake_clock import FakeClock


def taken(bucket: TokenBucket, tries: int) -> int:
    return sum(bucket.take() for _ in range(tries))


@pytest.mark.anyio
async def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    clock = FakeClock()
    bucket = TokenBucket(100, 10, clock)
    assert taken(bucket, 50) == 10
    await clock.advance(0.05)
    assert taken(bucket, 50) == 5


@pytest.mark.anyio
async def test_a_rest_does_not_fill_a_bucket_above_its_burst() -> None:
    clock = FakeClock()
    bucket = TokenBucket(100, 10, clock)
    await clock.advance(3600)
    assert taken(bucket, 50) == 10


@pytest.mark.anyio
async def test_a_bucket_is_full_again_after_a_while() -> None:
    clock = FakeClock()
    bucket = TokenBucket(100, 10, clock)
    seen = [bucket.is_full]
    bucket.take()
    seen.append(bucket.is_full)
    await clock.advance(0.01)
    assert [*seen, bucket.is_full] == [True, False, True]


def test_one_user_does_not_starve_another() -> None:
    buckets = TokenBuckets(100, 10, FakeClock())
    assert sum(buckets.take("greedy") for _ in range(1000)) == 10
    assert buckets.take("modest")


def test_users_beyond_the_limit_share_one_bucket() -> None:
    buckets = TokenBuckets(100, 10, FakeClock(), limit=2)
    assert buckets.take("a") and buckets.take("b")
    assert sum(buckets.take(f"user {i}") for i in range(100)) == 10
    assert buckets.take("a")


@pytest.mark.anyio
async def test_an_idle_user_gives_up_its_bucket() -> None:
    clock = FakeClock()
    buckets = TokenBuckets(100, 10, clock, limit=2)
    assert [buckets.take(user) for user in ("a", "b")] == [True, True]
    await clock.advance(1)
    for user in ("c", "d"):
        assert sum(buckets.take(user) for _ in range(20)) == 10
