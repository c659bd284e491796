from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins import dra_messages
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, Service
from devlet.plugins.dra_messages import prepare_request, prepared, reports, unprepare_request, unprepared
from devlet.wire.dra_health import api_pb2 as pb_health
from devlet.wire.dra_v1 import api_pb2 as pb
from devlet.wire.dra_v1alpha1 import api_pb2 as pb_v1alpha1
from devlet.wire.dra_v1alpha2 import api_pb2 as pb_v1alpha2
from devlet.wire.dra_v1alpha3 import api_pb2 as pb_v1alpha3
from devlet.wire.dra_v1beta1 import api_pb2 as pb_v1beta1

LISTED = [Service.V1, Service.V1BETA1, Service.V1ALPHA4, Service.V1ALPHA3]
NAMED = [Service.V1, Service.V1BETA1, Service.V1ALPHA4]
SINGLE = [Service.V1ALPHA2, Service.V1ALPHA1]
SKIPPED = ClaimProblem("the driver skipped this claim: its answer has no entry for it")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.lists(texts, min_size=1, max_size=3).map(tuple)
devices = st.builds(
    PreparedDevice,
    pool=texts,
    device=texts,
    share=st.none() | texts,
    requests=st.none() | names,
    cdi_devices=st.none() | names,
)
outcomes = st.lists(devices, max_size=3).map(tuple) | st.builds(ClaimProblem, texts.filter(bool))


def claim(uid: str, name: str = "gpu", namespace: str = "default", cdi: tuple[str, ...] = ()) -> ClaimRef:
    return ClaimRef(namespace, ClaimName(name), ClaimUID(uid), cdi)


def messages(service: Service) -> Any:
    return {
        Service.V1: pb,
        Service.V1BETA1: pb_v1beta1,
        Service.V1ALPHA4: pb_v1beta1,
        Service.V1ALPHA3: pb_v1alpha3,
        Service.V1ALPHA2: pb_v1alpha2,
        Service.V1ALPHA1: pb_v1alpha1,
    }[service]


def answer(service: Service, outcomes: dict[str, Any]) -> bytes:
    """Encode the answer as a driver of that version does."""
    kinds = messages(service)
    response = kinds.NodePrepareResourcesResponse()
    for uid, outcome in outcomes.items():
        entry = response.claims[uid]
        if isinstance(outcome, ClaimProblem):
            entry.error = outcome.message
            continue
        for device in outcome:
            fields: dict[str, Any] = {"share_id": device.share} if service is Service.V1 else {}
            entry.devices.add(
                pool_name=device.pool,
                device_name=device.device,
                request_names=device.requests,
                cdi_device_ids=device.cdi_devices,
                **fields,
            )
    blob: bytes = response.SerializeToString()
    return blob


@pytest.mark.spec("DN-1.3a")
@pytest.mark.parametrize("service", LISTED)
def test_claims_are_named_by_namespace_uid_and_name(service: Service) -> None:
    claims = [claim("u1", "a", "ns1", ("v/c=d",)), claim("u2", "b", "ns2")]
    for kind, encode in (
        (messages(service).NodePrepareResourcesRequest, prepare_request),
        (messages(service).NodeUnprepareResourcesRequest, unprepare_request),
    ):
        request = kind.FromString(encode(service, claims))
        assert [(c.namespace, c.uid, c.name) for c in request.claims] == [("ns1", "u1", "a"), ("ns2", "u2", "b")]
        assert encode(service, []) == b""


@pytest.mark.spec("DN-1.5a")
@pytest.mark.parametrize("service", SINGLE)
def test_the_oldest_services_get_one_claim(service: Service) -> None:
    one = claim("u1", "a", "ns1", ("v/c=d", "v/c=e"))
    prepare = messages(service).NodePrepareResourceRequest.FromString(prepare_request(service, [one]))
    unprepare = messages(service).NodeUnprepareResourceRequest.FromString(unprepare_request(service, [one]))
    for request in (prepare, unprepare):
        assert (request.namespace, request.claim_uid, request.claim_name) == ("ns1", "u1", "a")
    assert prepare.resource_handle == ""
    if service is Service.V1ALPHA1:
        assert list(unprepare.cdi_devices) == ["v/c=d", "v/c=e"]
    else:
        assert unprepare.resource_handle == ""


