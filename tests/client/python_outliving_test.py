"""Python functions of named pipelines, behind the end of the process that made them."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import penstock
import pytest

pytest.importorskip("cloudpickle")

PROGRAMS = pathlib.Path(os.environ["PENSTOCK_BIN"])

MAKER = """
import sys
import numpy as np
import penstock

class Twice:
    def __init__(self):
        self.table = 2 * np.arange(100_000)  # large enough to lie beside the pickle

    def __call__(self, number):
        return self.table[number]

dataset = penstock.Dataset.range(100_000).map(Twice(), python=True, output=penstock.TensorSpec((), np.int64), workers=1).batch(8, drop_remainder=True)
loader = dataset.loader(socket=sys.argv[1], name="made")
print(next(loader).tolist(), flush=True)
sys.stdin.read()
"""


class Daemon:
    def __init__(self, folder):
        self.folder = folder
        self.socket = str(folder / "s")
        self.start()

    def start(self):
        ready, end = os.pipe()
        command = [PROGRAMS / "penstockd", "--socket", self.socket, "--state-dir", self.folder / "state", "--log-level", "error", "--ready-fd", str(end)]
        self.process = subprocess.Popen(command, pass_fds=[end])
        os.close(end)
        with open(ready, "rb") as file:
            assert file.read(1) == b"\n"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def command(self, *words):
        done = subprocess.run([PROGRAMS / "penstock", "--socket", self.socket, *words], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.kill()


@pytest.fixture
def maker(daemon):
    """A process that has made the pipeline."""
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(MAKER), daemon.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == f"{[2 * i for i in range(8)]}\n"
    yield process
    process.kill()
    process.communicate()


def end(maker):
    maker.kill()
    maker.wait()


def test_a_pipeline_goes_on_and_may_be_changed_when_its_maker_has_ended(daemon, maker):
    end(maker)
    loader = penstock.attach("made", socket=daemon.socket, group="others", timeout=60)
    assert np.diff(next(loader)).tolist() == [2] * 7
    # The stages are planned anew.
    code, text = daemon.command("update", "made", "--set", "batch.batch_size=4")
    assert code == 0, text
    last = None
    for batch in loader:
        assert last is None or batch[0] == last + 2
        assert np.diff(batch).tolist() == [2] * (len(batch) - 1)
        last = batch[-1]
        if len(batch) == 4:
            break
    # New workers begin with the function that the daemon has.
    assert daemon.command("pause", "made")[0] == 0
    assert daemon.command("resume", "made")[0] == 0
    assert next(loader)[0] == last + 2


def test_a_restarted_daemon_has_the_pipeline_where_its_maker_lives(daemon, maker):
    daemon.kill()
    daemon.start()
    loader = penstock.attach("made", socket=daemon.socket, group="others", timeout=60)
    assert np.diff(next(loader)).tolist() == [2] * 7


def test_a_restarted_daemon_says_that_the_function_has_gone_with_its_maker(daemon, maker):
    end(maker)
    daemon.kill()
    daemon.start()
    with pytest.raises(penstock.Error, match=r"the Python function has gone with the process that made it .* not beyond a restart; make the pipeline again from Python"):
        penstock.attach("made", socket=daemon.socket, group="others", timeout=2)
    code, text = daemon.command("list")
    assert code == 0 and "the Python function has gone with the process that made it" in text, text
