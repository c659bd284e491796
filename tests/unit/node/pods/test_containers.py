import pytest

from devlet.node.devices.container_options import ContainerOptions
from devlet.node.pods.containers import config
from devlet.objects.types.edits import DeviceNode, Mount
from devlet.runtime.containers import Config


def test_nothing_is_added_to_a_container_without_devices() -> None:
    assert config(None) is None
    assert config(ContainerOptions()) == Config()


def test_everything_that_plugins_return_reaches_the_runtime() -> None:
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


@pytest.mark.spec("DN-7.1.1")
def test_cdi_devices_of_claims_come_before_those_of_plugins_and_each_comes_once() -> None:
    options = ContainerOptions(env=(("A", "1"),), cdi_devices=("v/c=2", "v/c=0", "v/c=3"))
    found = config(options, ["v/c=1", "v/c=0", "v/c=1"])
    assert found == Config(env=(("A", "1"),), cdi_devices=("v/c=1", "v/c=0", "v/c=2", "v/c=3"))


def test_a_container_that_has_only_claims_gets_their_cdi_devices() -> None:
    assert config(None, ("v/c=1", "v/c=1", "v/c=0")) == Config(cdi_devices=("v/c=1", "v/c=0"))
