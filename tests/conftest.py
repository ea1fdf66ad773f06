"""What the tests in Python share, whatever they need besides."""

import os
import shutil
import signal
import tempfile
import types

import pytest


def pytest_configure(config):
    # A daemon that a test gives no folder of state keeps none in the home of whoever runs the tests: the next run, whose folders
    # have the same names, would find its pipelines again.
    config._penstock_state = tempfile.mkdtemp(prefix="penstock-tests-state-")
    os.environ["XDG_STATE_HOME"] = config._penstock_state


def pytest_unconfigure(config):
    shutil.rmtree(config._penstock_state, ignore_errors=True)


class Rung(Exception):
    """What an alarm raises."""


@pytest.fixture
def alarm():
    """`alarm.ring()` has a signal's handler raise `alarm.Rung` soon, as Ctrl-C's raises KeyboardInterrupt."""

    def handle(number, frame):
        raise Rung

    before = signal.signal(signal.SIGALRM, handle)
    yield types.SimpleNamespace(ring=lambda: signal.setitimer(signal.ITIMER_REAL, 0.3), Rung=Rung)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
