"""Whether one request can delay the others: `python bench/requests.py [--quick]`.

A service account with every permission sends expensive requests of at most 3 MB to `devlet up` in a separate process,
one after the other. Meanwhile another connection requests `/healthz` every few milliseconds. The limit: each response
takes at most 250 ms on a quiet machine. On a busy machine, look at the processor time that the server uses during the
slowest wait: it shows how long the wait would be if nothing else ran.
"""

import argparse
import http.client
import json
import os
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._attacks import Attack, Request, attacks
from bench._report import Machine, machine

from devlet.kit.processes import spawn
from devlet.testing.embedded import EmbeddedApi, embedded_api

BAR = 0.25  # seconds
PAUSE = 0.005  # between two requests
TIMEOUT = 120.0
QUIET = 0.4  # seconds of low processor use, after which the server has finished with an attack
SETTLED = 30.0  # seconds, at most, to wait for that
ACCOUNT = "attacker"
QUICK = (
    "colons",
    "200,000 keys",
    "short scalars",
    "pL",
    "1,024 selectors",
    "10,000 moves",
    "100,000 fields",
    "CRD of 60",
)
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Found:
    """The effects of one attack. Latencies are those of /healthz, in seconds."""

    name: str
    size: int
    answers: list[int | str] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
    worst: float = 0.0
    busiest: float = 0.0  # the most processor time that the server used while one /healthz waited
    asked: int = 0
    message: str = ""


class Connection:
    def __init__(self, api: EmbeddedApi, token: str) -> None:
        self._address = api.endpoint.removeprefix("https://")
        self._trust = ssl.create_default_context(cafile=api.ca_file)
        self._token = token
        self._connection: http.client.HTTPSConnection | None = None

    def send(self, wanted: Request) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(self._address, context=self._trust, timeout=TIMEOUT)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": wanted.content_type,
            "Accept": wanted.accept,
        }
        try:
            self._connection.request(wanted.method, wanted.path, wanted.body or None, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = None
            raise


class Poller:
    """Requests /healthz continuously, on a connection of its own."""

    def __init__(self, connection: Connection, pid: int) -> None:
        self._connection = connection
        self._clock = (~pid << 3) | 2  # computed as in clock_getcpuclockid(3)
        self._stopping = False
        self.latencies: list[float] = []
        self.worked: list[float] = []

    def run(self) -> None:
        while not self._stopping:
            start, before = time.perf_counter(), time.clock_gettime(self._clock)
            try:
                self._connection.send(Request("GET", "/healthz"))
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)
            self.latencies.append(time.perf_counter() - start)
            self.worked.append(time.clock_gettime(self._clock) - before)
            time.sleep(PAUSE)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._stopping = True
            thread.join()


def attack(api: EmbeddedApi, one: Attack, token: str) -> Found:
    attacker = Connection(api, token)
    attacker.send(Request("GET", "/healthz"))
    for prepare in one.before:
        code, body = attacker.send(prepare())
        if code not in (200, 201, 409):
            print(f"  {one.name}: preparation was answered {code}: {body[:300]!r}", file=sys.stderr)
    _settle(api.pid)
    wanted = one.make()
    found = Found(one.name, len(wanted.body))
    poller = Poller(Connection(api, token), api.pid)
    before, start = _cpu(api.pid), time.perf_counter()
    with poller.running():
        for request in (wanted, *one.after):
            try:
                code, body = attacker.send(request)
                found.answers.append(code)
                found.message = found.message or (_message(body) if code >= 400 else "")
            except (OSError, http.client.HTTPException) as e:
                found.answers.append(type(e).__name__)
        found.seconds = time.perf_counter() - start
        _settle(api.pid)
    found.cpu = _cpu(api.pid) - before
    found.worst, found.busiest = max(poller.latencies), max(poller.worked)
    found.asked = len(poller.latencies)
    for path in one.remove:
        attacker.send(Request("DELETE", path, b'{"gracePeriodSeconds":0}'))
        attacker.send(Request("PATCH", path, b'{"metadata":{"finalizers":null}}', "application/merge-patch+json"))
    return found


