from devlet.sanity.check import Failed, Passed
from devlet.sanity.checks.dra.answers import ids_of, line, same
from devlet.wire.dra_v1 import api_pb2 as pb

RED = pb.Device(pool_name="leds", device_name="red", cdi_device_ids=["v.com/led=red", "v.com/led=all"])
GREEN = pb.Device(pool_name="leds", device_name="green")


def test_ids_are_those_of_all_devices_in_their_order() -> None:
    assert ids_of([GREEN, RED]) == ["v.com/led=red", "v.com/led=all"]


def test_a_message_is_one_line() -> None:
    assert line(GREEN) == 'pool_name: "leds" device_name: "green"'


def test_answers_are_the_same_in_any_order() -> None:
    assert same([RED, GREEN], [GREEN, RED], "now") == Passed()


def test_an_incomplete_answer_is_a_finding() -> None:
    outcome = same([GREEN], [], "before and after")
    assert isinstance(outcome, Failed)
    assert outcome.seen.endswith("; no devices")
