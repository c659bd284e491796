import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devlet.daemon.config import KEYS, Config, load
from devlet.daemon.controllers import CONTROL, NAMES
from devlet.errors import DevletError, InvalidInput

HEADER = "apiVersion: devlet.dev/v1alpha1\nkind: Configuration\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def test_the_later_source_wins(file: Path) -> None:
    file.write_text(HEADER + "root: /file\nnodeName: file\nlogFormat: json\n")
    config = load({"root": "/flag", "node_name": None}, {"NODE_NAME": "variable", "DEVLET_ROOT": "/variable"}, file)
    assert (config.root, config.node_name, config.log_format) == (Path("/flag"), "variable", "json")


def test_without_any_source_there_are_defaults() -> None:
    config = load({}, {"XDG_STATE_HOME": "/s", "HOME": "/h"})
    root = Path("/var/lib/devlet") if os.geteuid() == 0 else Path("/s/devlet")
    assert config == Config(root, config.node_name)
    assert config.node_name


def test_the_file_can_be_named_by_a_variable_and_a_flag_wins(file: Path, tmp_path: Path) -> None:
    file.write_text(HEADER + "verbosity: 1\n")
    environ = {"DEVLET_CONFIG": str(file)}
    assert load({}, environ).verbosity == 1
    other = tmp_path / "other.yaml"
    other.write_text(HEADER + "verbosity: 2\n")
    assert load({}, environ, other).verbosity == 2


def test_timeouts_reach_the_daemon_and_the_store(file: Path) -> None:
    file.write_text(HEADER + "timeouts:\n  stop: 5\n  historyAge: 1m30s\n  compactEvery: 500ms\n")
    config = load({}, {}, file)
    assert (config.stop_timeout, config.store.history_age, config.store.compact_every) == (5, 90, 0.5)
    assert config.store.version_wait == 3.0


def test_how_long_and_how_many_events_are_kept_can_be_set(file: Path) -> None:
    default = load({}, {}).store
    assert (default.event_ttl, default.max_events) == (3_600, 20_000)
    file.write_text(HEADER + "maxEvents: 500\ntimeouts:\n  eventTTL: 10m\n")
    store = load({}, {}, file).store
    assert (store.event_ttl, store.max_events) == (600, 500)