@pytest.mark.spec("DN-1.3b", "DN-1.4")
@pytest.mark.parametrize("service", NAMED)
@given(outcomes=st.dictionaries(texts, outcomes, max_size=4))
def test_an_answer_is_decoded_without_loss_except_for_shares_before_v1(service: Service, outcomes: Any) -> None:
    asked = [claim(uid) for uid in outcomes]
    found = prepared(service, answer(service, outcomes), asked)
    assert list(found) == list(outcomes)
    for uid, expected in outcomes.items():
        if isinstance(expected, tuple) and service is not Service.V1:
            expected = tuple(PreparedDevice(d.pool, d.device, None, d.requests, d.cdi_devices) for d in expected)
        assert found[ClaimUID(uid)] == expected


def test_an_empty_share_differs_from_no_share() -> None:
    given = {"u": (PreparedDevice("p", "d", ""), PreparedDevice("p", "d"))}
    assert prepared(Service.V1, answer(Service.V1, given), [claim("u")]) == given


def test_a_share_in_the_answer_of_an_older_service_is_lost() -> None:
    blob = answer(Service.V1, {"u": (PreparedDevice("p", "d", "share"),)})
    assert prepared(Service.V1BETA1, blob, [claim("u")]) == {"u": (PreparedDevice("p", "d"),)}


@pytest.mark.parametrize("service", LISTED)
def test_an_empty_entry_is_success_without_devices(service: Service) -> None:
    blob = answer(service, {"u": ()})
    assert prepared(service, blob, [claim("u")]) == {"u": ()}
    # The key of the map alone, without a value.
    assert prepared(service, b"\x0a\x03\x0a\x01u", [claim("u")]) == {"u": ()}
    assert unprepared(service, b"\x0a\x03\x0a\x01u", [claim("u")]) == {"u": None}


def test_devices_in_an_entry_with_an_error_are_ignored() -> None:
    response = pb.NodePrepareResourcesResponse()
    response.claims["u"].devices.add(pool_name="p", device_name="d")
    response.claims["u"].error = "broken"
    assert prepared(Service.V1, response.SerializeToString(), [claim("u")]) == {"u": ClaimProblem("broken")}


@pytest.mark.spec("DN-1.3c")
@pytest.mark.parametrize("service", LISTED)
def test_a_claim_without_an_entry_was_skipped(service: Service) -> None:
    asked = [claim("u1"), claim("u2")]
    assert prepared(service, answer(service, {"u2": ()}), asked) == {"u1": SKIPPED, "u2": ()}
    assert prepared(service, b"", asked) == unprepared(service, b"", asked) == {"u1": SKIPPED, "u2": SKIPPED}


@pytest.mark.spec("DN-1.3d")
@pytest.mark.parametrize("service", LISTED)
def test_an_entry_for_another_claim_makes_the_answer_invalid(service: Service) -> None:
    blob = answer(service, {"u1": (), "u9": (), "u8": ()})
    for decode in (prepared, unprepared):
        with pytest.raises(ValueError, match=r"^has an entry for a claim that was not asked about: UID 'u8'$"):
            decode(service, blob, [claim("u1")])
    with pytest.raises(ValueError) as refused:
        prepared(service, answer(service, {"x" * 5_000: ()}), [])
    assert len(str(refused.value)) < 200


@pytest.mark.spec("DN-1.5b")
def test_v1alpha3_answers_only_with_cdi_devices() -> None:
    response = pb_v1alpha3.NodePrepareResourcesResponse()
    response.claims["u1"].cdi_devices.extend(["v/c=a", "v/c=b"])
    response.claims["u2"].error = "broken"
    asked = [claim("u1"), claim("u2"), claim("u3")]
    assert prepared(Service.V1ALPHA3, response.SerializeToString(), asked) == {
        "u1": (PreparedDevice("", "", None, None, ("v/c=a", "v/c=b")),),
        "u2": ClaimProblem("broken"),
        "u3": SKIPPED,
    }


