from dataclasses import FrozenInstanceError, fields

import pytest

from devlet.cluster.store.settings import Settings


def test_the_defaults_keep_what_an_api_server_promises() -> None:
    settings = Settings()
    assert settings.history_age >= 300 or settings.history_events >= 1_000
    assert settings.version_wait == 3.0
    assert settings.collect_garbage


def test_every_number_is_positive() -> None:
    numbers = [getattr(Settings(), field.name) for field in fields(Settings)]
    assert all(number > 0 for number in numbers)


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().history_age = 1  # type: ignore[misc]
