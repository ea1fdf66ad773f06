"""A changed hash of a Python function's code, under an equal version, is said wherever something goes on: by the command, in a pipeline's notices, and as a warning in Python."""

import os
import pathlib
import subprocess
import warnings

import numpy as np
import penstock
import pytest
from penstock._running import _daemon

# Functions of this module travel by its name, as workers have pytest's sys.path.

INT = penstock.TensorSpec((), np.int64)
SINCE_CURSOR = "the code of its Python functions changed since the cursor was made"
FROM_STEP_1 = f"{SINCE_CURSOR}: from step 1 on values may differ from those of its stream"
WARNING = r"the code of Python functions of pipeline {} has changed since this cursor was saved: .*version= where that matters"


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


def dataset(factor):
    return penstock.Dataset.range(100).repeat().map(Times(factor), python=True, output=INT, version="1", seed=1, workers=1).batch(10)


def command(*words):
    """The command's exit code, what it prints, and what it says besides, at the private daemon."""
    done = subprocess.run(
        [pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstock", "--socket", _daemon.private_socket(), *words], capture_output=True, text=True, timeout=120
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def wrote(folder, name, of):
    """The file of its spec."""
    file = folder / f"{name}.textproto"
    file.write_text(of.to_textproto(name))
    return str(file)


@pytest.fixture
def pipeline(tmp_path):
    """Makes a named pipeline in the private daemon: pipeline(name, dataset, *words) → (exit code, what it says besides)."""
    made = []

    def make(name, of, *words):
        code, _, said = command("create", wrote(tmp_path, name, of), *words)
        made.append(name)
        return code, said

    yield make
    for name in made:
        assert command("delete", name)[0] == 0


@pytest.fixture(scope="module")
def cursor():
    """Behind one batch of twice each number. The function is held, as the daemon reads it again."""
    with iter(dataset(2)) as iterator:
        assert next(iterator).tolist() == list(range(0, 20, 2))
        return iterator.state_dict()["cursor"]


def test_create_and_get_say_so_of_the_cursor_that_a_pipeline_began_from(tmp_path, pipeline, cursor):
    (tmp_path / "cursor").write_bytes(cursor)
    words = ["--resume", str(tmp_path / "cursor")]
    changed, same = dataset(3), dataset(2)
    assert pipeline("code-changed", changed, *words) == (0, f"penstock create: {FROM_STEP_1}\n")
    assert f"# notice: {FROM_STEP_1}\n" in command("get", "code-changed")[1]
    assert pipeline("code-same", same, *words) == (0, "")
    assert "notice" not in command("get", "code-same")[1]
    with penstock.attach("code-changed", _daemon.private_socket(), timeout=60) as loader:
        assert next(loader).tolist() == list(range(30, 60, 3))
    with penstock.attach("code-same", _daemon.private_socket(), timeout=60) as loader:
        assert next(loader).tolist() == list(range(20, 40, 2))


def test_run_says_so(tmp_path, cursor):
    (tmp_path / "cursor").write_bytes(cursor)
    changed = dataset(3)
    code, printed, said = command("run", wrote(tmp_path, "code-run", changed), "--resume", str(tmp_path / "cursor"), "--steps", "1")
    assert (code, said) == (0, f"penstock run: {FROM_STEP_1}\n") and printed.startswith("step 1")


def test_a_consumer_is_warned_where_it_goes_on_from_a_cursor(pipeline, cursor):
    changed = dataset(3)
    assert pipeline("code-attached", changed)[0] == 0
    for given in (cursor, cursor.hex()):
        with pytest.warns(RuntimeWarning, match=WARNING.format("code-attached")) as warned:
            loader = penstock.attach("code-attached", _daemon.private_socket(), group="cursor", timeout=60, cursor=given)
        assert [warning.filename for warning in warned] == [__file__]
        assert next(loader).tolist() == list(range(30, 60, 3))
        own = loader.cursor
        loader.close()
    loader = penstock.attach("code-attached", _daemon.private_socket(), group="state", timeout=60)
    with pytest.warns(RuntimeWarning, match=WARNING.format("code-attached")) as warned:
        loader.load_state_dict({"cursor": cursor, "step": 0})
    assert [warning.filename for warning in warned] == [__file__]
    assert next(loader).tolist() == list(range(30, 60, 3))
    loader.close()
    # Where it is the same nothing is said.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with penstock.attach("code-attached", _daemon.private_socket(), group="own", timeout=60, cursor=own) as loader:
            assert next(loader).tolist() == list(range(60, 90, 3))
            loader.load_state_dict({"cursor": own, "step": 1})
            assert next(loader).tolist() == list(range(60, 90, 3))


def test_a_cursor_of_batches_of_ones_own_size_is_looked_at_too(pipeline):
    first, changed = dataset(2), dataset(3)
    assert pipeline("code-own-first", first)[0] == 0
    with penstock.attach("code-own-first", _daemon.private_socket(), timeout=60, batch_size=4) as loader:
        assert [next(loader).tolist()[0] for _ in range(3)] == [0, 8, 16]
        # Inside of the second of the daemon's batches: in front of the first there is no code yet.
        inside = loader.cursor
    assert pipeline("code-own", changed)[0] == 0
    with pytest.warns(RuntimeWarning, match=WARNING.format("code-own")):
        loader = penstock.attach("code-own", _daemon.private_socket(), timeout=60, batch_size=4, cursor=inside)
    assert next(loader).tolist() == [36, 39, 42, 45]
    loader.close()


def test_an_iterator_of_a_named_pipeline_warns_once(pipeline, cursor):
    changed = dataset(3)
    with changed.loader(socket=_daemon.private_socket(), name="code-iterated", timeout=60) as iterator:
        assert next(iterator).tolist() == list(range(0, 30, 3))
        state = {**iterator.state_dict(), "cursor": cursor}
        with pytest.warns(RuntimeWarning) as warned:
            iterator.load_state_dict(state)
        assert len(warned) == 1 and "pipeline code-iterated has changed" in str(warned[0].message)
        assert next(iterator).tolist() == list(range(30, 60, 3))
    assert command("delete", "code-iterated")[0] == 0


def test_update_says_so(tmp_path, pipeline):
    first, changed, renamed = dataset(2), dataset(3), dataset(2)
    assert pipeline("code-updated", first)[0] == 0
    code, _, said = command("update", "code-updated", "--workers", "2")
    assert (code, said) == (0, "")
    code, _, said = command("update", "code-updated", "--spec", wrote(tmp_path, "same", renamed), "--at-step", "1000")
    assert (code, said) == (0, "")
    assert "notice" not in command("get", "code-updated")[1]
    code, _, said = command("update", "code-updated", "--spec", wrote(tmp_path, "changed", changed), "--at-step", "2000")
    sentence = "from step 2000 on the code of its Python functions is another one than before"
    assert (code, said) == (0, f"penstock update: {sentence}\n")
    assert f"# notice: {sentence}\n" in command("get", "code-updated")[1]
    assert command("update", "code-updated", "--withdraw")[0] == 0
    assert "notice" not in command("get", "code-updated")[1]


def test_seek_says_so(tmp_path, pipeline, cursor):
    (tmp_path / "cursor").write_bytes(cursor)
    changed = dataset(3)
    assert pipeline("code-sought", changed)[0] == 0
    code, _, said = command("seek", "code-sought", "--cursor", str(tmp_path / "cursor"), "--at-step", "1000")
    assert (code, said) == (0, f"penstock seek: {SINCE_CURSOR}\n")
    code, _, said = command("seek", "code-sought", "--beginning", "--at-step", "2000")
    assert (code, said) == (0, "")
