from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from devlet.node.claims import health
from devlet.node.claims.health import Health, HealthCache, Source, truncated
from devlet.objects.identifiers import DeviceIdentity, DeviceName, DriverName, PoolName
from devlet.plugins.dra import DeviceReport
from devlet.state.health_file import DeviceHealth

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
OLD = Source(DriverName("gpu.example.com"), 1)
NEW = Source(DriverName("gpu.example.com"), 2)
OTHER = Source(DriverName("nic.example.com"), 3)
HEALTHY, UNHEALTHY, UNKNOWN = Health("Healthy"), Health("Unhealthy"), Health("Unknown")


def device(name: str, *, driver: str = "gpu.example.com", pool: str = "pool") -> DeviceIdentity:
    return DeviceIdentity(DriverName(driver), PoolName(pool), DeviceName(name))


A, B = device("a"), device("b")


def says(name: str, status: str = "Healthy", timeout: float = 0.0, message: str = "") -> DeviceReport:
    return DeviceReport("pool", name, status, timeout, message)


@pytest.fixture
def cache() -> HealthCache:
    return HealthCache()


@pytest.mark.spec("DN-10.H01")
def test_a_device_that_is_reported_for_the_first_time_has_changed(cache: HealthCache) -> None:
    assert cache.report(OLD, [says("a"), says("b", "Unknown")], 0.0) == {A, B}
    assert cache.health(A, 0.0) == HEALTHY


