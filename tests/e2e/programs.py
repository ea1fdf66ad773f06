"""Programs of a build, run as a user runs them.

PENSTOCK_BIN is the folder of `penstock` and `penstockd`; the Python package must be on PYTHONPATH.
"""

import contextlib
import os
import pathlib
import pty
import signal
import socket
import subprocess
import time

import pytest

import tfrecord_files

_TIMEOUT_S = 60  # turns a hang into a failure


def program(name):
    folder = os.environ.get("PENSTOCK_BIN")
    if not folder:
        pytest.skip("PENSTOCK_BIN is not set; ./dev test sets it")
    return pathlib.Path(folder) / name


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def __repr__(self):
        return f"exit {self.code}\n{self.out}{self.err}"


def on_a_terminal(words, **options):
    """Runs a program whose stderr is a terminal: how it ended, and what it drew there."""
    terminal, end = pty.openpty()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=end, text=True, **options) as process:
        os.close(end)
        drawn = b""
        # What is written comes in pieces; behind the last one a terminal that nobody has open is an error.
        with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as screen:
            while piece := screen.read(65536):
                drawn += piece
        out, _ = process.communicate(timeout=_TIMEOUT_S)
    return subprocess.CompletedProcess(words, process.returncode, out, drawn.decode())


class Penstock:
    """The command line, in a folder of the test."""

    def __init__(self, folder, socket=None):
        self.folder = folder
        self.socket = socket
        self.environment = dict(os.environ, TMPDIR=str(folder / "tmp"))
        for name in ("PENSTOCK_SOCKET", "XDG_RUNTIME_DIR"):
            self.environment.pop(name, None)
        (folder / "tmp").mkdir(exist_ok=True)

    def command(self, *words):
        socket = ["--socket", self.socket] if self.socket else []
        return [str(word) for word in [program("penstock"), *socket, *words]]

    def __call__(self, *words, **environment):
        return Result(subprocess.run(self.command(*words), cwd=self.folder, capture_output=True, text=True,
                                     timeout=_TIMEOUT_S, env=dict(self.environment, **environment)))

    def start(self, *words):
        return subprocess.Popen(self.command(*words), cwd=self.folder, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Daemon:
    """A penstockd that accepts connections; what it keeps for its successor lies beside its socket, or in the folder `state`."""

    def __init__(self, socket, *options, limits=None, keeps_state=True, state=None):
        ready, ready_end = os.pipe()
        words = [str(program("penstockd")), "--socket", str(socket), "--ready-fd", str(ready_end),
                 "--state-dir", str(state or f"{socket}.state") if keeps_state else "none", *options]
        self.socket = str(socket)
        self.process = subprocess.Popen(words, pass_fds=[ready_end], stderr=subprocess.PIPE, text=True,
                                        preexec_fn=limits)
        os.close(ready_end)
        try:
            self.is_ready = os.read(ready, 1) == b"\n"
        finally:
            os.close(ready)

    @property
    def pid(self):
        return self.process.pid

    def kill(self):
        self.process.kill()
        self.process.wait(_TIMEOUT_S)

    def stop(self, number=signal.SIGTERM):
        """Returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(_TIMEOUT_S)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(condition):
    """Waits for what another process does in its own time."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "did not come true"
        time.sleep(0.005)


def process_fields(pid):
    """The fields of /proc/PID/stat from the state on; none if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid):
    fields = process_fields(pid)
    return bool(fields) and fields[0] not in "ZX"


def children(pid):
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [child for child in pids if process_fields(child)[1:2] == [str(pid)]]


@pytest.fixture
def penstock_command(tmp_path):
    return Penstock(tmp_path)


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path / "run" / "penstock.sock")
    assert daemon.is_ready
    yield daemon
    daemon.stop()


@pytest.fixture
def remote(tmp_path, daemon):
    """The command line, with the socket of `daemon`."""
    return Penstock(tmp_path, daemon.socket)


COUNTER = """
name: "{name}"
stage {{ tfrecord {{ files: "{name}.tfrecord" }} }}
stage {{ parse_example {{ feature {{ key: "n" int64 {{}} }} }} }}
stage {{ map {{ constant {{ name: "K" value: 2 }} out: "n = n" out: "x = float32(n) * K" }} }}
stage {{ batch {{ batch_size: 4 }} }}
"""


@pytest.fixture
def counter(tmp_path):
    """Writes a shard that counts, and its spec; returns the spec's path."""

    def make(name="counter", records=42, more=""):
        tfrecord_files.write(tmp_path / f"{name}.tfrecord",
                             [tfrecord_files.example(n=n) for n in range(records)])
        spec = tmp_path / f"{name}.textproto"
        spec.write_text(COUNTER.format(name=name) + more)
        return spec

    return make
