from devlet.cassettes import cassette
from devlet.cassettes.absent import absent_of_edits, absent_of_grant, present_edits, present_grant
from devlet.runtime.cdi.spec import ContainerEdits, DeviceNode, Hook, Mount, NetDevice

HERE = {"/dev/here", "/lib/here", "/bin/here", "/sys/class/net/eth0"}


def test_edits_keep_what_is_there_and_what_is_made() -> None:
    kept = ContainerEdits(
        env=("A=b",),
        device_nodes=(DeviceNode("/dev/in", "/dev/here"), DeviceNode("/dev/made", type="c", major=195, minor=3)),
        hooks=(Hook("createContainer", "/bin/here"),),
        mounts=(Mount("/lib/here", "/in"), Mount("tmpfs", "/run/x", type="tmpfs")),
        net_devices=(NetDevice("eth0", "net1"),),
    )
    lost = ContainerEdits(
        device_nodes=(DeviceNode("/dev/here", "/dev/gone"), DeviceNode("/dev/gone2")),
        hooks=(Hook("createContainer", "/bin/gone"),),
        mounts=(Mount("/lib/gone", "/in2"),),
        net_devices=(NetDevice("eth9", "net2"),),
    )
    assert present_edits(kept + lost, HERE.__contains__) == kept
    assert absent_of_edits(kept + lost, HERE.__contains__) == [
        "/bin/gone",
        "/dev/gone",
        "/dev/gone2",
        "/lib/gone",
        "eth9",
    ]
    assert absent_of_edits(kept, HERE.__contains__) == []


def test_grants_keep_what_is_there() -> None:
    grant = cassette.Grant(
        env={"A": "b"},
        devices=(cassette.DeviceNode("/dev/x", "/dev/here"), cassette.DeviceNode("/dev/y", "/dev/gone")),
        mounts=(cassette.Mount("/x", "/lib/here"), cassette.Mount("/y", "/lib/gone")),
    )
    left = present_grant(grant, HERE.__contains__)
    assert (left.devices, left.mounts, left.env) == (grant.devices[:1], grant.mounts[:1], {"A": "b"})
    assert absent_of_grant(grant, HERE.__contains__) == ["/dev/gone", "/lib/gone"]
