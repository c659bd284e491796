from devlet.cassettes.cassette import DeviceNode, Grant, Mount, Plugin
from devlet.cassettes.grants import for_devices, summarised


def node(path: str) -> DeviceNode:
    return DeviceNode(path, path, "rw")


def test_one_answer_that_explains_all_is_kept_without_ids() -> None:
    seen = [
        Grant(("a",), env={"LEDS": "a"}, devices=(node("/dev/a"),)),
        Grant(("b", "c"), env={"LEDS": "c,b"}, devices=(node("/dev/c"), node("/dev/b"))),
    ]
    assert summarised(seen) == (Grant(env={"LEDS": "{ids}"}, devices=(node("/dev/{id}"),)),)


def test_it_is_played_for_other_devices() -> None:
    template = Grant(
        env={"LEDS": "{ids}", "LED_{id}": "on", "FIXED": "yes"},
        devices=(node("/dev/{id}"), node("/dev/control")),
        mounts=(Mount("/in", "/lib/{id}"),),
        annotations={"leds": "{ids}"},
        cdi_devices=("example.com/led={id}",),
    )
    assert for_devices(Plugin("example.com/led", grants=(template,)), ["x", "y"]) == Grant(
        ("x", "y"),
        env={"LEDS": "x,y", "LED_x": "on", "LED_y": "on", "FIXED": "yes"},
        devices=(node("/dev/x"), node("/dev/y"), node("/dev/control")),
        mounts=(Mount("/in", "/lib/x"), Mount("/in", "/lib/y")),
        annotations={"leds": "x,y"},
        cdi_devices=("example.com/led=x", "example.com/led=y"),
    )


def test_answers_that_differ_are_kept_as_they_were() -> None:
    seen = [Grant(("0",), devices=(node("/dev/nvidia0"),)), Grant(("1",), devices=(node("/dev/nvidia1"),))]
    kept = summarised(reversed(seen))
    assert kept == tuple(seen)
    plugin = Plugin("example.com/gpu", grants=kept)
    assert for_devices(plugin, ["1"]) == seen[1]
    assert for_devices(plugin, ["0", "1"]).devices == (node("/dev/nvidia0"), node("/dev/nvidia1"))


def test_a_node_that_was_seen_once_and_does_not_name_its_device_is_not_given_to_others() -> None:
    seen = Grant(("GPU-1",), env={"VISIBLE": "GPU-1"}, devices=(node("/dev/nvidia0"),))
    assert summarised([seen]) == (seen,)
    plugin = Plugin("nvidia.com/gpu", grants=(seen,))
    assert for_devices(plugin, ["GPU-2"]) == Grant(("GPU-2",), env={"NVIDIA_COM_GPU": "GPU-2"})


def test_devices_of_which_nothing_is_known_get_a_variable_that_names_them() -> None:
    assert summarised([]) == ()
    assert for_devices(Plugin("example.com/led"), ["b", "a"]).env == {"EXAMPLE_COM_LED": "b,a"}


def test_texts_of_single_answers_are_joined() -> None:
    grants = (Grant(("0",), env={"A": "x0", "B": "same"}), Grant(("1",), env={"A": "y1", "B": "same"}))
    assert for_devices(Plugin("e.com/l", grants=grants), ["0", "1"]).env == {"A": "x0,y1", "B": "same"}
