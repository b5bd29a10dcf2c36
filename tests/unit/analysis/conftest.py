"""The tests of this folder draw random expressions from the generator of random specs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "passes"))
