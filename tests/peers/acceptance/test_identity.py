"""Who one is and what one may do; tokens of service accounts."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.peers.acceptance.conftest import Site

pytestmark = [pytest.mark.peers, pytest.mark.anyio]


@pytest.mark.spec("KA-10.45")
async def test_a_service_account_gets_a_token(site: "Site") -> None:
    token = (await site.prints("create", "token", "default", "--duration=1h")).strip()
    assert [bool(part) for part in token.split(".")] == [True] * 3


@pytest.mark.spec("KA-10.46")
async def test_the_administrator_may_do_everything(site: "Site") -> None:
    assert await site.prints("auth", "can-i", "create", "pods") == "yes\n"
    header, *rows = await site.rows("auth", "can-i", "--list")
    assert header == ["Resources", "Non-Resource", "URLs", "Resource", "Names", "Verbs"]
    assert ["*.*", "[]", "[]", "[*]"] in rows
    whoami = await site.rows("auth", "whoami")
    assert whoami[0] == ["ATTRIBUTE", "VALUE"]
    assert ["Username", "admin"] in whoami
    assert "system:masters" in " ".join(whoami[-1])


@pytest.mark.spec("KA-10.47")
async def test_a_user_without_rights_may_not_read_pods(site: "Site") -> None:
    done = await site.kubectl("auth", "can-i", "get", "pods", "--as=nobody")
    assert (done.returncode, done.stdout) == (1, "no\n")
    refused = await site.fails("get", "pods", "--as=nobody")
    assert refused == (
        'Error from server (Forbidden): pods is forbidden: User "nobody" cannot list resource "pods" in API group "" '
        f'in the namespace "{site.namespace}"\n'
    )
