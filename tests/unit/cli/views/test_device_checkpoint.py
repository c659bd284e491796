from devlet.cli.views.device_checkpoint import document, table
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.plugins import grants
from devlet.plugins.devices import Grant
from devlet.state.device_checkpoint import Checkpoint, Entry, Form

GRANT = Grant(
    env={"B": "2", "A": "1"},
    mounts=(Mount("/usr/lib/x", "/opt/x", True),),
    devices=(DeviceNode("/dev/x0", "/dev/x3", "rw"),),
    annotations={"example.com/a": "b"},
    cdi_devices=("example.com/gpu=0",),
)


def entry(response: bytes | None, devices: dict[int, tuple[str, ...] | None] | None = None) -> Entry:
    return Entry("uid", "main", "example.com/gpu", devices, response)


def cell(found: Entry, title: str, *, wide: bool = False) -> str:
    header, row = list(table(Checkpoint((found,), {}), wide=wide))[:2]
    titles = ["POD UID", "CONTAINER", "RESOURCE", "DEVICES", "RESPONSE", ""]
    start = header.index(title)
    end = header.index(titles[titles.index(title) + 1]) if title != "RESPONSE" else None
    return row[start:end].rstrip()


def test_devices_are_shown_by_node_in_numeric_order() -> None:
    assert cell(entry(b"", {10: ("c",), 2: ("b", "d"), -1: ("a",)}), "DEVICES") == "a; node 2: b,d; node 10: c"
    assert cell(entry(b"", None), "DEVICES") == "<none>"
    assert cell(entry(b"", {0: None}), "DEVICES") == "node 0: <none>"


def test_a_response_is_counted_or_named() -> None:
    full = entry(grants.encode(GRANT))
    assert cell(full, "RESPONSE") == "env: 2; devices: 1; mounts: 1; annotations: 1; cdi: 1"
    assert cell(full, "RESPONSE", wide=True) == (
        "env: A,B; devices: /dev/x0; mounts: /usr/lib/x; annotations: example.com/a; cdi: example.com/gpu=0"
    )


def test_no_response_an_empty_one_and_one_that_cannot_be_read_differ() -> None:
    assert [cell(entry(blob), "RESPONSE") for blob in (None, b"", b"\xff\xff")] == [
        "<none>",
        "empty",
        "<unreadable>",
    ]


def test_a_file_with_nothing_in_it_says_so() -> None:
    nothing = ["No devices are allocated.", "", "No resources are registered."]
    assert list(table(Checkpoint(None, None), wide=False)) == nothing
    assert list(table(Checkpoint((), {}), wide=True)) == nothing


def test_what_would_act_on_a_terminal_is_shown_instead() -> None:
    lines = "\n".join(table(Checkpoint((entry(b"", {0: ("a\x1b[2J",)}),), {"r\x1b": ("\n",)}), wide=False))
    assert "\x1b" not in lines
    assert "^[" in lines


def test_a_document_has_everything_and_keeps_null_and_empty_apart() -> None:
    found = document(Checkpoint((entry(grants.encode(GRANT), {0: ("a",), 1: None}), entry(None)), {"r": None}, Form.V1))
    assert found == {
        "version": "v1",
        "entries": [
            {
                "podUID": "uid",
                "containerName": "main",
                "resourceName": "example.com/gpu",
                "deviceIDs": {"0": ["a"], "1": None},
                "response": {
                    "envs": {"A": "1", "B": "2"},
                    "mounts": [{"containerPath": "/usr/lib/x", "hostPath": "/opt/x", "readOnly": True}],
                    "devices": [{"containerPath": "/dev/x0", "hostPath": "/dev/x3", "permissions": "rw"}],
                    "annotations": {"example.com/a": "b"},
                    "cdiDevices": ["example.com/gpu=0"],
                },
            },
            {
                "podUID": "uid",
                "containerName": "main",
                "resourceName": "example.com/gpu",
                "deviceIDs": None,
                "response": None,
            },
        ],
        "registeredDevices": {"r": None},
    }
    assert document(Checkpoint(None, None)) == {"version": "v2", "entries": None, "registeredDevices": None}
    broken = document(Checkpoint((entry(b"\xff\xff"),), {}))["entries"][0]["response"]
    assert "cannot be decoded" in broken["error"]
