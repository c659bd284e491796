from devlet.objects.types.claim import PreparedDevice


def test_none_and_empty_are_different() -> None:
    assert PreparedDevice("p", "d") != PreparedDevice("p", "d", requests=())
    assert PreparedDevice("p", "d").cdi_devices is None
