from datetime import UTC, datetime
from typing import Annotated, Any

import pytest

from devlet.objects.kinds import Kind
from devlet.objects.views import VIEWS
from devlet.objects.views.description import API_VERSION, NAMED, Part, Shown, Time, View, some

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Seat(Part, frozen=True):
    """A seat."""

    pod_uid: Annotated[str, "Its pod."]
    is_taken: Annotated[bool | None, "It is taken."] = None


class TrainSpec(Part, frozen=True):
    """The train."""

    number: Annotated[int, "Its number."]
    stops: Annotated[list[str] | None, "Where it stops."] = None
    seats: Annotated[list[Seat] | None, "Its seats."] = None


class TrainStatus(Part, frozen=True):
    """Its state."""

    state: Annotated[str | None, "How it is."] = None
    since: Annotated[Time | None, "When that began."] = None
    labels: Annotated[dict[str, str] | None, "Its labels."] = None


TRAINS = View(
    Kind("Train", "trains", (API_VERSION,)),
    "A train.",
    TrainSpec,
    TrainStatus,
    (
        NAMED,
        Shown("Number", "spec.number", type="integer"),
        Shown("Count", "spec.number", "The number again."),
        Shown("Stops", "spec.stops"),
        Shown("State", "status.state", wide=True),
        Shown("Age", "status.since"),
        Shown("Next", lambda train, now: str(now.year), "The next year."),
    ),
    (),
)


def test_a_document_has_the_fields_that_are_known() -> None:
    spec = TrainSpec(7, stops=[], seats=[Seat("u")])
    assert TRAINS.document({"name": "x"}, spec, TrainStatus(since=Time("now"))) == {
        "kind": "Train",
        "apiVersion": "devlet.dev/v1alpha1",
        "metadata": {"name": "x"},
        "spec": {"number": 7, "stops": [], "seats": [{"podUID": "u"}]},
        "status": {"since": "now"},
    }


def test_the_schema_has_the_type_and_the_meaning_of_each_field() -> None:
    spec, status = TRAINS.schema["properties"]["spec"], TRAINS.schema["properties"]["status"]
    assert (TRAINS.schema["description"], spec["description"]) == ("A train.", "The train.")
    assert spec["properties"]["number"] == {"type": "integer", "format": "int64", "description": "Its number."}
    seat = {"podUID": ("string", "Its pod."), "isTaken": ("boolean", "It is taken.")}
    properties = {name: {"type": type_, "description": meaning} for name, (type_, meaning) in seat.items()}
    assert spec["properties"]["seats"] == {
        "type": "array",
        "description": "Its seats.",
        "items": {"type": "object", "description": "A seat.", "properties": properties},
    }
    assert status["properties"]["since"]["format"] == "date-time"
    assert status["properties"]["labels"]["additionalProperties"] == {"type": "string"}


def test_a_column_of_a_field_takes_its_value_and_its_meaning_from_the_field() -> None:
    shown = {column.name: (column.priority, column.description, column.type) for column in TRAINS.printer.columns[1:]}
    assert shown == {
        "Number": (0, "Its number.", "integer"),
        "Count": (0, "The number again.", "string"),
        "Stops": (0, "Where it stops.", "string"),
        "State": (1, "How it is.", "string"),
        "Age": (0, "When that began.", "string"),
        "Next": (0, "The next year.", "string"),
    }
    train = {
        "metadata": {"name": "x"},
        "spec": {"number": 7, "stops": ["a", "b"]},
        "status": {"state": "Late", "since": "2026-01-02T03:04:00Z"},
    }
    assert TRAINS.printer.cells(train, NOW) == ["x", 7, "7", "a,b", "Late", "5s", "2026"]


@pytest.mark.parametrize("train", [{}, {"spec": None, "status": []}, {"spec": {"number": "7", "stops": {}}}])
def test_a_field_that_is_absent_or_of_the_wrong_type_is_shown_as_such(train: dict[str, Any]) -> None:
    assert TRAINS.printer.cells(train, NOW) == ["", 0, "<none>", "<none>", "<none>", "<unknown>", "2026"]


def test_of_many_names_the_first_few_are_shown() -> None:
    assert some(["a", "", "b", "a"]) == "a,b"
    assert some([f"g{i}" for i in range(10)]) == "g0,g1,g2,g3,g4,g5,g6,g7 + 2 more..."


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.kind.kind)
def test_every_column_of_a_view_has_a_meaning_and_every_selectable_field_exists(view: View[Any, Any]) -> None:
    assert all(view.meaning_of(shown) for shown in view.columns)
    for path in view.selectable:
        part, name = path.split(".")
        assert name in view.schema["properties"][part]["properties"]
