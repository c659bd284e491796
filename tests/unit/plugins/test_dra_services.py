import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.errors import InvalidInput
from devlet.plugins.dra import HealthService, Service
from devlet.plugins.dra_services import (
    choose,
    health,
    health_path,
    names_no_service,
    on_the_wire,
    prepare_path,
    takes_one_claim,
    unprepare_path,
)

V1, V1BETA1, V1ALPHA4 = "v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha3.NodeService"
HEALTH_V1, HEALTH_V1ALPHA1 = "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"


def problem(*versions: str, legacy: Service | None = None) -> str:
    with pytest.raises(InvalidInput) as refused:
        choose(versions, legacy)
    return str(refused.value)


@pytest.mark.spec("DN-10.R02")
@pytest.mark.parametrize(
    ("advertised", "service"), [(V1, Service.V1), (V1BETA1, Service.V1BETA1), (V1ALPHA4, Service.V1ALPHA4)]
)
def test_a_known_service_is_chosen(advertised: str, service: Service) -> None:
    assert choose([advertised]) == (service,)


@pytest.mark.spec("DN-1.7a", "DN-11.10")
def test_the_newest_service_comes_first_in_any_order() -> None:
    assert choose([V1ALPHA4, V1BETA1, V1]) == (Service.V1, Service.V1BETA1, Service.V1ALPHA4)
    assert choose([V1BETA1, V1]) == choose([V1, V1BETA1]) == (Service.V1, Service.V1BETA1)


@pytest.mark.spec("DN-10.R03")
def test_unknown_entries_are_ignored() -> None:
    assert choose(["v9.DRAPlugin", HEALTH_V1, V1BETA1, "", "1.0.0"]) == (Service.V1BETA1,)


@pytest.mark.spec("DN-10.R01")
def test_an_empty_list_is_refused_even_for_a_configured_driver() -> None:
    text = "the list of supported versions is empty: a DRA driver must name the services that it has"
    assert problem() == text
    assert problem(legacy=Service.V1ALPHA2) == text


@pytest.mark.spec("DN-1.7b")
def test_a_list_without_a_known_service_is_refused_with_both_lists() -> None:
    long_name = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
    assert problem("v2.DRAPlugin", long_name) == (
        f"none of the supported versions [v2.DRAPlugin {long_name}] is known, "
        "there are [v1.DRAPlugin v1beta1.DRAPlugin v1alpha3.NodeService]"
    )
    assert "none of the supported versions" in problem(HEALTH_V1)


@pytest.mark.spec("DN-10.R04")
@pytest.mark.parametrize("version", ["1.0.0", "v1.0.0", "1.1", "2"])
def test_a_bare_version_is_tried_with_each_service_newest_first(version: str) -> None:
    assert choose([version]) == choose([HEALTH_V1, version]) == (Service.V1, Service.V1BETA1, Service.V1ALPHA4)
    assert names_no_service([version]) and not names_no_service([version, V1BETA1])
    assert "is known" in problem(f"{version}.DRAPlugin") and "is known" in problem("1.0.0-beta")


@pytest.mark.spec("DN-1.7c")
@pytest.mark.parametrize("legacy", [Service.V1ALPHA4, Service.V1ALPHA3, Service.V1ALPHA2, Service.V1ALPHA1])
def test_a_configured_driver_is_called_as_configured_whatever_it_advertises(legacy: Service) -> None:
    assert choose(["1.0.0"], legacy) == choose([V1, V1BETA1], legacy) == (legacy,)


@given(st.lists(st.sampled_from([V1, V1BETA1, V1ALPHA4, HEALTH_V1, "1.0.0", "x"]), min_size=1))
def test_chosen_services_are_advertised_and_do_not_depend_on_the_order(versions: list[str]) -> None:
    try:
        chosen = choose(versions)
    except InvalidInput:
        assert not {V1, V1BETA1, V1ALPHA4} & set(versions)
        return
    assert chosen == choose(versions[::-1]) == tuple(sorted(chosen, key=list(Service).index))
    assert len(chosen) == (len({V1, V1BETA1, V1ALPHA4} & set(versions)) or 3)


@pytest.mark.spec("DN-11.29")
def test_both_health_services_are_supported_and_v1_is_preferred() -> None:
    assert health([HEALTH_V1ALPHA1, HEALTH_V1]) is HealthService.V1
    assert health([V1, HEALTH_V1ALPHA1]) is HealthService.V1ALPHA1
    assert health([V1]) is None
    assert health_path(HealthService.V1) == "/v1.DRAResourceHealth/NodeWatchResources"
    assert health_path(HealthService.V1ALPHA1) == "/v1alpha1.DRAResourceHealth/NodeWatchResources"


@pytest.mark.spec("DN-1.1")
@pytest.mark.parametrize(
    ("service", "prepare", "unprepare"),
    [
        (
            Service.V1,
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
        ),
        (
            Service.V1BETA1,
            "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
            "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
        ),
        (Service.V1ALPHA4, "/v1alpha3.Node/NodePrepareResources", "/v1alpha3.Node/NodeUnprepareResources"),
        (Service.V1ALPHA3, "/v1alpha3.Node/NodePrepareResources", "/v1alpha3.Node/NodeUnprepareResources"),
        (Service.V1ALPHA2, "/v1alpha2.Node/NodePrepareResource", "/v1alpha2.Node/NodeUnprepareResource"),
        (Service.V1ALPHA1, "/v1alpha1.Node/NodePrepareResource", "/v1alpha1.Node/NodeUnprepareResource"),
    ],
)
def test_services_are_called_by_their_name_on_the_wire(service: Service, prepare: str, unprepare: str) -> None:
    assert (prepare_path(service), unprepare_path(service)) == (prepare, unprepare)
    assert takes_one_claim(service) == prepare.endswith("Resource")
    assert prepare.startswith(f"/{on_the_wire(service)}/")
