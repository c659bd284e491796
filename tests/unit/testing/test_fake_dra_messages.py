import pytest

from devlet.objects.identifiers import ClaimName, ClaimUID
from devlet.objects.types.claim import PreparedDevice
from devlet.plugins.dra import ClaimProblem, ClaimRef, DeviceReport, Service
from devlet.testing.dra_script import PREPARE, UNPREPARE
from devlet.testing.fake_dra_messages import Method, claims_of, encode, health_list, large_answer, method_of

CLAIM = b"\x0a\x02ns\x12\x02u1\x1a\x05train"  # namespace, UID, name
OLD_CLAIM = CLAIM  # the same numbers
TRAIN = ClaimRef("ns", ClaimName("train"), ClaimUID("u1"))
DEVICE = PreparedDevice("p", "d", share="s", requests=("r",), cdi_devices=("v/c=d",))
ENTRY = b"\x0a\x01r\x12\x01p\x1a\x01d\x22\x05v/c=d"


def entry(value: bytes) -> bytes:
    """Of the map from UIDs."""
    content = b"\x0a\x02u1\x12" + bytes([len(value)]) + value
    return b"\x0a" + bytes([len(content)]) + content


@pytest.mark.parametrize(
    ("service", "path"),
    [
        (Service.V1, "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"),
        (Service.V1BETA1, "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources"),
        (Service.V1ALPHA4, "/v1alpha3.Node/NodePrepareResources"),
        (Service.V1ALPHA3, "/v1alpha3.Node/NodePrepareResources"),
        (Service.V1ALPHA2, "/v1alpha2.Node/NodePrepareResource"),
        (Service.V1ALPHA1, "/v1alpha1.Node/NodePrepareResource"),
    ],
)
def test_methods_have_the_paths_of_their_version(service: Service, path: str) -> None:
    assert Method(service, PREPARE).path == path
    assert method_of(path, [service]) == Method(service, PREPARE)
    assert method_of(path.replace("NodePrepare", "NodeUnprepare"), [service]) == Method(service, UNPREPARE)
    assert method_of(path, []) is None


@pytest.mark.parametrize("name", [PREPARE, UNPREPARE])
@pytest.mark.parametrize("service", Service)
def test_a_request_names_claims_in_every_version(service: Service, name: str) -> None:
    one_by_one = service in (Service.V1ALPHA2, Service.V1ALPHA1)
    blob = CLAIM if one_by_one else b"\x0a" + bytes([len(CLAIM)]) + CLAIM
    assert claims_of(Method(service, name), blob) == (TRAIN,)


def test_v1alpha1_gets_the_cdi_devices_when_it_unprepares() -> None:
    (claim,) = claims_of(Method(Service.V1ALPHA1, UNPREPARE), CLAIM + b"\x22\x05v/c=d")
    assert claim.cdi_devices == ("v/c=d",)


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (Service.V1, entry(b"\x0a\x13" + ENTRY + b"\x2a\x01s")),
        (Service.V1BETA1, entry(b"\x0a\x10" + ENTRY)),
        (Service.V1ALPHA4, entry(b"\x0a\x10" + ENTRY)),
        (Service.V1ALPHA3, entry(b"\x0a\x05v/c=d")),
        (Service.V1ALPHA2, b"\x0a\x05v/c=d"),
        (Service.V1ALPHA1, b"\x0a\x05v/c=d"),
    ],
)
def test_an_answer_says_what_its_version_can_say(service: Service, expected: bytes) -> None:
    assert encode(Method(service, PREPARE), {"u1": (DEVICE,)}) == expected


def test_a_share_may_be_empty_and_is_then_still_there() -> None:
    without, empty = (
        encode(Method(Service.V1, PREPARE), {"u1": (PreparedDevice("p", "d", share=share),)}) for share in (None, "")
    )
    assert without == entry(b"\x0a\x06\x12\x01p\x1a\x01d")
    assert empty == entry(b"\x0a\x08\x12\x01p\x1a\x01d\x2a\x00")


@pytest.mark.parametrize("service", Service)
def test_an_error_of_a_claim_is_one_of_the_call_in_the_oldest_versions(service: Service) -> None:
    problem = ClaimProblem("no")
    one_by_one = service in (Service.V1ALPHA2, Service.V1ALPHA1)
    prepared = encode(Method(service, PREPARE), {"u1": problem})
    unprepared = encode(Method(service, UNPREPARE), {"u1": problem})
    assert prepared == (problem if one_by_one else entry(b"\x12\x02no"))
    assert unprepared == (problem if one_by_one else entry(b"\x0a\x02no"))


@pytest.mark.parametrize("service", Service)
def test_an_unprepared_claim_has_an_empty_entry(service: Service) -> None:
    one_by_one = service in (Service.V1ALPHA2, Service.V1ALPHA1)
    assert encode(Method(service, UNPREPARE), {"u1": ()}) == (b"" if one_by_one else entry(b""))


def test_health_has_the_fields_of_the_api_and_may_be_an_unknown_number() -> None:
    reports = [DeviceReport("p", "d", "Unhealthy", 7.0, "hot"), DeviceReport("", "", "9")]
    first = b"\x0a\x06\x0a\x01p\x12\x01d\x10\x02\x18\x05\x20\x07\x2a\x03hot"
    second = b"\x0a\x00\x10\x09\x18\x05"
    assert health_list(reports, now=5.5) == b"\x0a" + bytes([len(first)]) + first + b"\x0a\x06" + second
    assert health_list([DeviceReport("p", "d", "Unknown")]) == b"\x0a\x08\x0a\x06\x0a\x01p\x12\x01d"


def test_a_large_answer_is_large() -> None:
    assert 5_000_000 < len(large_answer(5_000_000)) < 5_001_000
