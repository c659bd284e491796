"""The tools run from the project's folder, so that is where their tests import them from."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
