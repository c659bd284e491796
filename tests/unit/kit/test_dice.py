from devlet.kit.dice import Dice


def test_the_same_seed_gives_the_same_choices() -> None:
    assert Dice(7).shuffled(range(10)) == [1, 6, 0, 5, 4, 2, 8, 3, 7, 9]  # on every Python


def test_a_number_can_be_either_end_and_nothing_beyond() -> None:
    dice = Dice(1)
    assert {dice.number(2, 4) for _ in range(200)} == {2, 3, 4}


def test_some_are_different_and_never_more_than_there_are() -> None:
    dice = Dice(1)
    for _ in range(100):
        chosen = dice.some("abc", 2, 9)
        assert 2 <= len(chosen) == len(set(chosen)) <= 3


def test_a_chance_is_about_as_likely_as_it_says() -> None:
    dice = Dice(1)
    assert 200 < sum(dice.chance(0.25) for _ in range(1000)) < 300
    assert not any(dice.chance(0) for _ in range(100)) and all(dice.chance(1) for _ in range(100))