@pytest.mark.parametrize("service", SINGLE)
def test_the_oldest_services_answer_with_the_cdi_devices_of_one_claim(service: Service) -> None:
    blob = messages(service).NodePrepareResourceResponse(cdi_devices=["v/c=a"]).SerializeToString()
    asked = [claim("u")]
    assert prepared(service, blob, asked) == {"u": (PreparedDevice("", "", None, None, ("v/c=a",)),)}
    assert prepared(service, b"", asked) == {"u": ()}
    assert unprepared(service, b"", asked) == {"u": None}


@pytest.mark.spec("DN-1.4")
def test_v1alpha4_and_v1alpha3_read_the_same_bytes_differently() -> None:
    """They have the same service name: the first field of an entry is a list of devices, or of strings."""
    blob = answer(Service.V1ALPHA4, {"u": (PreparedDevice("pool", "dev"),)})
    assert prepared(Service.V1ALPHA4, blob, [claim("u")]) == {"u": (PreparedDevice("pool", "dev"),)}
    assert prepared(Service.V1ALPHA3, blob, [claim("u")]) != {"u": (PreparedDevice("pool", "dev"),)}


@pytest.mark.parametrize("service", LISTED)
def test_unprepare_reports_the_problem_of_each_claim(service: Service) -> None:
    response = messages(service).NodeUnprepareResourcesResponse()
    response.claims["u1"].error = "in use"
    response.claims["u2"].SetInParent()
    asked = [claim("u1"), claim("u2"), claim("u3")]
    found = unprepared(service, response.SerializeToString(), asked)
    assert found == {"u1": ClaimProblem("in use"), "u2": None, "u3": SKIPPED}


def test_the_same_claim_twice_is_one() -> None:
    assert prepared(Service.V1, answer(Service.V1, {"u": ()}), [claim("u"), claim("u")]) == {"u": ()}


