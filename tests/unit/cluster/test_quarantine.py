import pytest

from devlet.cluster import quarantine
from devlet.cluster.quarantine import REASON, Quarantine
from devlet.kit.metrics import Registry
from devlet.objects.documents import Document
from devlet.objects.kinds import PODS
from devlet.objects.types.meta import ObjectReference

POD: Document = {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7"}}
KEY = ("pods", "ns", "p")


def test_an_object_is_listed_and_reported_with_what_is_wrong() -> None:
    events: list[tuple[ObjectReference, str, str, str]] = []
    metrics = Registry()
    aside = Quarantine(lambda *event: events.append(event), metrics)
    aside.add(PODS, POD, ValueError("spec is 5"))
    assert aside.entries[KEY].problem == "this object cannot be read: ValueError: spec is 5"
    ((about, type_, reason, message),) = events
    assert (about.kind, about.namespace, about.name, about.uid) == ("Pod", "ns", "p", "u")
    assert (type_, reason) == ("Warning", REASON)
    assert message == "This object cannot be read: ValueError: spec is 5. Correct or delete the object."
    assert 'devlet_set_aside_objects{resource="pods",namespace="ns",name="p"} 1' in metrics.text()


def test_an_entry_goes_with_a_newer_version_or_the_object() -> None:
    aside = Quarantine()
    aside.add(PODS, POD, ValueError(), handler="Scheduler")
    aside.remove(PODS, ("ns", "p"), "7")  # another reader, which could read this version
    assert aside.entries[KEY].problem == "Scheduler failed on this object: ValueError: "
    aside.remove(PODS, ("ns", "p"), "8")
    assert not aside.entries
    aside.add(PODS, POD, ValueError())
    aside.remove(PODS, ("ns", "p"))
    assert not aside.entries


def test_the_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "MOST", 2)
    aside = Quarantine()
    for name in ("a", "b", "c", "a"):
        aside.add(PODS, {"metadata": {"name": name}}, ValueError())
    assert [name for _, _, name in aside.entries] == ["a", "b"]
