"""Finds what tests/e2e has to start programs with."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
