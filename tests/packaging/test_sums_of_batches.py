"""The sums that an installation for another machine is compared with are those of this tree."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("penstock")
_PROGRAM = pathlib.Path(__file__).parents[1] / "support" / "sums_of_batches.py"


def test_the_sums_are_those_of_this_tree():
    done = subprocess.run([sys.executable, _PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" sums are those of x86-64\n")
