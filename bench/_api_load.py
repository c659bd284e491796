"""Run bench-api, the Go program that loads an API server, and write the files with the bodies that it sends."""

import json
import subprocess
from pathlib import Path

import anyio
from bench._api_servers import Server
from bench._objects import OBJECTS, bodies, collection_path
from bench._report import PEERS

PROGRAM = PEERS / "bench-api"


def is_built() -> bool:
    return PROGRAM.is_file()


def body_file(directory: Path, object_: str, first: int, count: int, content_type: str) -> Path:
    """Return a file of bodies, written once for all servers and repetitions: encoding thousands of slices takes longer
    than sending them."""
    path = (
        directory / f"{object_.replace(' ', '-')}-{content_type.rpartition('.')[2].rpartition('/')[2]}-{first}-{count}"
    )
    if not path.exists():
        _, made = bodies(object_, first, count, content_type)
        path.write_bytes(b"".join(len(body).to_bytes(4) + body for body in made))
    return path


async def load(server: Server, op: str, object_: str, **flags: object) -> dict[str, float]:
    resource, _ = OBJECTS[object_]
    common = {
        "op": op,
        "path": collection_path(resource),
        "server": server.endpoint,
        "ca": server.ca_file,
        "token-file": server.token_file,
    }
    words = [f"--{name.replace('_', '-')}={value}" for name, value in {**common, **flags}.items()]
    answer = await anyio.run_process([PROGRAM, *words], check=False, stderr=subprocess.PIPE)
    if answer.returncode:
        raise SystemExit(answer.stderr.decode().strip())
    figures: dict[str, float] = json.loads(answer.stdout)
    return figures