@pytest.mark.spec("DN-10.H02")
def test_the_same_report_changes_nothing(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", "Unhealthy", 5, "hot")], 0.0)
    assert cache.report(OLD, [says("a", "Unhealthy", 5, "hot")], 4.0) == set()
    assert cache.health(A, 8.0) == Health("Unhealthy", "hot")  # though it holds for longer now


@pytest.mark.spec("DN-10.H03")
@pytest.mark.parametrize(
    "report", [says("a", "Unhealthy", 5, "warm"), says("a", "Healthy", 5, "hot"), says("a", "Healthy", 6, "warm")]
)
def test_another_status_message_or_validity_is_a_change(cache: HealthCache, report: DeviceReport) -> None:
    cache.report(OLD, [says("a", "Healthy", 5, "warm"), says("b")], 0.0)
    assert cache.report(OLD, [report, says("b")], 1.0) == {A}
    assert cache.health(A, 1.0) == Health(report.health, report.message)


@pytest.mark.spec("DN-10.H04")
def test_a_device_that_is_left_out_becomes_unknown_after_its_timeout(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", timeout=10), says("b", timeout=10)], 0.0)
    assert cache.report(OLD, [says("b", timeout=10)], 9.0) == set()
    assert cache.health(A, 9.0) == HEALTHY
    assert cache.report(OLD, [says("b", timeout=10)], 11.0) == {A}
    assert cache.health(A, 11.0) == UNKNOWN
    assert cache.health(B, 11.0) == HEALTHY


@pytest.mark.spec("DN-10.H05")
def test_saved_health_is_valid_until_its_timeout_after_a_restart(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", "Unhealthy", 60, "hot")], 100.0)
    saved = cache.saved(110.0, NOON)
    assert saved == {
        "gpu.example.com": (DeviceHealth("pool", "a", "Unhealthy", NOON - timedelta(seconds=10), 60.0, "hot"),)
    }
    later = HealthCache()
    later.restore(saved, 3.0, NOON + timedelta(seconds=20))
    assert later.health(A, 3.0) == Health("Unhealthy", "hot")
    assert later.next_expiry == 33.0
    assert later.expire(33.0) == {A}
    assert later.health(A, 33.0) == UNKNOWN


def test_a_future_time_in_the_file_counts_as_the_present(cache: HealthCache) -> None:
    tomorrow = NOON + timedelta(days=1)
    cache.restore({"gpu.example.com": [DeviceHealth("pool", "a", "Healthy", tomorrow, 30.0)]}, 0.0, NOON)
    assert (cache.health(A, 29.0), cache.health(A, 30.0)) == (HEALTHY, UNKNOWN)


def test_expired_health_in_the_file_is_ignored(cache: HealthCache) -> None:
    yesterday, never = NOON - timedelta(days=1), datetime(1, 1, 1, tzinfo=UTC)
    old = [DeviceHealth("pool", "a", "Healthy", yesterday, 30.0), DeviceHealth("pool", "b", "Healthy", never)]
    cache.restore({"gpu.example.com": old}, 0.0, NOON)
    assert (cache.health(A, 0.0), cache.next_expiry, cache.saved(0.0, NOON)) == (UNKNOWN, None, {})


def test_a_report_replaces_the_saved_health_and_the_end_of_the_stream_drops_both(cache: HealthCache) -> None:
    saved = [DeviceHealth("pool", name, "Unhealthy", NOON, 60.0) for name in "ab"]
    cache.restore({"gpu.example.com": saved}, 0.0, NOON)
    assert cache.report(OLD, [says("a", timeout=60)], 1.0) == {A}
    assert (cache.health(A, 1.0), cache.health(B, 1.0)) == (HEALTHY, UNHEALTHY)
    assert cache.end(OLD, 2.0) == {A, B}


@pytest.mark.spec("DN-10.H06")
def test_the_end_of_a_stream_makes_its_devices_unknown(cache: HealthCache) -> None:
    cache.report(OLD, [says("a"), says("b", "Unhealthy", message="hot")], 0.0)
    cache.report(OTHER, [says("a")], 0.0)
    assert cache.end(OLD, 1.0) == {A, B}
    assert [cache.health(each, 1.0) for each in (A, B)] == [UNKNOWN, UNKNOWN]
    assert cache.health(device("a", driver="nic.example.com"), 1.0) == HEALTHY
    assert cache.end(OLD, 1.0) == set()
    assert cache.end(Source(DriverName("new.example.com"), 9), 1.0) == set()


@pytest.mark.spec("DN-10.H07")
@pytest.mark.parametrize("timeout", [10.0, 30.0])
def test_a_report_is_valid_until_its_timeout(cache: HealthCache, timeout: float) -> None:
    cache.report(OLD, [says("a", timeout=timeout, message="fine")], 100.0)
    assert cache.health(A, 100.0 + timeout - 1) == Health("Healthy", "fine")
    assert cache.health(A, 100.0 + timeout + 1) == UNKNOWN


@pytest.mark.spec("DN-10.H08")
def test_a_device_without_a_report_is_unknown(cache: HealthCache) -> None:
    cache.report(OLD, [says("a")], 0.0)
    for unknown in (device("a", driver="x"), device("a", pool="x"), device("x")):
        assert cache.health(unknown, 0.0) == UNKNOWN


@pytest.mark.spec("DN-10.H09")
@pytest.mark.parametrize("timeout", [0.0, -1.0, float("-inf"), float("nan")])
def test_the_default_timeout_replaces_an_invalid_one(timeout: float) -> None:
    for cache, default in ((HealthCache(), 30.0), (HealthCache(7.0), 7.0)):
        cache.report(OLD, [says("a", timeout=timeout)], 0.0)
        assert cache.next_expiry == default


def test_an_infinite_timeout_is_limited(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", timeout=float(1 << 63))], 0.0)
    assert cache.next_expiry == health.MAX_TIMEOUT
    assert cache.saved(0.0, NOON)["gpu.example.com"][0].timeout * 10**9 < 1 << 63


@pytest.mark.spec("DN-10.H10")
@pytest.mark.spec("DN-8.2")
def test_a_long_message_is_cut(cache: HealthCache) -> None:
    for message in ("", "x" * 1024, "€" * 341):
        assert truncated(message) == message
    for length in (1025, 5000):
        assert truncated("x" * length) == "x" * 1021 + "..."
    cache.report(OLD, [says("a", message="x" * 1025)], 0.0)
    assert cache.health(A, 0.0).message == "x" * 1021 + "..."


@pytest.mark.spec("DN-11.19")
@given(st.text(max_size=20), st.text(min_size=1, max_size=4))
def test_a_message_is_cut_between_characters(start: str, rest: str) -> None:
    message = start + rest * 1024
    found = truncated(message)
    if found != message:
        assert found.endswith("...") and message.startswith(found.removesuffix("..."))
        assert 1024 - 3 <= len(found.encode("utf-8", "replace")) <= 1024


@pytest.mark.spec("DN-8.2")
def test_an_unknown_status_is_reported_as_unknown(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", "Splendid", message="so it is")], 0.0)
    assert cache.health(A, 0.0) == Health("Unknown", "so it is")


@pytest.mark.spec("DN-8.3")
def test_devices_without_names_are_left_out(cache: HealthCache) -> None:
    assert cache.report(OLD, [DeviceReport("", "a", "Healthy"), DeviceReport("pool", "", "Healthy")], 0.0) == set()
    cache.restore({"gpu.example.com": [DeviceHealth("", "a", "Healthy", NOON)]}, 0.0, NOON)
    assert cache.saved(0.0, NOON) == {}


@pytest.mark.spec("DN-11.07")
def test_the_end_of_the_old_instance_keeps_the_reports_of_the_new_one(cache: HealthCache) -> None:
    cache.report(OLD, [says("a"), says("b")], 0.0)
    assert cache.report(NEW, [says("a")], 1.0) == set()
    assert cache.end(OLD, 2.0) == {B}
    assert (cache.health(A, 2.0), cache.health(B, 2.0)) == (HEALTHY, UNKNOWN)


@pytest.mark.spec("DN-11.07")
def test_the_end_of_the_new_instance_keeps_the_reports_of_the_old_one(cache: HealthCache) -> None:
    cache.report(OLD, [says("a")], 0.0)
    assert cache.report(NEW, [says("a", "Unhealthy")], 1.0) == {A}
    assert cache.end(NEW, 2.0) == {A}
    assert cache.health(A, 2.0) == HEALTHY


@pytest.mark.spec("DN-11.07")
def test_if_two_instances_disagree_the_latest_change_counts_and_not_the_latest_report(
    cache: HealthCache,
) -> None:
    cache.report(OLD, [says("a")], 0.0)
    assert cache.report(NEW, [says("a", "Unhealthy")], 1.0) == {A}
    assert cache.report(OLD, [says("a")], 2.0) == set()
    assert cache.health(A, 2.0) == UNHEALTHY
    assert cache.report(OLD, [says("a", message="fine")], 3.0) == {A}
    assert cache.health(A, 3.0) == Health("Healthy", "fine")


def test_if_two_instances_report_at_the_same_time_the_newer_one_counts(cache: HealthCache) -> None:
    cache.report(NEW, [says("a", "Unhealthy")], 0.0)
    cache.report(OLD, [says("a")], 0.0)
    assert cache.health(A, 0.0) == UNHEALTHY
    assert cache.saved(0.0, NOON)["gpu.example.com"][0].health == "Unhealthy"


@pytest.mark.spec("DN-11.07")
def test_if_the_reports_of_one_instance_expire_the_other_counts(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", timeout=60)], 0.0)
    cache.report(NEW, [says("a", "Unhealthy", 10)], 1.0)
    assert cache.next_expiry == 11.0
    assert cache.health(A, 12.0) == HEALTHY
    assert cache.expire(12.0) == {A}
    assert cache.next_expiry == 60.0


def test_nothing_expires_without_reports(cache: HealthCache) -> None:
    assert (cache.next_expiry, cache.expire(1e9)) == (None, frozenset())


def test_the_next_expiry_is_the_earliest_and_passes(cache: HealthCache) -> None:
    cache.report(OLD, [says("a", timeout=20), says("b", timeout=10)], 0.0)
    cache.report(OTHER, [says("a", timeout=15)], 0.0)
    assert cache.next_expiry == 10.0
    assert cache.expire(9.9) == set()
    assert cache.expire(10.0) == {B}
    assert cache.expire(100.0) == {A, device("a", driver="nic.example.com")}
    assert cache.next_expiry is None


def test_a_device_that_is_reported_again_after_its_timeout_has_changed(cache: HealthCache) -> None:
    cache.report(OLD, [says("a")], 0.0)
    assert cache.expire(30.0) == {A}
    assert cache.report(OLD, [says("a")], 31.0) == {A}


def test_an_instance_that_keeps_inventing_devices_does_not_fill_the_memory(
    cache: HealthCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "MAX_DEVICES", 3)
    cache.report(OLD, [says("a", timeout=1e9), says("b", timeout=1e9)], 0.0)
    assert cache.report(OLD, [says("c"), says("d")], 1.0) == {A, B, device("c"), device("d")}
    assert cache.health(A, 1.0) == UNKNOWN


class Streams(RuleBasedStateMachine):
    """Whatever is reported, ends and expires: the health comes from a valid report of a live stream, and a reader who
    follows the changes knows it."""

    sources = st.sampled_from([Source(DriverName(driver), n) for driver, n in (("x", 1), ("x", 2), ("y", 3))])
    reports = st.lists(
        st.builds(
            DeviceReport,
            pool=st.sampled_from(["p", "q", ""]),
            device=st.sampled_from("ab"),
            health=st.sampled_from(["Healthy", "Unhealthy", "Unknown", "Odd"]),
            timeout=st.sampled_from([-1.0, 0.0, 1.0, 5.0]),
            message=st.sampled_from(["", "m"]),
        ),
        max_size=4,
    )
    everything = tuple(device(name, driver=d, pool=p) for d in "xy" for p in "pq" for name in "ab")

    def __init__(self) -> None:
        super().__init__()
        self.cache = HealthCache(3.0)
        self.now = 0.0
        self.said: list[tuple[Source, DeviceIdentity, Health, float, float]] = []  # with when, and until when
        self.told: dict[DeviceIdentity, Health] = {}

    def tell(self, changed: frozenset[DeviceIdentity]) -> None:
        self.told |= {each: self.cache.health(each, self.now) for each in changed}

    @rule(source=sources, reports=reports)
    def report(self, source: Source, reports: list[DeviceReport]) -> None:
        for each in reports:
            until = self.now + (each.timeout if each.timeout > 0 else 3.0)
            status = each.health if each.health in ("Healthy", "Unhealthy") else "Unknown"
            found = device(each.device, driver=source.driver, pool=each.pool)
            self.said.append((source, found, Health(status, each.message), self.now, until))
        self.tell(self.cache.report(source, reports, self.now))

    @rule(source=sources)
    def end(self, source: Source) -> None:
        self.said = [each for each in self.said if each[0] != source]
        self.tell(self.cache.end(source, self.now))

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0]))
    def pass_time(self, seconds: float) -> None:
        """Expire reports with one timer, as the follower does."""
        target = self.now + seconds
        while (due := self.cache.next_expiry) is not None and due <= target:
            self.now = due
            self.tell(self.cache.expire(due))
        self.now = target

    @rule()
    def restart(self) -> None:
        saved = self.cache.saved(self.now, NOON)
        before = {each: self.cache.health(each, self.now) for each in self.everything}
        read = HealthCache(3.0)
        read.restore(saved, self.now, NOON)
        assert {each: read.health(each, self.now) for each in self.everything} == before

    @invariant()
    def health_was_reported(self) -> None:
        for each in self.everything:
            found = self.cache.health(each, self.now)
            last = {said[0]: said for said in self.said if said[1] == each}
            valid = [said[2] for said in last.values() if self.now < said[4]]
            assert found in (valid or [UNKNOWN])

    @invariant()
    def changes_are_complete(self) -> None:
        for each in self.everything:
            assert self.told.get(each, UNKNOWN) == self.cache.health(each, self.now)

    @invariant()
    def the_timer_is_never_late(self) -> None:
        due = self.cache.next_expiry
        assert due is None or due > self.now


TestStreams = pytest.mark.spec("DN-8.3")(Streams.TestCase)
