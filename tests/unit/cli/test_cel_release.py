import pytest

from devlet.cli.cel_release import LISTS, SHARES, Release, parse_gates, releases
from devlet.errors import InvalidInput, InvalidSelector

D = 'device.attributes["gpu.example.com"]'


def compiles(expression: str, minor: int, *, stored: bool = False, gates: str = "") -> bool:
    (release,) = releases(f"1.{minor}", gates, stored=stored)
    try:
        release.compile(expression)
    except InvalidSelector:
        return False
    return True


# What a release added can be written in new expressions one release later; gates open their own things at once.
SINCE = [
    ("1 > 0.5", 31),
    ('isCIDR("10.0.0.0/8")', 31),
    ('semver("1.2.3").major() == 1', 31),
    ("cel.bind(x, 1, x == 1)", 31),
    ("format.uuid().validate('x').hasValue()", 32),
    ("[1].all(i, x, x == 1)", 33),
    ('semver("v1.2", true).major() == 1', 34),
    ("[2, 1].sort() == [1, 2]", 35),
]


@pytest.mark.spec("DA-4.2")
@pytest.mark.parametrize(("expression", "minor"), SINCE)
def test_new_expressions_may_use_what_the_release_before_has(expression: str, minor: int) -> None:
    assert compiles(expression, minor)
    if minor > 31:
        assert not compiles(expression, minor - 1)
        assert compiles(expression, minor - 1, stored=True)


@pytest.mark.spec("DA-4.2")
def test_what_has_a_gate_is_there_where_the_gate_is_on() -> None:
    shares, lists = "device.allowMultipleAllocations", f'{D}.tags.includes("a")'
    assert [compiles(shares, minor) for minor in (33, 34, 35, 36)] == [False, False, False, True]
    assert compiles(shares, 34, gates=f"{SHARES}=true")
    assert not compiles(shares, 33, gates=f"{SHARES}=true")
    assert not compiles(shares, 36, gates=f"{SHARES}=false")
    assert not compiles(lists, 36)
    assert compiles(lists, 36, gates=f"{LISTS}=true")
    assert not compiles(lists, 35, gates=f"{LISTS}=true")


@pytest.mark.spec("DA-4.2")
def test_gates_do_not_count_for_stored_expressions() -> None:
    both = f'device.allowMultipleAllocations || {D}.tags.includes("a")'
    assert compiles(both, 36, stored=True)
    assert not compiles(both, 35, stored=True)


def test_without_a_version_it_is_devlets_own_with_all_gates_on() -> None:
    assert releases("", "", stored=False) == [Release(36, stored=False, shares=True, lists=True)]
    assert releases("", f"{LISTS}=false", stored=True) == [Release(36, stored=True, shares=True, lists=False)]


def test_several_versions_are_taken_once_each_in_their_order() -> None:
    assert [release.name for release in releases("1.36,v1.34.2, 1.36", "", stored=False)] == ["1.36", "1.34"]


def test_a_document_says_which_gates_the_release_has() -> None:
    (release,) = releases("1.34", f"{SHARES}=true", stored=False)
    assert release.document() == {"kubeVersion": "1.34", "stored": False, "featureGates": {SHARES: True}}
    assert release.text == "new expressions of Kubernetes 1.34"


@pytest.mark.parametrize("text", ["1.30", "1.37", "2.36", "latest", "1.", ",", "1.36,", "1.9999"])
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--kube-version .*: expected versions from 1\.31 to 1\.36"):
        releases(text, "", stored=False)


@pytest.mark.parametrize("text", ["X=true", SHARES, f"{SHARES}=yes", f"{SHARES}=true,", "="])
def test_other_gates_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--feature-gates .*: expected DRAConsumableCapacity=true\|false"):
        parse_gates(text)
