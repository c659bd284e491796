import pytest

from devlet.daemon.controllers import NAMES, parse


@pytest.mark.parametrize(
    ("text", "running"),
    [
        ("*", set(NAMES)),
        ("", set(NAMES)),
        ("-namespace", {"garbage-collector", "serviceaccount"}),
        ("*,-namespace", {"garbage-collector", "serviceaccount"}),
        ("namespace", {"namespace"}),
        ("namespace, serviceaccount", {"namespace", "serviceaccount"}),
        ("namespace,-namespace", {"namespace"}),
    ],
)
def test_the_list_is_read_as_kube_controller_manager_reads_it(text: str, running: set[str]) -> None:
    assert parse(text) == running


def test_an_unknown_controller_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"there is no controller 'namespaces': did you mean namespace\?"):
        parse("*,-namespaces")
