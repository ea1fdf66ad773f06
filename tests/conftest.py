"""What the tests in Python share, whatever they need besides."""

import signal
import types

import pytest


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
