"""That it keeps the contract is shown by tests/unit/sanity/checks/dra/test_sound_dra_driver.py."""

from pathlib import Path

from tests.support.mutants.sound_dra_driver import SoundDraDriver


def test_its_devices_are_as_many_as_the_file_says(tmp_path: Path) -> None:
    driver = SoundDraDriver(tmp_path, tmp_path / "cdi", tmp_path / "kubeconfig", "n1")
    assert len(driver.pools()["n1"].devices) == 11
    (tmp_path / "devices").write_text("2\n")
    assert [each.name for each in driver.pools()["n1"].devices] == ["led-0", "led-1", "shared-0"]
    assert len(driver.reports()) == 3


def test_instances_have_sockets_of_their_own(tmp_path: Path) -> None:
    paths = set()
    for instance in ("", "a", "b"):
        driver = SoundDraDriver(tmp_path, tmp_path / "cdi", tmp_path / "kubeconfig", "n1", instance)
        paths |= {driver.registry_path, driver.service_path}
    assert len(paths) == 6
