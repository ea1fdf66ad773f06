"""`penstock top` at a terminal: what it draws, and its keys."""

import os
import pty
import re
import signal
import subprocess
import termios

import pytest

from programs import Penstock, eventually


class Terminal:
    """A process with a terminal of its own, whose keys a test presses."""

    def __init__(self, words, folder, environment):
        self.master, end = pty.openpty()
        self.before = termios.tcgetattr(end)
        self.end = end
        self.drawn = b""

        def lead():
            os.setsid()
            os.close(os.open(os.ttyname(0), os.O_RDWR))  # becomes its controlling terminal

        termios.tcsetwinsize(end, (60, 120))
        self.process = subprocess.Popen(words, cwd=folder, env=environment, stdin=end, stdout=end, stderr=end, preexec_fn=lead)
        os.set_blocking(self.master, False)

    def press(self, keys):
        os.write(self.master, keys)

    def read(self):
        try:
            while piece := os.read(self.master, 65536):
                self.drawn += piece
        except (BlockingIOError, OSError):
            pass
        return self.drawn.decode(errors="replace")

    def waits_for(self, pattern):
        """What is drawn from now on, once it has the pattern."""
        eventually(lambda: re.search(pattern, self.read()))
        drawn, self.drawn = self.drawn, b""
        return drawn.decode(errors="replace")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.end)


@pytest.fixture
def top(remote, counter, tmp_path):
    for name in ("first", "second"):
        assert remote("create", counter(name, more="stage { repeat {} }")).code == 0
    terminals = []

    def start(*words, **environment):
        command = Penstock(tmp_path, remote.socket).command("top", *words)
        terminals.append(Terminal(command, tmp_path, dict(os.environ, **environment)))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def test_keys_choose_hold_and_end(top):
    screen = top("--interval", "0.1")
    drawn = screen.waits_for(r"every 0\.1 s")
    assert "\x1b[7mfirst" in drawn and "second" in drawn
    screen.press(b"j")
    assert "\x1b[1mfirst" in screen.waits_for(r"\x1b\[7msecond")
    screen.press(b"\x1b[A")
    screen.waits_for(r"\x1b\[7mfirst")
    screen.press(b"\r")
    screen.waits_for(r"(?s)\x1b\[H\x1b\[1mfirst(?:(?!second).)*every 0\.1 s")
    screen.press(b" ")
    screen.waits_for("held")
    screen.press(b" +")
    screen.waits_for(r"every 0\.2 s")
    screen.press(b"q")
    assert screen.process.wait(60) == 0
    assert termios.tcgetattr(screen.end) == screen.before


@pytest.mark.parametrize("how", ["key", "signal"])
def test_the_terminal_is_as_it_was_after_an_interruption(top, how):
    screen = top("--interval", "0.1")
    screen.waits_for("q quit")
    assert termios.tcgetattr(screen.end) != screen.before
    if how == "key":
        screen.press(b"\x03")
        assert screen.process.wait(60) == -signal.SIGINT
    else:
        screen.process.send_signal(signal.SIGTERM)
        assert screen.process.wait(60) == -signal.SIGTERM
    assert termios.tcgetattr(screen.end) == screen.before


def test_no_color_is_heard(top):
    screen = top("--count", "2", "--interval", "0.05", NO_COLOR="1")
    assert screen.process.wait(60) == 0
    assert not re.search(r"\x1b\[[0-9;]*m", screen.read())
