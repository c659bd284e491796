from devlet.alloc.explain.report import Change, Conflict, Explanation, NodeReport, RequestReport, Verdict, VerdictKind
from devlet.alloc.inventory import Holder
from devlet.cli.views.explanation_document import document
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.objects.types.claim import DeviceResult

DEVICE = DeviceIdentity(DriverName("d"), PoolName("p"), DeviceName("x"))


def test_an_explanation_is_complete_and_what_is_empty_is_left_out() -> None:
    verdict = Verdict(DEVICE, VerdictKind.IN_USE, "by claim ns/c", holders=(Holder("ns", "c", DeviceResult()),))
    request = RequestReport("ns/c", "gpu", "1 device", 1, (verdict,), elsewhere=2)
    node = NodeReport("n1", "no-fit", "text", (request,), Conflict(("request gpu",), "text", "cause"))
    found = document(Explanation(("ns/c",), False, "no", (node,), (("cause", 1),), (Change("do", 3, "n1"),)))
    assert found == {
        "fits": False,
        "summary": "no",
        "claims": ["ns/c"],
        "causes": [{"text": "cause", "nodes": 1}],
        "changes": [{"text": "do", "size": 3, "node": "n1"}],
        "nodes": [
            {
                "node": "n1",
                "outcome": "no-fit",
                "text": "text",
                "conflict": {"wishes": ["request gpu"], "text": "text"},
                "requests": [
                    {
                        "claim": "ns/c",
                        "name": "gpu",
                        "wanted": "1 device",
                        "number": 1,
                        "counts": {"in-use": 1, "other-node": 2},
                        "devices": [
                            {
                                "driver": "d",
                                "pool": "p",
                                "device": "x",
                                "verdict": "in-use",
                                "detail": "by claim ns/c",
                                "holders": [{"namespace": "ns", "claim": "c"}],
                            }
                        ],
                    }
                ],
            }
        ],
    }
