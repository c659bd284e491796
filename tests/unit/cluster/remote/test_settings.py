from devlet.cluster.remote.settings import Settings


def test_a_watch_may_miss_a_bookmark_but_not_two() -> None:
    assert 2 * 60 < Settings().silence < 5 * 60


def test_the_limits_are_those_of_a_node_agent() -> None:
    assert (Settings().qps, Settings().burst) == (50, 100)
