"""Looking at a pass from Python: stats with the bottleneck, the socket, a trace; and `penstock top`, which finds private daemons by itself."""

import json
import os
import pathlib
import pickle
import subprocess

import penstock
import pytest
from penstock._epochs import EpochLoader
from penstock._running import _daemon, _watching

D = penstock.Dataset
PENSTOCK = pathlib.Path(os.environ["PENSTOCK_BIN"]).resolve() / "penstock"


def endless():
    return D.range(1000).map(lambda x: {"x": x * 2}).batch(10).repeat()


def first_told(stats, batches):
    """What `stats` gives as soon as the daemon has looked at the pipeline for long enough to tell what holds it up."""
    while True:
        next(batches)
        told = stats()
        if told["sentence"]:
            return told


def test_a_pass_says_what_holds_it_up():
    dataset = endless()
    assert dataset.stats() == {}
    with iter(dataset) as iterator:
        told = first_told(dataset.stats, iterator)
        assert told["bottleneck"] in ("consumer", "range", "map", "batch", "repeat", "reading")
        assert told["batches"] > 0 and told["copies"] == 0
        assert {"bottleneck", "sentence"} <= set(iterator.stats())
    assert dataset.stats()["batches"] == iterator.stats()["batches"] > 0
    assert dataset.stats()["sentence"] == iterator.stats()["sentence"] != ""


def test_the_daemon_is_asked_once_a_second_at_most(monkeypatch):
    asked = []
    stats = penstock._control.stats
    monkeypatch.setattr(penstock._control, "stats", lambda *where: asked.append(where) or stats(*where))
    monkeypatch.setattr(_watching, "_FRESH_SECONDS", 1e9)
    with iter(endless()) as iterator:
        next(iterator)
        for _ in range(20):
            iterator.stats()
    assert len(asked) == 1


def test_a_daemon_that_does_not_answer_is_left_alone(monkeypatch):
    asked = []

    def hangs(*where):
        asked.append(where)
        raise penstock.UnavailableError("no sign of life")

    monkeypatch.setattr(penstock._control, "stats", hangs)
    monkeypatch.setattr(_watching, "_FRESH_SECONDS", 0.0)
    with iter(endless()) as iterator:
        next(iterator)
        assert [iterator.stats()["sentence"] for _ in range(5)] == [""] * 5
    assert len(asked) == 1


def test_a_daemon_that_has_gone_tells_nothing(start):
    # A server of rings alone, which knows no requests.
    loader = start().attach()
    next(loader)
    told = loader.stats()
    assert told["batches"] == 1 and told["bottleneck"] == told["sentence"] == ""


def test_loaders_tell_and_name_their_daemon():
    loader = EpochLoader(endless(), lambda array: array.tolist(), {})
    assert loader.stats() == {} and loader.socket is None and "between two loops" in repr(loader)
    with pytest.raises(penstock.FailedPreconditionError, match="no loop over this loader is under way"):
        loader.profile("trace.json")
    for _ in loader:
        assert "bottleneck" in loader.stats() and loader.socket == _daemon.private_socket()
        assert "at step 0" in repr(loader) and "<td>batches</td>" in loader._repr_html_()
        break
    loader.close()


def test_commands_reach_a_pass_by_its_socket():
    with iter(endless()) as iterator:
        next(iterator)
        listed = subprocess.check_output([PENSTOCK, "--socket", iterator.socket, "list", "--json"], text=True)
        assert iterator.pipeline in [json.loads(line)["name"] for line in listed.splitlines()]
        assert iterator.pipeline in repr(iterator._loader) and "at step 0" in repr(iterator._loader)


def test_a_trace_is_written_beside_the_loop(tmp_path):
    dataset = endless()
    with pytest.raises(penstock.FailedPreconditionError, match="no pass over this dataset is under way"):
        dataset.profile(tmp_path / "early.json")
    with iter(dataset) as iterator:
        next(iterator)
        with dataset.profile(tmp_path / "trace.json", seconds=0.05) as profile:
            for _ in range(50):
                next(iterator)
        assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        assert profile.wait() == str(tmp_path / "trace.json") and "written" in repr(profile)
        with pytest.raises(penstock.Error, match="cannot write .*nowhere"):
            iterator.profile(tmp_path / "nowhere" / "trace.json", 0.01).wait()
        with pytest.raises(penstock.InvalidArgumentError, match="not in range"):
            iterator.profile(tmp_path / "x", -1).wait()


def test_a_dataset_that_has_been_watched_can_be_sent():
    dataset = D.range(3)
    iterator = iter(dataset)
    next(iterator)
    assert [int(x) for x in pickle.loads(pickle.dumps(dataset))] == [0, 1, 2]
    assert dataset.stats()["batches"] == 1


def top(*words, **variables):
    without = {key: value for key, value in os.environ.items() if key not in ("PENSTOCK_SOCKET", "XDG_RUNTIME_DIR")}
    return subprocess.run([PENSTOCK, "top", "--count", "1", *words], capture_output=True, text=True, env={**without, **variables})


def test_top_finds_private_daemons(tmp_path):
    with iter(endless()) as iterator:
        next(iterator)
        found = top("--json")
        assert iterator.pipeline in [json.loads(line)["name"] for line in found.stdout.splitlines()], found.stderr
        shown = top(iterator.pipeline).stdout
        assert f"daemon {iterator.socket}\n{iterator.pipeline}  running\n" in shown
        # One that is named is the only one.
        alone = top(PENSTOCK_SOCKET=str(tmp_path / "none"))
        assert alone.returncode == 1 and str(tmp_path / "none") in alone.stderr


def test_top_looks_into_nobody_elses_folders(tmp_path):
    socket = pathlib.Path(_daemon.private_socket())
    with iter(endless()) as iterator:
        next(iterator)
        # Open to others: whoever put it there may listen.
        (tmp_path / "penstock-open").mkdir(mode=0o755)
        (tmp_path / "penstock-open" / "penstock.sock").symlink_to(socket)
        (tmp_path / "penstock-own").mkdir(mode=0o700)
        (tmp_path / "penstock-own" / "penstock.sock").symlink_to(socket)
        shown = top(iterator.pipeline, TMPDIR=str(tmp_path)).stdout
        assert "penstock-own" in shown and "penstock-open" not in shown
