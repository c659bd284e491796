from devlet.cli.views.claim_checkpoint import document, table
from devlet.state.claim_entry import Checkpoint, ClaimEntry, Form, PreparedDevice

GPU = PreparedDevice("pool", "gpu-0", "share", ("main", "side"), ("example.com/gpu=0", "example.com/gpu=1"))
NIC = PreparedDevice("", "nic-0", None, None, ())
FULL = ClaimEntry(
    "uid", "claim", "ns", frozenset({"pod-b", "pod-a"}), {"nic.io": (NIC,), "gpu.io": (GPU,), "x.io": None}
)
BARE = ClaimEntry("", "bare", "ns", None, None)


def cells(*claims: ClaimEntry, wide: bool = False) -> list[list[str]]:
    """No cell here has two spaces side by side."""
    return [
        [cell.strip() for cell in line.split("   ") if cell.strip()] for line in table(Checkpoint(claims), wide=wide)
    ]


def test_each_device_has_a_row() -> None:
    assert cells(FULL) == [
        ["NAMESPACE", "CLAIM", "DRIVER", "POOL", "DEVICE", "REQUESTS", "POD UIDS"],
        ["ns", "claim", "gpu.io", "pool", "gpu-0", "main,side", "pod-a,pod-b"],
        ["ns", "claim", "nic.io", "<none>", "nic-0", "<none>", "pod-a,pod-b"],
        ["ns", "claim", "x.io", "<none>", "<none>", "<none>", "pod-a,pod-b"],
    ]


def test_a_claim_without_drivers_has_a_row() -> None:
    assert cells(BARE)[1] == ["ns", "bare", *["<none>"] * 5]


def test_wide_has_what_a_container_gets() -> None:
    header, gpu, nic, _ = cells(FULL, wide=True)
    assert header[7:] == ["CLAIM UID", "SHARE ID", "CDI DEVICES"]
    assert gpu[7:] == ["uid", "share", "example.com/gpu=0,example.com/gpu=1"]
    assert nic[7:] == ["uid", "<none>", "<none>"]


def test_a_file_with_nothing_in_it_says_so() -> None:
    assert [list(table(Checkpoint(claims), wide=False)) for claims in (None, ())] == [["No claims are prepared."]] * 2


def test_what_would_act_on_a_terminal_is_shown_instead() -> None:
    lines = "\n".join(table(Checkpoint((ClaimEntry("u", "a\x1b[2J\nb", "n", None, None),)), wide=False))
    assert "\x1b" not in lines
    assert "^[" in lines
    assert len(lines.splitlines()) == 2


def test_a_document_has_everything_and_keeps_null_and_empty_apart() -> None:
    assert document(Checkpoint((FULL, BARE), Form.V1_28)) == {
        "version": "1.28",
        "claims": [
            {
                "uid": "uid",
                "name": "claim",
                "namespace": "ns",
                "podUIDs": ["pod-a", "pod-b"],
                "drivers": {
                    "gpu.io": [
                        {
                            "poolName": "pool",
                            "deviceName": "gpu-0",
                            "shareID": "share",
                            "requestNames": ["main", "side"],
                            "cdiDeviceIDs": ["example.com/gpu=0", "example.com/gpu=1"],
                        }
                    ],
                    "nic.io": [
                        {
                            "poolName": "",
                            "deviceName": "nic-0",
                            "shareID": None,
                            "requestNames": None,
                            "cdiDeviceIDs": [],
                        }
                    ],
                    "x.io": None,
                },
            },
            {"uid": "", "name": "bare", "namespace": "ns", "podUIDs": None, "drivers": None},
        ],
    }
    assert document(Checkpoint(None)) == {"version": "1.31", "claims": None}
