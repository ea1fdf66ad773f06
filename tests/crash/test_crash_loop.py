"""A short crash loop; `./dev test crash` runs the long one."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("penstock")


def test_fault_48_twenty_random_kills():
    if not os.environ.get("PENSTOCK_BIN"):
        pytest.skip("PENSTOCK_BIN is not set; ./dev test sets it")
    program = pathlib.Path(__file__).parent / "crash_loop.py"
    done = subprocess.run([sys.executable, program, "--kills", "20", "--pauses", "4"], timeout=600, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" kills in ") == 1
