"""What a daemon says of a running pipeline, for loaders and datasets: its bottleneck, and traces of its workers."""

import os
import time

from penstock import _control, _errors
from penstock._running import _daemon

# The daemon looks at its pipelines a few times a second, and tells of the last seconds. One that has not answered is left alone for longer.
_FRESH_SECONDS = 1.0
_LEFT_ALONE_SECONDS = 10.0
_MOST_KEPT = 64
_told = {}  # by socket and pipeline: until when that holds, and what it said


_NOTHING = "", ""


def with_bottleneck(counters, socket, pipeline, ask=True):
    """The counters with what holds the pipeline up: "bottleneck" and "sentence", "" where the daemon does not tell.

    Args:
      ask: False: what the daemon has told last.
    """
    counters["bottleneck"], counters["sentence"] = _bottleneck(socket, pipeline, ask)
    return counters


def _bottleneck(socket, pipeline, ask):
    key = socket, pipeline
    until, said = _told.get(key, (0.0, _NOTHING))
    if not ask or time.monotonic() < until:
        return said
    seconds = _FRESH_SECONDS
    try:
        analysis = _control.stats(socket, pipeline).get("analysis") or {}
    except _errors.Error:
        # It has gone, is another release's, or gives no sign of life.
        analysis, seconds = {}, _LEFT_ALONE_SECONDS
    said = analysis.get("bottleneck", ""), analysis.get("sentence", "")
    if len(_told) >= _MOST_KEPT:
        _told.clear()
    _told[key] = time.monotonic() + seconds, said
    return said


class Profile:
    """A trace that is being written; `with` waits for it at the end.

    Attributes:
      path: the file, for ui.perfetto.dev. It is there once wait() has returned.
    """

    def __init__(self, path, process):
        self.path = path
        self._process = process
        self._problem = None  # what it has printed

    def wait(self) -> str:
        """Waits until the trace is written.

        Returns:
          Its path.

        Raises:
          The errors of penstock.attach, where the daemon has said why it writes none; InvalidArgumentError for a path that cannot be written.
        """
        if self._problem is None:
            _, self._problem = self._process.communicate()
        if self._process.returncode != 0:
            raise _of_command(self._problem.decode(errors="replace").strip())
        return self.path

    def __enter__(self) -> "Profile":
        return self

    def __exit__(self, type, value, traceback):
        if type is None:
            self.wait()
        else:
            self._process.terminate()
            _, self._problem = self._process.communicate()

    def __repr__(self):
        state = "being written" if self._process.poll() is None else "written" if self._process.returncode == 0 else "failed"
        return f"<Profile {self.path}, {state}>"


def _of_command(text):
    """The error that the command has printed: "penstock profile: NOT_FOUND: …"."""
    said = text.partition(": ")[2]
    code, _, message = said.partition(": ")
    kinds = {kind.code: kind for kind in _errors.BY_CODE.values()}
    if code in kinds:
        return kinds[code](message)
    return _errors.InvalidArgumentError(said or "penstock profile has ended without a word")


def profile(socket, pipeline, path, seconds=1.0):
    """Begins a trace of what each worker of a pipeline does for some seconds: a Profile."""
    import subprocess

    path = os.path.abspath(os.fspath(path))
    command = [_command(), "--socket", socket, "profile", pipeline, "--seconds", str(float(seconds)), "--out", path]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return Profile(path, process)


def _command():
    """The path of the command `penstock`, which comes with penstockd."""
    import shutil

    beside = os.path.join(os.path.dirname(_daemon.find_program()), "penstock")
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("penstock")
    if found is None:
        raise _errors.NotFoundError(f"no program `penstock`, which writes traces: it is neither at {beside} nor on PATH")
    return found
