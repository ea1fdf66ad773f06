"""Penstock's processes, as the comparison starts them."""

import contextlib
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]
BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", ROOT / "build/release/bin"))
FILES_AT_ONCE = 8


def spec_text(name, files, folder):
    """The spec of config/pipelines with other files, read in turns as the peers do. Returns the path of the copy in `folder`."""
    text = (ROOT / "config/pipelines" / (name + ".textproto")).read_text()
    text, count = re.subn(r'tfrecord \{ files: "[^"]*" \}', f'tfrecord {{ files: "{files}" cycle_length: {FILES_AT_ONCE} }}', text)
    assert count == 1, "the spec's source has another form"
    path = pathlib.Path(folder, name + ".textproto")
    path.write_text(text)
    return path


@contextlib.contextmanager
def daemon(folder, *options, environment=()):
    """A running penstockd, with more in its environment: yields (process, socket)."""
    socket = os.path.join(folder, "penstock.sock")
    ready, ready_end = os.pipe()
    with open(os.path.join(folder, "penstockd.log"), "w") as log:
        process = subprocess.Popen([BIN / "penstockd", "--socket", socket, "--state-dir", "none", "--ready-fd", str(ready_end), *options],
                                   pass_fds=[ready_end], stderr=log, env={**os.environ, **dict(environment)})
    os.close(ready_end)
    try:
        with os.fdopen(ready) as pipe:
            if not pipe.read(1):
                raise RuntimeError("penstockd did not start: " + pathlib.Path(folder, "penstockd.log").read_text())
        yield process, socket
    finally:
        process.terminate()
        process.wait()


def ctl(socket, *arguments):
    """Runs the `penstock` command and returns what it prints."""
    return subprocess.run([BIN / "penstock", "--socket", socket, *arguments], check=True, capture_output=True, text=True).stdout


def memory_bytes(pid, field):
    """A figure of man 5 proc's status, such as VmHWM (the peak of resident memory)."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no " + field)
