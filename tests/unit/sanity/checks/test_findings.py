"""For each check it is known what it says of its bug."""

from pathlib import Path

import yaml

from devlet.sanity.checks import device_plugin, dra

FINDINGS = yaml.safe_load((Path(__file__).parent / "findings.yaml").read_text())


def test_there_is_a_finding_for_every_check_and_no_other() -> None:
    ids = {check.id for check in device_plugin.ALL} | {check.id for check in dra.ALL}
    assert set(FINDINGS) == ids
