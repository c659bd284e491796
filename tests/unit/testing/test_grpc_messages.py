from devlet.testing import grpc_messages
from devlet.testing.grpc_messages import GET_INFO, METHODS, REGISTER
from devlet.wire.deviceplugin_v1beta1 import api_pb2 as plugin
from devlet.wire.pluginregistration import api_pb2 as registration


def test_requests_and_answers_have_their_types() -> None:
    request = plugin.RegisterRequest(resource_name="vendor.com/gpu").SerializeToString()
    assert grpc_messages.request(REGISTER, request).resource_name == "vendor.com/gpu"
    answer = registration.PluginInfo(endpoint="/x").SerializeToString()
    assert grpc_messages.answer(GET_INFO, answer).endpoint == "/x"


def test_other_methods_and_other_bytes_mean_nothing() -> None:
    assert grpc_messages.request("/other.Service/Method", b"") is None
    assert grpc_messages.answer(GET_INFO, b"\xff\xff") is None


def test_every_method_that_a_node_calls_is_known() -> None:
    last = {path.rpartition("/")[2] for path in METHODS}
    assert last == {
        "Allocate",
        "GetDevicePluginOptions",
        "GetInfo",
        "GetPreferredAllocation",
        "ListAndWatch",
        "NodePrepareResources",
        "NodeUnprepareResources",
        "NodeWatchResources",
        "NotifyRegistrationStatus",
        "PreStartContainer",
        "Register",
    }
    assert {path.rpartition("/")[0] for path in METHODS if path.endswith("PrepareResources")} == {
        "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
        "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
    }
