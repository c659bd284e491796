from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import NotFound
from devlet.runtime.cdi.registry import Registry, SpecFile, build, edits
from devlet.runtime.cdi.spec import ContainerEdits, Device, Spec


def file(path: str, *devices: str, priority: int = 0, kind: str = "v/c") -> SpecFile:
    listed = tuple(Device(name, ContainerEdits(env=(f"DEVICE={path}:{name}",))) for name in devices)
    return SpecFile(Path(path), priority, Spec("0.3.0", kind, listed, ContainerEdits(env=(f"FILE={path}",))))


def sources(registry: Registry) -> dict[str, str]:
    return {name: str(known.file.path) for name, known in registry.devices.items()}


def test_devices_are_known_by_qualified_name_in_order() -> None:
    registry = build([file("b", "b"), file("a", "c", "a", kind="u/c")])
    assert list(registry.devices) == ["u/c=a", "u/c=c", "v/c=b"]


@pytest.mark.spec("DN-7.3.2")
def test_the_file_of_the_later_directory_takes_precedence_in_any_order() -> None:
    low, high = file("low", "a", "b"), file("high", "a", priority=1)
    for files in ([low, high], [high, low]):
        assert sources(build(files)) == {"v/c=a": "high", "v/c=b": "low"}


@pytest.mark.spec("DN-7.3.3")
def test_a_device_in_two_files_of_one_directory_is_in_conflict() -> None:
    registry = build([file("x", "a", "b"), file("y", "a"), file("low", "a", priority=-1)])
    assert sources(registry) == {"v/c=b": "x"}
    assert registry.conflicts == {"v/c=a": (Path("x"), Path("y"))}
    assert registry.errors == {
        Path("x"): ("x: device v/c=a is in conflict, it is also defined in y",),
        Path("y"): ("y: device v/c=a is in conflict, it is also defined in x",),
    }


@pytest.mark.spec("DN-7.3.2")
def test_a_conflict_in_an_earlier_directory_does_not_hide_the_device_of_a_later_one() -> None:
    registry = build([file("x", "a"), file("y", "a"), file("high", "a", priority=1)])
    assert (sources(registry), registry.conflicts, registry.errors) == ({"v/c=a": "high"}, {}, {})


@pytest.mark.spec("DN-7.3.4")
def test_all_unresolvable_names_are_reported_with_reasons() -> None:
    registry = build([file("x", "a", "b"), file("y", "a")], {Path("z"): ["z: not JSON"]})
    found = registry.resolve(["v/c=a", "v/c=b", "v/c=x", "nonsense"])
    assert [str(known.name) for known in found.devices] == ["v/c=b"]
    with pytest.raises(NotFound) as raised:
        found.complete()
    assert str(raised.value) == (
        "unresolvable CDI devices v/c=a, v/c=x, nonsense (v/c=a: in conflict, it is defined in x and y; "
        "v/c=x: no such device; with errors: x, y, z; nonsense: not of the form vendor/class=device)"
    )


@pytest.mark.spec("DN-7.1.1")
def test_a_name_is_resolved_once_in_its_order() -> None:
    found = build([file("x", "a", "b")]).resolve(["v/c=b", "v/c=a", "v/c=b"]).complete()
    assert [str(known.name) for known in found] == ["v/c=b", "v/c=a"]


@pytest.mark.spec("DN-7.3.9")
def test_edits_of_a_file_are_included_once_before_those_of_its_first_device() -> None:
    registry = build([file("x", "a", "b"), file("y", "a", kind="u/c")])
    found = registry.resolve(["v/c=b", "u/c=a", "v/c=a"]).complete()
    assert edits(found).env == ("FILE=x", "DEVICE=x:b", "FILE=y", "DEVICE=y:a", "DEVICE=x:a")


FILES = st.lists(
    st.builds(
        lambda i, names, priority: (i, sorted(names), priority),
        st.integers(0, 99),
        st.sets(st.sampled_from("abc"), min_size=1),
        st.integers(0, 2),
    ),
    unique_by=lambda each: each[0],
    max_size=6,
)


@given(FILES, st.randoms())
def test_the_only_file_of_the_last_directory_defines_a_device_in_any_order(
    given: list[tuple[int, list[str], int]], random: Random
) -> None:
    files = [file(f"{i:02}", *names, priority=priority) for i, names, priority in given]
    shuffled = random.sample(files, len(files))
    registry = build(shuffled)
    assert sources(registry) == sources(build(files))
    for name in "abc":
        holders = [each for each in files if name in {device.name for device in each.spec.devices}]
        top = [each for each in holders if each.priority == max(other.priority for other in holders)]
        assert (f"v/c={name}" in registry.devices) == (len(top) == 1)
        assert (f"v/c={name}" in registry.conflicts) == (len(top) > 1)