def _settle(pid: int) -> None:
    until = time.monotonic() + SETTLED
    while time.monotonic() < until:
        before = _cpu(pid)
        time.sleep(QUIET)
        if _cpu(pid) - before < QUIET / 4:
            return


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))[:120]
    except ValueError:
        return repr(body[:120])


def make_account(api: EmbeddedApi) -> str:
    """Create a service account with every permission. Return its token."""
    admin = Connection(api, api.token)
    admin.send(_post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": ACCOUNT}}))
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    every = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    admin.send(_post(f"{rbac}/clusterroles", {"metadata": {"name": ACCOUNT}, "rules": every}))
    binding = {
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "default"}],
    }
    admin.send(_post(f"{rbac}/clusterrolebindings", binding))
    path = f"/api/v1/namespaces/default/serviceaccounts/{ACCOUNT}/token"
    code, body = admin.send(_post(path, {"spec": {"expirationSeconds": 80_000}}))
    if code != 201:
        raise SystemExit(f"no token: {body.decode()}")
    return str(json.loads(body)["status"]["token"])


def _post(path: str, document: object) -> Request:
    return Request("POST", path, json.dumps(document).encode())


async def run(options: argparse.Namespace) -> None:
    about = machine(Path(tempfile.gettempdir()))
    chosen = [
        one
        for one in attacks()
        if options.only in one.name and (not options.quick or any(word in one.name for word in QUICK))
    ]
    results: list[Found] = []
    while chosen:
        with tempfile.TemporaryDirectory(prefix="dv") as root:
            async with embedded_api(Path(root), control=True, start=spawn) as api:
                results += await anyio.to_thread.run_sync(_until_it_dies, api, chosen)
    _print(about, results)
    if options.json:
        options.json.write_text(
            json.dumps({"machine": asdict(about), "rows": [asdict(one) for one in results]}, indent=2) + "\n"
        )


def _until_it_dies(api: EmbeddedApi, chosen: list[Attack]) -> list[Found]:
    """Run attacks until the server exits. Removes those that ran from `chosen`."""
    results = []
    token = make_account(api)
    while chosen:
        one = chosen.pop(0)
        found = Found(one.name, 0)
        try:
            found = attack(api, one, token)
        except (OSError, http.client.HTTPException) as e:
            found.answers.append(f"the server is gone: {type(e).__name__}")
            chosen = chosen[:0]  # the remaining ones get another server
        results.append(found)
        right = "" if set(found.answers) <= {200, 201, *one.codes} else f"; expected {one.codes}"
        print(
            f"{found.worst * 1000:8.0f} ms  {found.busiest * 1000:8.0f} ms CPU  {found.seconds:6.2f} s"
            f"  {found.cpu:6.2f} s CPU  {found.name}:"
            f" {found.answers} {found.message[:60]}{right}",
            file=sys.stderr,
            flush=True,
        )
    return results


def _print(about: Machine, results: list[Found]) -> None:
    print(f"{about.cores} cores, {about.system}, Python {about.python}, load {about.load}\n")
    print("| request | size | answer | answered after | processor time | worst /healthz | processor time meanwhile |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for one in sorted(results, key=lambda one: -one.busiest):
        answers = ", ".join(map(str, one.answers))
        print(
            f"| {one.name} | {one.size:,} | {answers} | {one.seconds:.2f} s | {one.cpu:.2f} s"
            f" | {one.worst * 1000:.0f} ms | {one.busiest * 1000:.0f} ms |"
        )
    late = [one for one in results if one.worst > BAR]
    print(f"\n{len(results) - len(late)} of {len(results)} requests stay below {BAR * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the worst requests only")
    parser.add_argument("--only", default="", metavar="TEXT", help="requests whose name has this in it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
    anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    main()
