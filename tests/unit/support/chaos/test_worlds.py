"""The worlds themselves are in tests/peers/test_soak.py; here `devlet control` runs in front of the embedded API."""

from pathlib import Path

import pytest

from devlet.testing.embedded import embedded_api
from tests.support.chaos.worlds import QUICK_LEASES, control_process

pytestmark = [pytest.mark.anyio]


@pytest.mark.long
async def test_a_control_that_was_killed_is_found_ready_again_by_what_it_says_now(root: Path) -> None:
    async with (
        embedded_api(root) as api,
        control_process(api.kubeconfig, root / "c.log", *QUICK_LEASES) as control,
    ):
        assert "scheduler leads" in control.running.log.read_text()
        first = control.running
        await control.kill()
        await control.start()
        assert first.returncode == -9
        assert control.running.log != first.log
        assert "devlet control is ready: scheduler" in control.running.log.read_text()
