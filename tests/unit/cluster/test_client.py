from dataclasses import FrozenInstanceError

import pytest

from devlet.cluster.client import (
    DeleteOptions,
    EventType,
    FieldValidation,
    ListOptions,
    ObjectList,
    Preconditions,
    Propagation,
    VersionMatch,
    WatchOptions,
    WriteOptions,
)


def test_default_options_add_nothing_to_the_query() -> None:
    assert ListOptions() == ListOptions("", "", 0, "", "", VersionMatch.ANY)
    assert WatchOptions().send_initial_events is None and WatchOptions().timeout is None
    assert (WriteOptions().dry_run, WriteOptions().field_validation) == (False, FieldValidation.IGNORE)
    assert DeleteOptions() == DeleteOptions(None, None, Preconditions(None, None), False)


@pytest.mark.parametrize("options", [ListOptions(), WatchOptions(), WriteOptions(), DeleteOptions(), Preconditions()])
def test_options_are_shared_as_defaults_and_so_do_not_change(options: object) -> None:
    name = next(iter(type(options).__dataclass_fields__))  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        setattr(options, name, "changed")


def test_names_are_those_of_the_api() -> None:
    assert [*EventType] == ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    assert [*Propagation] == ["Background", "Foreground", "Orphan"]
    assert [*VersionMatch] == ["", "NotOlderThan", "Exact"]
    assert [*FieldValidation] == ["Ignore", "Warn", "Strict"]


def test_a_list_that_is_complete_says_nothing_of_more() -> None:
    page = ObjectList([], "5")
    assert (page.continue_, page.remaining) == ("", None)
