from devlet.sanity import sources
from devlet.sanity.sources import CDI, PRACTICE, Source


def test_each_source_has_a_name_of_its_own_and_a_place() -> None:
    every = [each for each in vars(sources).values() if isinstance(each, Source)]
    assert len({each.name for each in every}) == len(every) > 10
    assert all(each.url.startswith("https://") for each in every if each is not PRACTICE)


def test_people_read_name_and_place() -> None:
    assert str(CDI) == "CDI, https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md"
