from devlet.cassettes.cassette import DeviceEdits, Driver
from devlet.cassettes.edits import Given, for_device, known, summarised
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode


def env(*texts: str) -> ContainerEdits:
    return ContainerEdits(env=texts)


def test_edits_that_explain_all_that_was_seen_are_kept_without_names() -> None:
    seen = [DeviceEdits(env("GPU=gpu-0"), "p", "gpu-0"), DeviceEdits(env("GPU=gpu-1"), "p", "gpu-1")]
    assert summarised(seen) == (DeviceEdits(env("GPU={device}")),)


def test_edits_that_differ_are_kept_as_they_were() -> None:
    seen = [DeviceEdits(env("GPU=one"), "p", "gpu-1"), DeviceEdits(env("GPU=zero"), "p", "gpu-0")]
    assert summarised(seen) == (seen[1], seen[0])


def test_a_node_that_was_seen_once_and_does_not_name_its_device_is_not_given_to_others() -> None:
    seen = DeviceEdits(ContainerEdits(device_nodes=(DeviceNode("/dev/nvidia0"),)), "p", "gpu-0")
    assert summarised([seen]) == (seen,)
    driver = Driver("d", prepared=(seen,))
    assert for_device(driver, Given("p", "gpu-0", "u")) == seen.container_edits
    assert for_device(driver, Given("p", "gpu-1", "u")) == env("DEVICE_GPU_1=gpu-1")


def test_placeholders_are_filled_when_a_claim_is_prepared() -> None:
    driver = Driver("d", prepared=(DeviceEdits(env("A={device}/{pool}/{claim.uid}")),))
    assert for_device(driver, Given("p", "x", "uid-1")) == env("A=x/p/uid-1")


def test_an_entry_of_its_own_goes_first() -> None:
    driver = Driver("d", prepared=(DeviceEdits(env("A=any")), DeviceEdits(env("A=own"), "p", "x")))
    assert known(driver, "p", "x") == env("A=own")
    assert known(driver, "p", "y") == env("A=any")
    assert known(Driver("d"), "p", "x") is None


def test_a_variable_may_be_named_after_its_device() -> None:
    seen = [DeviceEdits(env(f"GPU_{i}=gpu-{i}"), "p", f"gpu-{i}") for i in (0, 1)]
    assert summarised(seen) == (DeviceEdits(env("{DEVICE}={device}")),)
    assert for_device(Driver("d", prepared=summarised(seen)), Given("p", "mig-1g.5gb", "u")) == env(
        "MIG_1G_5GB=mig-1g.5gb"
    )
