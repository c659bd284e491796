import pytest

from devlet.objects.schema import messages as schema
from devlet.objects.schema.messages import message, message_of

CORE = "k8s.io.api.core.v1."


def test_a_message_is_found_by_its_name_and_by_the_kind_that_uses_it() -> None:
    assert message_of("v1", "Pod") is message(CORE + "Pod")


def test_a_kind_that_the_table_does_not_have_is_not_an_error() -> None:
    assert message_of("example.com/v1", "Widget") is None
    assert message_of("v2", "Pod") is None


def test_a_message_name_that_does_not_exist_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        message(CORE + "Nothing")


@pytest.mark.spec("KA-2.3")
@pytest.mark.parametrize("kind", ["DeleteOptions", "Status", "ListOptions", "CreateOptions", "PatchOptions"])
@pytest.mark.parametrize("api_version", ["v1", "resource.k8s.io/v1", "meta.k8s.io/v1", "example.com/v1"])
def test_kinds_of_meta_have_one_form_in_every_group(api_version: str, kind: str) -> None:
    assert message_of(api_version, kind) is message(f"k8s.io.apimachinery.pkg.apis.meta.v1.{kind}")


def test_fields_are_found_by_number_and_by_key() -> None:
    pod = message(CORE + "Pod")
    assert list(pod.properties) == ["metadata", "spec", "status"]
    assert pod.fields[2] is pod.properties["spec"]
    assert pod.fields[2].message() is message(CORE + "PodSpec")


def test_keys_of_an_inline_message_belong_to_the_parent() -> None:
    volume = message(CORE + "Volume")
    assert volume.fields[2].inline
    assert list(volume.properties)[:3] == ["name", "hostPath", "emptyDir"]
    assert "volumeSource" not in volume.properties


def test_a_field_knows_how_its_list_is_merged_and_applied() -> None:
    volumes = message(CORE + "PodSpec").properties["volumes"]
    assert (volumes.label, volumes.patch_strategy, volumes.patch_merge_key) == (
        "repeated",
        ("merge", "retainKeys"),
        "name",
    )
    ports = message(CORE + "Container").properties["ports"]
    assert (ports.list_type, ports.list_map_keys) == ("map", ("containerPort", "protocol"))
    assert message(CORE + "PodSpec").properties["nodeSelector"].map_type == "atomic"
    assert message("k8s.io.apimachinery.pkg.apis.meta.v1.LabelSelector").map_type == "atomic"


def test_special_types_are_not_objects_with_known_keys() -> None:
    meta = message("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta").properties
    assert meta["ownerReferences"].is_message
    assert not meta["creationTimestamp"].is_message
    assert meta["creationTimestamp"].special == "time"
    assert not meta["name"].is_message


def test_only_messages_of_kinds_carry_a_type_in_json() -> None:
    assert message(CORE + "Pod").is_kind
    assert not message(CORE + "PodSpec").is_kind


def test_every_message_of_the_table_can_be_built_and_refers_to_messages_that_exist() -> None:
    waiting = list(schema.kinds().values())
    seen: set[str] = set()
    while waiting:
        made = message(waiting.pop())
        if made.name not in seen:
            seen.add(made.name)
            assert list(made.fields) == sorted(made.fields)
            assert made.special or len(made.properties) >= len([f for f in made.layout if not f.inline])
            waiting += [field.type for field in made.layout if "." in field.type]
    assert len(seen) > 600


def test_no_message_contains_itself() -> None:
    """The codecs recurse by message: that is bounded only as long as this holds."""

    def depth(name: str, above: tuple[str, ...]) -> int:
        assert name not in above
        return 1 + max((depth(f.type, (*above, name)) for f in message(name).layout if "." in f.type), default=0)

    assert max(depth(name, ()) for name in set(schema.kinds().values())) < 30
