"""Generate the Python code of every .proto file in src/devlet/wire, with types: `python -m tools.make_wire [--check]`.

The code is committed. `--check` writes nothing and fails if a file differs from what would be generated.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
WIRE = SOURCES / "devlet" / "wire"


def generate(target: Path) -> None:
    protos = [str(path.relative_to(SOURCES)) for path in sorted(WIRE.rglob("*.proto"))]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={SOURCES}"]
    # The plugin that writes the types is in the interpreter's directory, whatever PATH contains.
    plugin = f"--plugin=protoc-gen-mypy={Path(sys.executable).with_name('protoc-gen-mypy')}"
    outputs = [f"--python_out={target}", f"--mypy_out=quiet:{target}"]
    subprocess.run([*command, plugin, *outputs, *protos], check=True)


def differences(made: Path) -> list[str]:
    """Return a line for each generated file that is missing, outdated or left over."""
    new = {path.relative_to(made): path.read_bytes() for path in made.rglob("*_pb2.py*")}
    old = {path.relative_to(SOURCES): path.read_bytes() for path in WIRE.rglob("*_pb2.py*") if path.suffix != ".pyc"}
    return [
        f"src/{name}: run `make wire`" for name in sorted(new.keys() | old.keys()) if new.get(name) != old.get(name)
    ]


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        generate(SOURCES)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        found = differences(Path(folder))
    print("\n".join(found) or "the generated code is up to date")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
