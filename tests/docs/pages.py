"""A page and the folder that its examples run in."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", ROOT / "build/release/bin")).resolve()


def run(page, folder, *options):
    """Runs the examples of `page` in `folder`; returns how many there were."""
    if not (folder / "config").exists():
        (folder / "config").symlink_to(ROOT / "config")
    environment = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}", PENSTOCK_SOCKET=str(folder / "s"), XDG_STATE_HOME=str(folder / "state"))
    done = subprocess.run([sys.executable, ROOT / "tests/docs/run_page.py", ROOT / page, *options], cwd=folder, env=environment, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return int(done.stdout.split()[-2])


def output_of(*command, folder=None):
    done = subprocess.run([str(word) for word in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_samples(folder):
    """The folder, with 128 records of photographs in samples/flowers."""
    (folder / "samples/flowers").mkdir(parents=True)
    eight = (ROOT / "tests/golden/flowers.tfrecord").read_bytes()
    (folder / "samples/flowers/part-0.tfrecord").write_bytes(eight * 16)
    return folder


def fences(page):
    """(language, text) of each block of a page."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