@pytest.mark.parametrize("service", list(Service))
@given(blob=st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(service: Service, blob: bytes) -> None:
    for decode in (prepared, unprepared):
        try:
            found = decode(service, blob, [claim("u")])
        except ValueError as e:
            assert str(e).startswith(("cannot be decoded: ", "has an entry for a claim "))
        else:
            assert list(found) == ["u"]


@pytest.mark.parametrize("service", LISTED)
def test_a_string_that_is_not_utf8_cannot_be_decoded(service: Service) -> None:
    blob = answer(service, {"u": ClaimProblem("broken")}).replace(b"broken", b"br\xffken")
    with pytest.raises(ValueError, match=r"^cannot be decoded: "):
        prepared(service, blob, [claim("u")])


def test_too_many_devices_are_a_problem_of_the_claim() -> None:
    def outcome(device: PreparedDevice, count: int = 1) -> object:
        blob = answer(Service.V1, {"u": (device,) * count})
        return prepared(Service.V1, blob, [claim("u")])[ClaimUID("u")]

    at_most = dra_messages.MAX_ENTRIES
    long = "x" * (dra_messages.MAX_TEXT + 1)
    many = ("r",) * (at_most + 1)
    too_many = ClaimProblem("the driver's answer has 10001 devices, more than the 10000 that are accepted")
    too_many_names = ClaimProblem(
        "the driver's answer has 10001 names in a list, more than the 10000 that are accepted"
    )
    too_long = ClaimProblem(f"the driver's answer has a name of 4097 characters, more than 4096: {'x' * 100}…")
    assert outcome(PreparedDevice("p", "d"), at_most + 1) == too_many
    assert outcome(PreparedDevice("p", "d"), at_most) == (PreparedDevice("p", "d"),) * at_most
    assert outcome(PreparedDevice("p", "d", None, many)) == too_many_names
    assert outcome(PreparedDevice("p", "d", None, None, many)) == too_many_names
    for device in (PreparedDevice(long, "d"), PreparedDevice("p", long), PreparedDevice("p", "d", long)):
        assert outcome(device) == too_long
    assert outcome(PreparedDevice("p", "d", None, None, (long,))) == too_long


def test_a_long_error_is_cut() -> None:
    blob = answer(Service.V1, {"u": ClaimProblem("x" * 5_000)})
    assert prepared(Service.V1, blob, [claim("u")]) == {"u": ClaimProblem("x" * 4_096)}


def health(**fields: Any) -> bytes:
    fields.setdefault("device", pb_health.DeviceIdentifier(pool_name="p", device_name="d"))
    one = pb_health.DeviceHealth(**fields)
    return pb_health.NodeWatchResourcesResponse(devices=[one]).SerializeToString()


@pytest.mark.spec("DN-1.6")
@given(
    listed=st.lists(
        st.builds(
            DeviceReport,
            pool=texts,
            device=texts,
            health=st.sampled_from(["Unknown", "Healthy", "Unhealthy"]),
            timeout=st.integers(0, 31_536_000).map(float),
            message=texts,
        )
    )
)
def test_reports_of_named_devices_are_decoded_without_loss(listed: list[DeviceReport]) -> None:
    numbers = {"Unknown": pb_health.UNKNOWN, "Healthy": pb_health.HEALTHY, "Unhealthy": pb_health.UNHEALTHY}
    blob = pb_health.NodeWatchResourcesResponse(
        devices=[
            pb_health.DeviceHealth(
                device=pb_health.DeviceIdentifier(pool_name=one.pool, device_name=one.device),
                health=numbers[one.health],
                last_updated_time=1_700_000_000,
                health_check_timeout_seconds=int(one.timeout),
                message=one.message,
            )
            for one in listed
        ]
    ).SerializeToString()
    named = tuple(one for one in listed if one.pool and one.device)
    assert reports(blob) == (named, len(listed) - len(named))


@pytest.mark.parametrize(
    ("given", "kept"), [(0, 0.0), (-5, 0.0), (-(1 << 63), 0.0), (60, 60.0), ((1 << 63) - 1, 31_536_000.0)]
)
def test_an_invalid_timeout_counts_as_none_and_an_infinite_one_as_a_year(given: int, kept: float) -> None:
    assert reports(health(health_check_timeout_seconds=given)) == ((DeviceReport("p", "d", "Unknown", kept),), 0)


def test_an_undefined_health_is_unknown() -> None:
    # Field 2 of DeviceHealth, with the value 7.
    blob = health().replace(b"\x0a\x06\x0a\x01p\x12\x01d", b"\x0a\x06\x0a\x01p\x12\x01d\x10\x07")
    blob = b"\x0a" + bytes([len(blob) - 2]) + blob[2:]
    assert int(pb_health.NodeWatchResourcesResponse.FromString(blob).devices[0].health) == 7
    assert reports(blob) == ((DeviceReport("p", "d", "Unknown"),), 0)


def test_a_report_without_device_is_dropped() -> None:
    assert reports(health(device=None)) == ((), 1)
    assert reports(b"") == ((), 0)


def test_reports_on_too_many_devices_or_with_too_long_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    name = pb_health.DeviceIdentifier(pool_name="p", device_name="d" * 5_000)
    with pytest.raises(ValueError, match="has a name of 5000 characters"):
        reports(health(device=name))
    monkeypatch.setattr(dra_messages, "MAX_REPORTS", 0)
    with pytest.raises(ValueError, match=r"^has 1 devices, more than the 0 that are accepted$"):
        reports(health())


@given(blob=st.binary(max_size=60))
def test_any_bytes_are_reports_or_refused(blob: bytes) -> None:
    try:
        reports(blob)
    except ValueError as e:
        assert str(e).startswith("cannot be decoded: ")
