from devlet.node.devices.container_options import ContainerOptions
from devlet.node.pods.container_config import config
from devlet.objects.edits import DeviceNode, Mount
from devlet.runtime.containers import Config


def test_a_container_without_devices_gets_nothing_besides_its_spec() -> None:
    assert config(None) is None
    assert config(ContainerOptions()) == Config()


def test_all_that_plugins_give_reaches_the_runtime() -> None:
    options = ContainerOptions(
        env=(("A", "1"),),
        mounts=(Mount("/in", "/out", True),),
        devices=(DeviceNode("/dev/in", "/dev/out", "rw"),),
        annotations=(("k", "v"),),
        cdi_devices=("vendor.com/gpu=0",),
    )
    assert config(options) == Config(
        env=(("A", "1"),),
        mounts=(Mount("/in", "/out", True),),
        devices=(DeviceNode("/dev/in", "/dev/out", "rw"),),
        annotations=(("k", "v"),),
        cdi_devices=("vendor.com/gpu=0",),
    )