def test_what_the_node_is_told_comes_from_all_sources(file: Path) -> None:
    file.write_text(
        HEADER
        + "topologyPolicy: restricted\ntopologyOptions:\n  maxAllowableNUMANodes: 16\n  preferClosestNUMANodes: true\n"
        + "releaseHooks:\n- {resource: '*', command: [/bin/sh]}\ntimeouts:\n  pluginGrace: 1m\n"
    )
    node = load({"numa_nodes": "4"}, {"DEVLET_TOPOLOGY_SCOPE": "pod"}, file).node
    assert (node.topology_policy, node.topology_scope, node.numa_nodes) == ("restricted", "pod", 4)
    assert node.topology_options == {"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "16"}
    assert (node.release_hooks, node.plugin_grace, node.plugin_dial) == (
        ({"resource": "*", "command": ["/bin/sh"]},),
        60,
        10,
    )


def test_one_topology_option_leaves_the_other_as_it_is(file: Path) -> None:
    file.write_text(HEADER + "topologyOptions:\n  preferClosestNUMANodes: true\n")
    options = load({}, {}, file).node.topology_options
    assert options == {"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "8"}


@pytest.mark.spec("DN-11.28")
def test_the_times_of_dra_can_be_set(file: Path) -> None:
    default = load({"root": "/r"}, {}).node
    names = ("dra_call", "prepare_retry", "slice_wipe_delay", "claim_reconcile", "health_retry", "health_validity")
    assert [getattr(default, name) for name in names] == [45, 1, 30, 60, 5, 30]
    file.write_text(
        HEADER + "timeouts: {draCall: 1s, prepareRetry: 6s, sliceWipeDelay: 2s, "
        "claimReconcile: 3s, healthRetry: 4s, healthValidity: 5s}"
    )
    node = load({}, {}, file).node
    assert [getattr(node, name) for name in names] == [1, 6, 2, 3, 4, 5]


def test_old_drivers_are_named_with_their_api(file: Path) -> None:
    assert load({"root": "/r"}, {}).node.legacy_drivers == {}
    file.write_text(HEADER + "legacyDrivers:\n  gpu.example.com: v1alpha3\n  nic.example.com: v1alpha4\n")
    drivers = load({"root": "/r"}, {}, file).node.legacy_drivers
    assert drivers == {"gpu.example.com": "v1alpha3", "nic.example.com": "v1alpha4"}


def test_cdi_specs_are_below_the_root_unless_said(file: Path) -> None:
    assert load({"root": "/r"}, {}).cdi_root is None
    file.write_text(HEADER + "cdiRoot: /file\n")
    assert load({}, {}, file).cdi_root == Path("/file")
    assert load({}, {"DEVLET_CDI_ROOT": "/variable"}, file).cdi_root == Path("/variable")
    assert load({"cdi_root": "/flag"}, {"DEVLET_CDI_ROOT": "/variable"}, file).cdi_root == Path("/flag")


def test_feature_gates_come_from_all_sources_together_and_the_later_one_wins(file: Path) -> None:
    file.write_text(
        HEADER + "featureGates:\n  DRAExtendedResource: false\n  ResourceHealthStatus: false\n"
        "  ResourceHealthStatusMessage: false\n"
    )
    environ = {"DEVLET_FEATURE_GATES": "ResourceHealthStatus=true"}
    assert load({"feature_gates": "DRAExtendedResource=true"}, environ, file).node.feature_gates == {
        "DRAExtendedResource": True,
        "DRAWorkloadResourceClaims": False,
        "ResourceHealthStatus": True,
        "ResourceHealthStatusMessage": False,
    }


def test_a_relative_root_becomes_absolute() -> None:
    assert load({"root": "here/../there"}, {}).root == Path.cwd() / "there"


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load({"root": "/r"}, {"DEVLET_LOG_FORMAT": "", "DEVLET_CONFIG": ""}).log_format == "text"


def test_no_control_takes_the_control_loops_from_the_controllers(file: Path) -> None:
    file.write_text(HEADER + "noControl: true\n")
    assert load({}, {}, file).controllers == set(NAMES) - set(CONTROL)
    assert load({"controllers": "scheduler,namespace", "no_control": True}, {}).controllers == {"namespace"}
    assert "scheduler" in load({"no_control": None}, {"DEVLET_NO_CONTROL": "false"}).controllers


def test_a_kubeconfig_makes_it_a_node_of_another_cluster(file: Path) -> None:
    file.write_text(HEADER + "kubeconfig: /etc/k\ncontext: lab\n")
    config = load({"no_control": True}, {}, file)
    assert (config.kubeconfig, config.context) == (Path("/etc/k"), "lab")
    assert load({}, {}).kubeconfig is None


@pytest.mark.parametrize(
    ("flags", "environ", "text", "message"),
    [
        ({"log_format": "xml"}, {}, "", "--log-format: 'xml' is not a log format: expected text or json"),
        ({}, {"DEVLET_VERBOSITY": "lots"}, "", "DEVLET_VERBOSITY: 'lots' is not a verbosity"),
        ({}, {"NODE_NAME": "Node_1"}, "", "NODE_NAME: 'Node_1' is not a node name"),
        ({}, {}, "verbosity: true", "config.yaml:3: verbosity: True is not a verbosity"),
        ({}, {}, "verbosity: 11", "config.yaml:3: verbosity: 11 is not a verbosity"),
        ({}, {}, "timeouts:\n  stop: 1 day", 'config.yaml:4: timeouts.stop: "1 day" is not a duration'),
        ({}, {}, "timeouts:\n  stop: 0", "config.yaml:4: timeouts.stop: 0 is too short"),
        ({}, {}, "timeouts:\n  stop: .inf", "config.yaml:4: timeouts.stop:"),
        ({}, {}, "root: 7", "config.yaml:3: root: 7 is not a path"),
        ({"numa_nodes": "x"}, {}, "", "--numa-nodes: 'x' is not a number of NUMA nodes"),
        ({}, {}, "maxPods: 0", "config.yaml:3: maxPods: 0 is not a number of pods: expected a whole number from 1"),
        ({"topology_policy": "strict"}, {}, "", "--topology-policy: 'strict' is not a topology policy: expected none,"),
        (
            {},
            {},
            "topologyOptions:\n  maxAllowableNUMANodes: 4",
            "config.yaml:4: topologyOptions.maxAllowableNUMANodes",
        ),
        (
            {},
            {},
            "releaseHooks:\n- {resource: a.b/c}",
            "config.yaml:4: releaseHooks[0]: needs either command or python",
        ),
        (
            {},
            {},
            "releaseHooks:\n- {resource: a.b/c, command: [/bin/sh]}\n- {resource: a.b/c, command: [wipe]}",
            "config.yaml:5: releaseHooks[1].command: must begin with the absolute path of a program",
        ),
        ({}, {}, "releaseHooks:\n- command: [/bin/sh]", "config.yaml:4: releaseHooks: Object missing required field"),
        ({"feature_gates": "x"}, {}, "", "--feature-gates: 'x': expected NAME=true or NAME=false"),
        (
            {},
            {"DEVLET_FEATURE_GATES": "DRAExtendedResources=true"},
            "",
            "DEVLET_FEATURE_GATES: unknown feature gate 'DRAExtendedResources': did you mean DRAExtendedResource?",
        ),
        (
            {},
            {},
            "featureGates:\n  DRAExtendedResource: true\n  Nonsense: true",
            "config.yaml:5: featureGates: unknown feature gate 'Nonsense': devlet knows DRAExtendedResource, ",
        ),
        ({}, {}, "featureGates:\n  ResourceHealthStatus: 1", "config.yaml:4: featureGates: ResourceHealthStatus: '1':"),
        ({}, {}, "featureGates: A=true", "config.yaml:3: featureGates must be a mapping of keys"),
        (
            {},
            {},
            "legacyDrivers:\n  gpu.example.com: v1",
            "config.yaml:4: legacyDrivers.gpu.example.com: 'v1' is not a DRA API version of old drivers",
        ),
        (
            {},
            {},
            "legacyDrivers:\n  a/b: v1alpha3",
            "config.yaml:4: legacyDrivers: 'a/b' is not the name of a DRA driver",
        ),
        ({"cdi_root": ""}, {}, "", "--cdi-root: '' is not a path"),
        ({"context": "lab"}, {}, "", "--context: a context needs a kubeconfig: give one with --kubeconfig"),
        ({}, {"DEVLET_NO_CONTROL": "maybe"}, "", "DEVLET_NO_CONTROL: 'maybe': expected true or false"),
        (
            {"kubeconfig": "k"},
            {},
            "apiAddress: 127.0.0.1",
            "config.yaml:3: apiAddress: applies only to the embedded cluster and cannot be combined with --kubeconfig",
        ),
        ({}, {}, "nodeName: no", "config.yaml:3: nodeName: False is not a node name"),
    ],
)
def test_a_bad_value_is_reported_with_its_source(
    file: Path, flags: dict[str, str], environ: dict[str, str], text: str, message: str
) -> None:
    file.write_text(HEADER + text)
    with pytest.raises(InvalidInput) as caught:
        load({"root": "/r", **flags}, environ, file)
    assert message in str(caught.value)


@given(st.dictionaries(st.sampled_from([key.variable for key in KEYS if key.variable]), st.text(max_size=40)))
def test_any_environment_loads_or_is_refused_with_a_text(environ: dict[str, str]) -> None:
    try:
        config = load({}, environ)
        assert config.root.is_absolute()
    except DevletError as e:
        assert str(e).startswith(tuple(environ))


def test_limits_are_numbers_and_quantities(file: Path) -> None:
    file.write_text(HEADER + "limits:\n  watchesPerUser: 7\n  unreadBytes: 1Gi\n  recentChangesBytes: 16777216\n")
    config = load({}, {}, file)
    assert (config.limits.watches_per_user, config.limits.unread_bytes) == (7, 1 << 30)
    assert config.store.watch_bytes == 16 << 20


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *((f"watchesPerUser: {value}", "is not a limit") for value in ("0", "-1", "many", "1.5", "true")),
        *((f"unreadBytes: {value}", "is not a number of bytes") for value in ("1", "7Mi", "lots", "-1Gi", "true")),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(file: Path, line: str, reason: str) -> None:
    file.write_text(f"{HEADER}limits:\n  {line}\n")
    with pytest.raises(InvalidInput, match=reason):
        load({}, {}, file)
