import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.state.device_checkpoint import Checkpoint, Entry
from devlet.state.device_faults import sound

NAMES = st.sampled_from(["", "a", "b"])
ENTRIES = st.builds(
    Entry,
    NAMES,
    NAMES,
    st.sampled_from(["r.io/x", "r.io/y"]),
    st.none() | st.dictionaries(st.integers(-1, 1), st.none() | st.lists(NAMES).map(tuple)),
    st.none(),
)


def entry(pod: str, *ids: str, container: str = "main", resource: str = "r.io/x") -> Entry:
    return Entry(pod, container, resource, {0: ids}, None)


def test_a_sound_checkpoint_stays_as_it_is() -> None:
    entries = (entry("a", "0"), entry("a", "0", container="next"), entry("b", "0", resource="r.io/y"), entry("b", "1"))
    found = Checkpoint(entries, {"r.io/x": ("0",)})
    assert sound(found).checkpoint is found
    assert sound(found).faults == ()


@pytest.mark.parametrize(
    ("entries", "left", "fault"),
    [
        ([entry("a", "", "0")], [entry("a", "0")], "a device of pod a, container main, r.io/x, has no name"),
        ([entry("", "0"), entry("a", "0")], [entry("a", "0")], "an entry of r.io/x names no pod"),
        (
            [entry("a", "0"), entry("b", "0", "1")],
            [entry("a", "0"), entry("b", "1")],
            "device 0 of r.io/x is held twice: by pod a, container main, and by pod b, container main",
        ),
    ],
)
def test_what_cannot_be_true_is_left_out_and_named(entries: list[Entry], left: list[Entry], fault: str) -> None:
    found = sound(Checkpoint(tuple(entries), {}))
    assert found.checkpoint.entries == tuple(left)
    assert found.faults == (fault,)


@given(st.none() | st.lists(ENTRIES).map(tuple))
def test_what_is_left_is_sound_and_every_device_still_has_a_holder(entries: tuple[Entry, ...] | None) -> None:
    found = sound(Checkpoint(entries, {}))
    assert sound(found.checkpoint).faults == ()
    assert _held(found.checkpoint.entries) == _held([each for each in entries or () if each.pod])


def _held(entries: object) -> set[tuple[str, str]]:
    return {
        (each.resource, id)
        for each in entries or ()  # type: ignore[attr-defined]
        for ids in (each.devices or {}).values()
        for id in ids or ()
        if id
    }
