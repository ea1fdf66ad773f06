"""Short crash loops; `./dev test crash` runs the long ones."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("penstock")


def run(program, *words):
    if not os.environ.get("PENSTOCK_BIN"):
        pytest.skip("PENSTOCK_BIN is not set; ./dev test sets it")
    done = subprocess.run([sys.executable, pathlib.Path(__file__).parent / program, *words], timeout=600, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_fault_48_twenty_random_kills():
    assert run("crash_loop.py", "--kills", "20", "--pauses", "4").count(" kills in ") == 1


def test_twelve_random_kills_of_python_workers_and_what_they_belong_to():
    assert run("python_loop.py", "--kills", "12").count("12 kills in ") == 1


def test_an_element_that_harms_its_worker_costs_itself_alone():
    # Of how long it takes, a loaded machine says little; asking for 10 GB may take longer there than a short limit.
    assert run("python_poison.py", "--elements", "1000", "--most-seconds", "60", "--timeout-ms", "3000").count(" s lost for each, and the element alone") == 5
