import pytest

from devlet.cluster.client import FieldValidation, Propagation, VersionMatch
from devlet.errors import BadRequest, InvalidObject
from devlet.serve.kube_api import options


def test_lists_take_their_options_from_the_query() -> None:
    query = {
        "labelSelector": "a=b",
        "limit": "5",
        "continue": "x",
        "resourceVersion": "7",
        "resourceVersionMatch": "Exact",
    }
    wanted = options.list_options(query)
    assert (wanted.label_selector, wanted.limit, wanted.continue_) == ("a=b", 5, "x")
    assert (wanted.resource_version, wanted.version_match) == ("7", VersionMatch.EXACT)
    assert options.list_options({"limit": "-3"}).limit == 0


def test_watches_take_their_options_from_the_query() -> None:
    query = {"watch": "1", "timeoutSeconds": "9", "allowWatchBookmarks": "true", "sendInitialEvents": "false"}
    wanted = options.watch_options(query)
    assert options.is_watch(query)
    assert (wanted.timeout, wanted.bookmarks, wanted.send_initial_events) == (9.0, True, False)
    assert options.watch_options({}).send_initial_events is None


def test_writes_have_a_field_manager_by_default() -> None:
    wanted = options.write_options({}, "CreateOptions", "kubectl/v1.36.4 (linux)", lambda _: None)
    assert (wanted.field_manager, wanted.dry_run, wanted.field_validation) == ("kubectl", False, FieldValidation.WARN)


def test_the_body_of_a_deletion_takes_precedence_over_the_query() -> None:
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "propagationPolicy": "Foreground"}
    wanted = options.delete_options({"gracePeriodSeconds": "30"}, body)
    assert (wanted.grace_period, wanted.propagation) == (0, Propagation.FOREGROUND)
    assert wanted.preconditions.uid == "u"
    assert options.delete_options({"orphanDependents": "true"}, None).propagation is Propagation.ORPHAN
    assert options.delete_options({"dryRun": "All"}, None).dry_run


@pytest.mark.parametrize(
    ("query", "kind", "field"),
    [
        ({"dryRun": "Some"}, "CreateOptions", "dryRun"),
        ({"fieldValidation": "Loose"}, "CreateOptions", "fieldValidation"),
        ({"fieldManager": "x" * 200}, "CreateOptions", "fieldManager"),
        ({"fieldManager": "a\nb"}, "CreateOptions", "fieldManager"),
    ],
)
def test_wrong_write_options_name_the_option(query: dict[str, str], kind: str, field: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        options.write_options(query, kind, "", lambda _: None)
    assert caught.value.kind == f"{kind}.meta.k8s.io"
    assert [cause.field for cause in caught.value.causes] == [field]


def test_wrong_delete_options_name_the_option() -> None:
    for query in ({"propagationPolicy": "Never"}, {"propagationPolicy": "Orphan", "orphanDependents": "true"}):
        with pytest.raises(InvalidObject) as caught:
            options.delete_options(query, None)
        assert caught.value.causes[0].field == "propagationPolicy"


def test_numbers_must_be_numbers() -> None:
    for text in ("five", "1e3", "9" * 30, "--1"):
        with pytest.raises(BadRequest, match="limit"):
            options.list_options({"limit": text})


def test_initial_events_are_for_watches_only() -> None:
    with pytest.raises(InvalidObject, match="sendInitialEvents"):
        options.list_options({"sendInitialEvents": "true"})
