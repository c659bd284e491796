from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import API, Run

VIEW = "/apis/devlet.dev/v1alpha1/namespaces/{}/preparedclaims/train"


@pytest.mark.parametrize(
    ("arguments", "namespace"),
    [(["train"], "default"), (["team/train"], "team"), (["train", "-n", "team"], "team")],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_claim_is_released(run: "Run", api: "API", arguments: list[str], namespace: str, force: list[str]) -> None:
    api.put(VIEW.format(namespace), {"kind": "PreparedClaim", "status": {"state": "Failed"}})
    assert run("claim", "release", *arguments, *force) == 0, run.err
    assert run.out == f"claim {namespace}/train released\n" and not api.objects
    assert ("may still have the claim prepared" in run.err) is bool(force)


def test_a_claim_that_is_not_there_is_an_error(run: "Run") -> None:
    assert run("claim", "release", "train") == 1 and "not found" in run.err


@pytest.mark.parametrize("claim", ["a/b/c", "team/", "a/b -n c"])
def test_a_name_that_is_not_one_is_refused(run: "Run", claim: str) -> None:
    assert run("claim", "release", *claim.split()) == 1 and "invalid claim" in run.err
