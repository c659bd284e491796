"""The start of `devlet up`: where its time goes. `python bench/start.py [--quick]`.

The program runs as usual. A tracer notes the processor time of the whole process when it writes a log line or has
imported a module. Other work on the machine makes a start take longer, but hardly uses up more of its processor time,
so both are shown.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script's own folder comes first, not the project

from bench._report import machine

# Runs `devlet up`, and writes (what, processor seconds, seconds) to the given file. Stops when everything has started.
_PROGRAM = """
import json, logging, os, signal, sys, time
began = time.monotonic() - time.process_time()
last, note_file, *arguments = sys.argv[1:]
notes = []
def note(what):
    notes.append((what, time.process_time(), time.monotonic() - began))
note("interpreter")
class Clock(logging.Handler):
    def emit(self, record):
        note(record.getMessage())
        if record.getMessage() == last:
            os.kill(os.getpid(), signal.SIGTERM)
logging.getLogger("devlet").addHandler(Clock())
import devlet.cli.main, devlet.cli.up
note("command line")
import devlet.daemon.main
note("daemon imported")
sys.argv = ["devlet", "up", *arguments]
try:
    devlet.cli.main.main()
finally:
    with open(note_file, "w") as file:
        json.dump(notes, file)
"""
LAST = "control loops started"

# The log line or note at the end of each phase.
PHASES = {
    "interpreter": "interpreter",
    "imports of the command line": "command line",
    "imports of the daemon": "daemon imported",
    "root, store": "store opened",
    "credentials, API": "api listening",
    "node, until ready": "ready",
    "control loops, after ready": LAST,
}


def start(root: Path) -> dict[str, tuple[float, float]]:
    """Start a node on the root, and return what each phase took: processor seconds and seconds."""
    with tempfile.NamedTemporaryFile() as notes:
        argv = [sys.executable, "-c", _PROGRAM, LAST, notes.name, "--root", str(root), "--node-name", "n1"]
        run = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        if run.returncode:
            raise SystemExit(run.stderr)
        seen = {what: (cpu, wall) for what, cpu, wall in json.loads(Path(notes.name).read_text())}
    taken, before = {}, (0.0, 0.0)
    for phase, end in PHASES.items():
        taken[phase] = (seen[end][0] - before[0], seen[end][1] - before[1])
        before = seen[end]
    taken["start to ready"] = seen["ready"]
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three starts instead of fifteen")
    count = 3 if parser.parse_args().quick else 15
    with tempfile.TemporaryDirectory(prefix="dv") as directory:
        print(machine(Path(directory)))
        start(Path(directory) / "warm")  # read the files from disk once
        runs = {
            "new root": [start(Path(directory) / str(number)) for number in range(count)],
            "used root": [start(Path(directory) / str(number)) for number in range(count)],
        }
    print(f"{'milliseconds, median of ' + str(count):<32}" + "".join(f"{name:>24}" for name in runs))
    print(f"{'':<32}" + "".join(f"{'processor':>16}{'wall':>8}" for _ in runs))
    for phase in next(iter(runs.values()))[0]:
        cells = (
            f"{statistics.median(run[phase][0] for run in taken) * 1000:>16.0f}"
            f"{statistics.median(run[phase][1] for run in taken) * 1000:>8.0f}"
            for taken in runs.values()
        )
        print(f"{phase:<32}" + "".join(cells))


if __name__ == "__main__":
    main()
