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
    assert fixed["workers"] == 5 and "autotune" not in fixed


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
    assert "autotune" not in stats(tuned)


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
