"""The tests of this folder share modules that stand beside them, and the statics that make masks of the zoo small."""

import sys
from pathlib import Path

for folder in ("proof", "zoo", "passes"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))
