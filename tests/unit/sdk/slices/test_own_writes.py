import pytest

from devlet.cluster.informer import Changed
from devlet.objects.documents import Document
from devlet.sdk.slices.own_writes import OwnWrites


def slice_(name: str, version: int, pool: str = "p", uid: str = "") -> Document:
    metadata = {"name": name, "resourceVersion": str(version), "uid": uid or name}
    return {"metadata": metadata, "spec": {"pool": {"name": pool}}}


def change(old: Document | None, new: Document | None) -> Changed[Document]:
    some = old or new
    assert some
    return Changed(("", some["metadata"]["name"]), old, new)


@pytest.fixture
def own() -> OwnWrites:
    return OwnWrites(60.0)


@pytest.mark.spec("DN-6.5a")
def test_what_was_written_is_there_before_the_watch_tells(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    assert own.overlaid("p", [], 59.9) == [slice_("a", 10)]
    assert own.overlaid("other", [], 1.0) == []


@pytest.mark.spec("DN-6.5a")
def test_the_newer_version_wins(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    assert own.overlaid("p", [slice_("a", 9)], 1.0) == [slice_("a", 10)]
    assert own.overlaid("p", [slice_("a", 11)], 1.0) == [slice_("a", 11)]


@pytest.mark.spec("DN-6.5b")
def test_after_its_time_a_write_is_forgotten(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    assert own.overlaid("p", [], 60.0) == []


def test_the_event_of_an_own_write_counts_as_own(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    assert own.is_own(change(None, slice_("a", 10)))
    assert own.is_own(change(None, slice_("a", 9)))
    assert not own.is_own(change(slice_("a", 10), slice_("a", 11)))
    assert not own.is_own(change(None, slice_("b", 1)))


def test_the_event_of_an_own_delete_counts_as_own_once(own: OwnWrites) -> None:
    own.deleted(slice_("a", 10), 0.0)
    assert own.is_own(change(slice_("a", 10), None))
    assert not own.is_own(change(slice_("a", 10), None))


def test_a_slice_that_another_client_deleted_is_forgotten(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    assert not own.is_own(change(slice_("a", 10, uid="another"), None))
    assert own.overlaid("p", [], 1.0)
    assert not own.is_own(change(slice_("a", 10), None))
    assert own.overlaid("p", [], 1.0) == []


def test_what_we_deleted_is_not_there_by_our_own_account(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    own.deleted(slice_("a", 10), 1.0)
    assert own.overlaid("p", [], 1.0) == []


def test_a_fresh_list_replaces_all_that_is_known_of_a_pool(own: OwnWrites) -> None:
    own.stored(slice_("a", 10), 0.0)
    own.stored(slice_("x", 10, pool="q"), 0.0)
    own.replaced("p", [slice_("b", 12)], 1.0)
    assert own.overlaid("p", [], 1.0) == [slice_("b", 12)]
    assert own.overlaid("q", [], 1.0) == [slice_("x", 10, pool="q")]
