import json
from pathlib import Path

import anyio
import pytest

from devlet.daemon.api_server import Settings, connection_of, until_answered
from devlet.errors import DevletError, Forbidden, InvalidInput, Unavailable
from devlet.kit.backoff import Backoff
from devlet.testing.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

SERVER = "https://192.0.2.1:6443"
SETTINGS = Settings(Backoff(1, 8, jitter=0), refused=20)


class Server:
    """Fails as it is told, then answers."""

    def __init__(self, *errors: DevletError) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def call(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "here"


async def wait(server: Server, clock: FakeClock, seconds: float) -> str | None:
    """The answer, if it came within so many seconds."""
    found: list[str] = []

    async def ask() -> None:
        found.append(await until_answered(server.call, SERVER, clock, SETTINGS))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await clock.advance(seconds)
        tasks.cancel_scope.cancel()
    return found[0] if found else None


async def test_an_answer_needs_no_waiting() -> None:
    assert await until_answered(Server().call, SERVER, FakeClock()) == "here"


async def test_a_server_that_is_away_is_waited_for_with_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(*(Unavailable("connection refused") for _ in range(100)))
    assert await wait(server, FakeClock(), 31) is None
    assert server.calls == 7  # at 0, 1, 3, 7, 15, 23, 31
    assert {record.message for record in caplog.records} == {"waiting for the API server"}
    assert len(caplog.records) == 7


async def test_it_goes_on_as_soon_as_the_server_answers() -> None:
    assert await wait(Server(Unavailable("away"), Unavailable("away")), FakeClock(), 3) == "here"


async def test_a_server_that_refuses_at_first_may_be_starting() -> None:
    assert await wait(Server(Forbidden("no"), Forbidden("no")), FakeClock(), 3) == "here"


async def test_credentials_that_stay_refused_are_an_error() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await wait(Server(*(Forbidden("Unauthorized") for _ in range(100))), FakeClock(), 60)
    assert caught.group_contains(Forbidden, match=f"{SERVER} refuses the credentials in the kubeconfig: Unauthorized")


async def test_time_without_a_server_does_not_count_as_refusal() -> None:
    errors = [Forbidden("no"), *(Unavailable("away") for _ in range(5)), Forbidden("no")]
    assert await wait(Server(*errors), FakeClock(), 60) == "here"


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no kubeconfig"):
        connection_of(tmp_path / "gone")


def test_the_context_chooses_the_cluster(tmp_path: Path) -> None:
    clusters = [{"name": name, "cluster": {"server": f"https://{name}:1"}} for name in ("a", "b")]
    contexts = [{"name": name, "context": {"cluster": name}} for name in ("a", "b")]
    config = {"kind": "Config", "clusters": clusters, "contexts": contexts, "current-context": "a"}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    assert connection_of(tmp_path / "kubeconfig").server == "https://a:1"
    assert connection_of(tmp_path / "kubeconfig", "b").server == "https://b:1"
