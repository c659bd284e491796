from devlet.control.search_time import SearchTime


def over(budget: SearchTime) -> bool:
    assert budget.limits.give_up is not None
    return budget.limits.give_up()


def test_a_search_continues_while_there_is_time() -> None:
    budget = SearchTime(60)
    assert not over(budget)
    assert budget.exceeded == 0


def test_an_exceeded_limit_is_counted_once() -> None:
    budget = SearchTime(1e-9)
    assert over(budget) and over(budget)
    assert budget.exceeded == 1


def test_a_restart_gives_the_next_search_the_full_time() -> None:
    budget = SearchTime(0.05)
    while not over(budget):
        pass
    budget.restart()
    assert not over(budget)


def test_zero_means_no_limit() -> None:
    assert SearchTime(0).limits.give_up is None


def test_a_restart_does_not_extend_the_total() -> None:
    time = SearchTime(1000.0, total=1e-9)
    time.restart()
    assert time.limits.give_up is not None and time.limits.give_up()
