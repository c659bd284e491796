from devlet.serve.kube_api.health import Answer, Check, all_of, one

WELL = Check("ping")
SICK = Check("device-plugin", lambda: "device registration error: the socket is gone")


def test_the_answer_is_ok_if_all_checks_pass() -> None:
    assert all_of("healthz", [WELL], verbose=False) == Answer(200, "ok")


def test_a_verbose_answer_names_every_check() -> None:
    answer = all_of("livez", [WELL, Check("store")], verbose=True)
    assert answer == Answer(200, "[+]ping ok\n[+]store ok\nlivez check passed\n")


def test_a_failure_is_reported_without_its_reason() -> None:
    expected = Answer(500, "[+]ping ok\n[-]device-plugin failed: reason withheld\nhealthz check failed\n")
    assert all_of("healthz", [WELL, SICK], verbose=False) == expected
    assert all_of("healthz", [WELL, SICK], verbose=True) == expected


def test_a_single_check_reports_its_reason() -> None:
    assert one(WELL) == Answer(200, "ok")
    assert one(SICK) == Answer(500, "internal server error: device registration error: the socket is gone\n")


def test_a_check_can_be_excluded() -> None:
    assert all_of("readyz", [WELL, SICK], verbose=False, excluded=["device-plugin"]) == Answer(200, "ok")
    answer = all_of("readyz", [WELL, SICK], verbose=True, excluded=["device-plugin", "nosuch"])
    assert answer.text == (
        "[+]ping ok\n[+]device-plugin excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "nosuch"\nreadyz check passed\n'
    )
