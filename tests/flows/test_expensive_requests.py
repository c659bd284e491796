"""Requests that were made to be expensive, sent to a real daemon by a service account: each gets its right answer, and
those that take long hold up nobody else."""

import json
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench import _attacks

from tests.flows.test_api_bad_input import DEADLINE, JSON, MAPS, Api, running

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LONG = 3  # health checks that are answered while a long request is in work, at least

ATTACKS = {one.name: one for one in _attacks.attacks()}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with tempfile.TemporaryDirectory(prefix="dv") as root, running(Path(root)) as api:
        yield api


@pytest.fixture(scope="module")
def token(api: Api) -> str:
    """Of a service account that may do everything with objects."""
    assert api.call("POST", ACCOUNTS, {"metadata": {"name": "attacker"}}).code == 201
    binding = {
        "metadata": {"name": "attacker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "attacker", "namespace": "default"}],
    }
    assert api.call("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
    answer = api.call("POST", f"{ACCOUNTS}/attacker/token", {"spec": {}})
    assert answer.code == 201
    return str(answer.document["status"]["token"])


def send(api: Api, token: str, request: _attacks.Request) -> tuple[int, Any]:
    more = {"Accept": request.accept}
    answer = api.call(request.method, request.path, request.body, request.content_type, token=token, **more)
    return answer.code, json.loads(answer.body) if request.accept == JSON else answer.body


@contextmanager
def prepared(api: Api, token: str, attack: _attacks.Attack) -> Iterator[_attacks.Request]:
    """What the attack needs, until it is over."""
    for make in attack.before:
        assert send(api, token, make())[0] == 201
    try:
        yield attack.make()
    finally:
        for path in attack.remove:
            api.call("DELETE", path, {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("YAML: integer with colons, 1.2 MB", 201, ""),
        ("YAML: float with colons, 1.2 MB", 201, ""),
        ("YAML: integer of 3 MB", 400, "a number has"),
        ("YAML: nested too deeply", 400, "nested more than 100 levels deep"),
        ("YAML: merge keys", 400, "merge keys (<<) are not supported"),
        ("YAML: aliases", 400, "aliases are not allowed"),
        ("YAML: tags", 400, "is not supported"),
        ("YAML: sets", 400, "is not supported"),
        ("YAML: ordered mappings", 400, "is not supported"),
        ("YAML: binary", 400, "is not supported"),
        ("YAML: nested to the limit", 413, "limit is 250000 objects and lists"),
        ("JSON: nested to the limit", 413, "limit is 250000 objects and lists"),
        ("JSON: nested too deeply", 413, "limit is 250000 objects and lists"),
        ("JSON: floats", 201, ""),
        ("JSON: duplicate keys", 201, ""),
        ("metadata: owners", 422, "metadata.ownerReferences: Too many"),
        ("metadata: finalizers", 422, "metadata.finalizers: Too many"),
        ("metadata: wrong labels", 422, "and more]"),
        ("metadata: many managers", 201, ""),
        ("JSON patch: 10,000 copies", 422, "the patch copies more than"),
        ("CEL: \\pL{900}", 422, "expression too large: more than 1048576 bytes when compiled"),
        ("CEL: 32 selectors with classes", 422, "expression too large"),
        ("CEL: claim of 1,024 patterns", 422, "the regular expressions of this object, compiled, exceed"),
        ("role of 45,000 rules, bound", 422, "rules: Too many"),
        ("review of 3 MB", 413, "limit is 262144"),
        ("token request of 3 MB", 413, "limit is 262144"),
        ("delete options of 3 MB", 413, "limit is 262144"),
    ],
)
def test_an_expensive_request_gets_the_right_status(api: Api, token: str, name: str, code: int, said: str) -> None:
    with prepared(api, token, ATTACKS[name]) as request:
        answered, document = send(api, token, request)
    assert answered == code, document
    assert document["kind"] != "Status" or (document["code"] == code and said in document["message"])


@pytest.mark.parametrize(
    "name",
    ["YAML: 200,000 keys", "protobuf: config map with 200,000 keys", "CEL: claim of 64 selectors"],
)
def test_others_are_answered_while_a_long_request_is_in_work(api: Api, token: str, name: str) -> None:
    attack = ATTACKS[name]
    answered = threading.Event()

    def run(request: _attacks.Request) -> int:
        try:
            return send(api, token, request)[0]
        finally:
            answered.set()

    with prepared(api, token, attack) as request, ThreadPoolExecutor(1) as threads:
        sent = threads.submit(run, request)
        meanwhile = 0
        while not answered.is_set():
            assert api.call("GET", "/healthz").code == 200
            meanwhile += not answered.is_set()
        assert sent.result(DEADLINE) in attack.codes
    assert meanwhile >= LONG


@pytest.mark.long
def test_one_account_with_many_long_requests_does_not_hold_up_another_client(api: Api, token: str) -> None:
    request = ATTACKS["YAML: 200,000 keys"].make()
    own = json.dumps({"metadata": {"name": "own"}, "data": {"k": "x" * 100_000}}).encode()
    began = threading.Semaphore(0)

    def run() -> int:
        began.release()
        return send(api, token, request)[0]

    with ThreadPoolExecutor(4) as threads:
        sent = [threads.submit(run) for _ in range(4)]
        for _ in sent:
            assert began.acquire(timeout=DEADLINE)
        assert api.call("POST", MAPS, own).code == 201  # a large one of another user
        before = sum(one.done() for one in sent)
        codes = [one.result(DEADLINE) for one in sent]
    assert before < len(sent)
    assert codes == [413] * 4  # managedFields make it too large to be stored
    assert api.call("DELETE", f"{MAPS}/own").code == 200
