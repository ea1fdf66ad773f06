"""What the daemon chooses by itself, and what a look at a batch shows."""

import json

import pytest

from programs import Daemon, Penstock, eventually


def ok(result):
    assert result.code == 0, result
    return result.out


HEAVY = """
name: "heavy"
stage { range { stop: 100000000 } }
stage { shuffle { buffer_size: 100 seed: 4 } }
stage { map { constant { name: "ZERO" dtype: "float64" shape: 400 %s } out: "x = cos(sin(exp(ZERO + float64(value) / 1e9)))" } }
stage { batch { batch_size: 32 } }
""" % ("value: 0 " * 400)


@pytest.fixture
def tuned(tmp_path):
    config = tmp_path / "penstockd.textproto"
    config.write_text("worker_defaults { autotune: true workers: 6 }")
    daemon = Daemon(tmp_path / "run" / "penstock.sock", "--config", str(config))
    yield Penstock(tmp_path, daemon.socket)
    daemon.stop()


def stats(remote, name="heavy"):
    return json.loads(ok(remote("top", name, "--count", "1", "--json")))


def test_workers_are_given_back_and_taken_again_and_fixed_by_hand(tuned, tmp_path):
    spec = tmp_path / "heavy.textproto"
    spec.write_text(HEAVY)
    ok(tuned("create", spec))
    # Nobody reads: a worker is enough.
    eventually(lambda: stats(tuned).get("autotune", {}).get("changes", "0") != "0")
    report = stats(tuned)["autotune"]
    assert report["on"] and report["most_workers"] == 6 and report["least_workers"] == 1
    assert int(stats(tuned)["workers"]) < 6 and " to " in report["reason"]
    assert "tuned" in ok(tuned("events", "heavy")) and "workers chosen by the daemon" in ok(tuned("top", "heavy", "--count", "1"))
    # By hand: the daemon lets go of it.
    ok(tuned("update", "heavy", "--workers", "5"))
    fixed = stats(tuned)
    assert fixed["workers"] == 5
    eventually(lambda: not stats(tuned)["autotune"].get("tunes_workers", False))
    assert "workers chosen" not in ok(tuned("top", "heavy", "--count", "1"))
    # And takes it again.
    events = ok(tuned("events", "heavy")).count("tuned")
    ok(tuned("update", "heavy", "--workers", "0"))
    eventually(lambda: stats(tuned)["autotune"].get("tunes_workers", False))
    eventually(lambda: ok(tuned("events", "heavy")).count("tuned") > events)


def test_the_bytes_do_not_depend_on_what_is_chosen(tuned, tmp_path):
    penstock = pytest.importorskip("penstock")

    def taken(name, steps):
        with penstock.attach(name, socket=tuned.socket, timeout=30) as loader:
            return [batch["x"].tobytes() for batch, _ in zip(loader, range(steps))]

    spec = tmp_path / "heavy.textproto"
    spec.write_text(HEAVY)
    ok(tuned("create", spec, "--name", "plain", "--workers", "2"))
    ok(tuned("create", spec))
    # It has fewer workers before anybody comes, and whatever it takes while it is read.
    eventually(lambda: "tuned" in ok(tuned("events", "heavy")))
    assert taken("heavy", 60) == taken("plain", 60)
    assert "tuned" not in ok(tuned("events", "plain"))


def test_a_spec_that_names_its_workers_keeps_them(tuned, tmp_path):
    spec = tmp_path / "heavy.textproto"
    spec.write_text(HEAVY + "workers: 3")
    ok(tuned("create", spec))
    eventually(lambda: stats(tuned).get("autotune", {}).get("number"))
    report = stats(tuned)["autotune"]
    assert not report.get("tunes_workers", False) and stats(tuned)["workers"] == 3
    assert [number["name"] for number in report["number"] if number.get("on")] == ["ring.slots"]
    # With all of them named nothing is left to choose.
    ok(tuned("update", "heavy", "--slots", "4", "--read-ahead", "1048576"))
    assert "autotune" not in stats(tuned)
    ok(tuned("update", "heavy", "--slots", "0"))
    eventually(lambda: stats(tuned).get("autotune", {}).get("on"))


def test_read_ahead_and_memory_are_changed_while_it_runs(daemon, remote, counter, tmp_path):
    spec = counter(records=4000, more="stage { repeat {} }\nread_ahead_bytes: 131072")
    plain = ok(remote("run", spec, "--steps", "3000", "--name", "plain"))
    ok(remote("create", spec))
    source = lambda: stats(remote, "counter")["stages"][0]
    eventually(lambda: source().get("read_ahead_bytes") == "131072")
    ok(remote("update", "counter", "--read-ahead", "4194304", "--memory", "400000"))
    assert source()["read_ahead_bytes"] == "4194304" and stats(remote, "counter")["slots"] <= 6
    assert "read_ahead_bytes: 4194304" in ok(remote("get", "counter"))
    for words, complaint in ((("--read-ahead", "7"), "read_ahead_bytes out of range: 7"), (("--memory", "1000"), "memory_bytes: expected 0"),
                             (("--slots", "40"), "memory_bytes of the pipeline, 400000, is enough for 6")):
        refused = remote("update", "counter", *words)
        assert refused.code == 1 and complaint in refused.err, refused
    history = tmp_path / "history"
    history.write_text(ok(remote("history", "counter")))
    assert "memory_bytes: 400000" in history.read_text()
    assert ok(remote("run", spec, "--steps", "3000", "--name", "again", "--history", history)) == plain
    # It is kept.
    socket = daemon.socket
    daemon.kill()
    second = Daemon(socket)
    try:
        eventually(lambda: remote("history", "counter").code == 0)
        assert "read_ahead_bytes: 4194304" in ok(remote("get", "counter"))
        assert "slots: 6" in ok(remote("get", "counter"))
        ok(remote("update", "counter", "--read-ahead", "0", "--memory", "0"))
        assert "read_ahead_bytes" not in ok(remote("get", "counter"))
    finally:
        second.stop()


def test_a_sample(remote, counter, tmp_path):
    assert ok(remote("create", counter("counter", more="stage { repeat {} }")))
    eventually(lambda: remote("sample", "counter").code == 0)
    text = ok(remote("sample", "counter"))
    assert "4 rows" in text and "n  int64  (4)" in text and "x  float32  (4)" in text and "mean" in text
    refused = remote("sample", "counter", "--png", tmp_path / "sheet.png")
    assert refused.code == 1 and "looks like pictures" in refused.err

    pictures = tmp_path / "pictures.textproto"
    pictures.write_text("""
name: "pictures"
stage { range { stop: 64 } }
stage { map { constant { name: "ZERO" dtype: "uint8" shape: 20 shape: 30 shape: 3 %s } out: "image = ZERO + uint8(value)" } }
stage { batch { batch_size: 8 } }
stage { repeat {} }
""" % ("value: 0 " * 1800))
    ok(remote("create", pictures))
    eventually(lambda: remote("sample", "pictures", "--png", tmp_path / "sheet.png", "--rows", "3").code == 0)
    data = (tmp_path / "sheet.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20], "big") == 3 * 30 + 2 * 2 and int.from_bytes(data[20:24], "big") == 20
    assert "no pipeline" in remote("sample", "none").err
