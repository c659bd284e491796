import pytest

from devlet.daemon.controllers import CONTROL, NAMES, parse


@pytest.mark.parametrize(
    ("text", "running"),
    [
        ("*", set(NAMES)),
        ("", set(NAMES)),
        ("-namespace", set(NAMES) - {"namespace"}),
        ("*,-namespace", set(NAMES) - {"namespace"}),
        ("*,-scheduler,-resourceclaim,-device-taint-eviction", set(NAMES) - set(CONTROL)),
        ("namespace", {"namespace"}),
        ("namespace, serviceaccount", {"namespace", "serviceaccount"}),
        ("namespace,-namespace", {"namespace"}),
    ],
)
def test_the_list_is_read_as_kube_controller_manager_reads_it(text: str, running: set[str]) -> None:
    assert parse(text) == running


def test_an_unknown_controller_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"unknown controller 'namespaces': did you mean namespace\?"):
        parse("*,-namespaces")


def test_a_program_may_have_only_some_of_them() -> None:
    assert parse("*", CONTROL) == {"resourceclaim", "device-taint-eviction", "scheduler"}
    with pytest.raises(ValueError, match="unknown controller 'namespace': expected some of resourceclaim, "):
        parse("namespace", CONTROL)
