"""The daemon, the command and Python with ops that they were not compiled with (CMakeLists.txt here says how)."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

from programs import Daemon, Penstock, eventually  # noqa: E402

SPEC = """
name: "p"
stage { range { stop: 4000 } }
stage { thin { one_of: 2 salt: 3 } }
stage { keep_if { constant { name: "LOW" value: 10 } predicate: "value >= LOW" } }
stage { join { rows: 8 } }
stage { repeat {} }
"""


@pytest.fixture(autouse=True)
def programs_with_new_ops(monkeypatch):
    folder = os.environ.get("PENSTOCK_BIN")
    if not folder:
        pytest.skip("PENSTOCK_BIN is not set; ./dev test sets it")
    folder = pathlib.Path(folder).parent / "new_op"
    assert (folder / "penstockd").exists(), "cmake --build builds it with all others"
    monkeypatch.setenv("PENSTOCK_BIN", str(folder))
    monkeypatch.setenv("PENSTOCKD", str(folder / "penstockd"))


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "p.textproto"
    path.write_text(SPEC)
    return path


def ok(done):
    assert done.code == 0, done
    return done.out


def test_it_is_validated_tried_and_run(tmp_path, spec):
    penstock = Penstock(tmp_path)
    assert "value  int64" in ok(penstock("validate", spec))
    assert "the same bytes" in ok(penstock("selftest", spec, "--steps", 20, "--resumes", 2, "--kills", 1, "--seed", 3, "--workers", 2))
    changed = ok(penstock("run", spec, "--steps", 3, "--set", "LOW=3000"))
    assert changed != ok(penstock("run", spec, "--steps", 3))


def test_it_is_created_watched_changed_and_resumed(tmp_path, spec):
    daemon = Daemon(tmp_path / "run" / "penstock.sock")
    try:
        remote = Penstock(tmp_path, daemon.socket)
        ok(remote("create", spec))
        counted = tmp_path / "counted.textproto"
        counted.write_text('name: "counted"\nstage { range { stop: 4000 } }\nstage { join { rows: 8 } }\n')
        ok(remote("create", counted))

        def stages(name):
            return json.loads(ok(remote("top", name, "--count", "1", "--json")))["stages"]

        assert [stage["name"] for stage in stages("p")] == ["range", "thin", "keep_if", "join", "repeat"]
        # Nobody takes batches: elements of steps that wait for a slot lie in front of what joins them, as with a batch.
        eventually(lambda: int(stages("counted")[1].get("queue", 0)) > 0)
        assert "updated p from step" in ok(remote("update", "p", "--set", "join.rows=4"))
        refused = remote("update", "p", "--set", "thin.one_of=3")
        assert "keep_if (stage keep_if) behind it keeps elements" in refused.err
        refused = remote("update", "p", "--set", "thin.salt=4")
        assert "thin decides the order" in refused.err
    finally:
        daemon.stop()


PYTHON = """
import penstock

dataset = penstock.Dataset.range(100)._then("thin", [("one_of", 2), ("salt", 3)])._then("join", [("rows", 4)])
batches = [batch.tolist() for batch in dataset]
assert 5 < len(batches) < 20, batches
iterator = iter(dataset)
next(iterator)
state = iterator.state_dict()
again = iter(dataset)
again.load_state_dict(state)
assert [batch.tolist() for batch in again] == batches[1:]
"""


def test_python_needs_nothing_but_its_method(tmp_path):
    done = subprocess.run([sys.executable, "-c", PYTHON], cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
