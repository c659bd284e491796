from pathlib import Path

from devlet.cli.cel_input import of_files
from devlet.cli.cel_lint import Linter, Located
from devlet.cli.cel_release import releases

OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: a100}, index: {int: 0}}}
  - {name: gpu-1, attributes: {index: {int: 1}}}
---
device: {driver: nic.example.com}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors:
  - cel: {expression: 'device.driver == "gpu.example.com"'}
  - cel: {expression: 'has(device.attributes["gpu.example.com"].model)'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one}
spec:
  devices:
    requests:
    - name: good
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model != "x"'}}]
    - name: elsewhere
      exactly:
        deviceClassName: lost
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model != "x"'}}]
    - name: broken
      exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.'}}, {cel: {expression: 'true'}}]}
"""


def located(tmp_path: Path) -> list[Located]:
    (tmp_path / "all.yaml").write_text(OBJECTS)
    (release,) = releases("", "", stored=False)
    linter = Linter(of_files([str(tmp_path / "all.yaml")], "default"), release)
    assert (linter.count, linter.devices) == (6, 3)
    return list(linter.findings())


def at(found: list[Located], request: str) -> list[tuple[str, str]]:
    return [(each.finding.rule, each.finding.message) for each in found if each.selector.request == request]


def test_a_selector_is_asked_about_the_devices_that_those_before_it_match(tmp_path: Path) -> None:
    found = located(tmp_path)
    assert at(found, "good") == [("always-true", "matches 1 device")]
    (unknown, failing) = at(found, "elsewhere")
    assert unknown == ("unknown-class", 'device class "lost" does not exist; its selectors are not taken into account')
    assert failing[1].startswith("fails on 2 of 3 devices: no such key: model")


def test_one_that_does_not_compile_is_passed_over_for_those_behind_it(tmp_path: Path) -> None:
    (error, note) = at(located(tmp_path), "broken")
    assert error[0] == "compile"
    assert note == ("always-true", "matches 1 device")


def test_a_finding_says_where_it_is(tmp_path: Path) -> None:
    (error,) = [each for each in located(tmp_path) if each.finding.rule == "compile"]
    place = "ResourceClaim default/one: spec.devices.requests[2].exactly.selectors[0]:1:8: error: Syntax error"
    assert error.line.startswith(f"{tmp_path / 'all.yaml'}, document 4: {place}")
    document = error.document()
    assert (document["line"], document["column"], document["severity"]) == (1, 8, "error")
    assert document["path"] == "spec.devices.requests[2].exactly.selectors[0]"
