"""Events and stats as streams, the list of groups, and what of a pipeline's state survives the daemon."""

import json
import os
import re
import signal

import pytest

import tfrecord_files
from programs import Daemon, Penstock, eventually


def ok(result):
    assert result.code == 0, result
    return result.out


def kinds(text):
    return [json.loads(line)["kind"].removeprefix("EVENT_KIND_").lower() for line in text.splitlines()]


class Following:
    """`penstock events --follow`, read line by line."""

    def __init__(self, remote, *words):
        self.process = remote.start("events", *words, "--follow", "--json")
        self.events = []

    def until(self, kind):
        """The next one of this kind."""
        seen = len(self.events)
        while len(self.events) == seen or self.events[-1]["kind"] != f"EVENT_KIND_{kind.upper()}":
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.events.append(json.loads(line))
        return self.events[-1]

    def stop(self):
        self.process.kill()
        self.process.communicate()


def test_a_life_in_events(remote, counter):
    penstock = pytest.importorskip("penstock")
    spec = counter("endless", more="stage { repeat {} }")
    following = Following(remote)
    try:
        ok(remote("create", spec))
        assert following.until("created")["pipeline"] == "endless"
        first = penstock.attach("endless", socket=remote.socket, timeout=30, group="g", consumer="first")
        next(iter(first))
        attached = following.until("attached")["consumer"]
        assert (attached["group"], attached["name"], attached["pid"]) == ("g", "first", os.getpid())
        ok(remote("update", "endless", "--set", "map.K=3"))
        update = following.until("updated")["change"]
        assert update["stage"][0]["name"] == "map"
        ok(remote("slow", "endless", "g", "skip"))
        assert "skipped over" in following.until("updated")["text"]
        ok(remote("detach", "endless", ok(remote("consumers", "endless")).splitlines()[1].split()[0]))
        assert "sent away" in following.until("evicted")["text"]
        first.close()
        following.until("left")
        assert sum(event["kind"] == "EVENT_KIND_EVICTED" for event in following.events) == 1
        ok(remote("delete", "endless"))
        following.until("deleted")
        numbers = [int(event["number"]) for event in following.events]
        assert numbers == sorted(set(numbers))
        # The same from what is kept, of this pipeline, and from a number on.
        past = ok(remote("events", "endless", "--json"))
        assert [json.loads(line) for line in past.splitlines()] == following.events
        assert kinds(ok(remote("events", "endless", "--json", "--after", str(numbers[-3])))) == ["left", "deleted"]
        lines = ok(remote("events")).splitlines()
        assert len(lines) == len(numbers) and re.match(r"\d+  20\d\d-.*Z  endless  created  ", lines[0])
    finally:
        following.stop()
    assert "no pipeline" in remote("events", "nothing").err


def test_skipped_places_an_end_and_a_failure(remote, tmp_path):
    good, bad = tfrecord_files.example(n=1), bytearray(tfrecord_files.example(n=2))
    path = tmp_path / "shard.tfrecord"
    tfrecord_files.write(path, [good] * 4 + [bytes(bad)] + [good] * 3)
    data = bytearray(path.read_bytes())
    at = data.find(bytes(bad))
    data[at + 3] ^= 0x40
    path.write_bytes(data)
    for name, damage in (("skips", "damage { on_damage: SKIP_RECORD }"), ("fails", "")):
        spec = tmp_path / f"{name}.textproto"
        spec.write_text(f'name: "{name}" stage {{ tfrecord {{ files: "shard.tfrecord" {damage} }} }} '
                        'stage { parse_example { feature { key: "n" int64 {} } } } stage { batch { batch_size: 1 } }')
        ok(remote("create", spec))
    following = Following(remote, "skips")
    try:
        penstock = pytest.importorskip("penstock")
        for _ in penstock.attach("skips", socket=remote.socket, timeout=30):
            pass
        skipped = following.until("skipped")
        assert skipped["skipped"]["file"].endswith("shard.tfrecord") and int(skipped["skipped"]["offset"]) > 0
        assert "7 rows" in following.until("ended")["text"]
    finally:
        following.stop()
    failing = Following(remote, "fails")
    try:
        failed = failing.until("failed")
        assert "shard.tfrecord" in failed["error"]["message"] and failed["error"]["code"] == 15
    finally:
        failing.stop()


def test_stats_follow_until_the_pipeline_goes(remote, counter):
    ok(remote("create", counter()))
    following = remote.start("stats", "counter", "--follow", "--interval", "0.05")
    seen = []
    while len(seen) < 3:
        line = following.stdout.readline()
        assert line, following.stderr.read()
        seen += [line] if line.startswith("pipeline    counter") else []
    ok(remote("delete", "counter"))
    _, error = following.communicate(timeout=60)
    assert following.returncode == 1 and "NOT_FOUND" in error


def test_groups(remote, counter):
    penstock = pytest.importorskip("penstock")
    ok(remote("create", counter("endless", more="stage { repeat {} }")))
    ranks = [penstock.attach("endless", socket=remote.socket, timeout=30, group="r", mode="rank", rank=rank, world_size=2)
             for rank in range(2)]
    alone = penstock.attach("endless", socket=remote.socket, timeout=30, group="a")
    lines = ok(remote("groups", "endless")).splitlines()
    uid = str(os.getuid())
    # Consumers of several users may be in one group that broadcasts.
    assert [line.split()[:5] for line in lines[1:]] == [["a", "broadcast", "1", "0", "0"], ["r", "rank", uid, "2", "2"]]
    for one in (*ranks, alone):
        one.close()


def test_a_pause_and_a_policy_survive_the_daemon(tmp_path, counter):
    spec = counter("endless", more="stage { repeat {} }")
    daemon = Daemon(tmp_path / "run" / "penstock.sock")
    remote = Penstock(tmp_path, daemon.socket)
    ok(remote("create", spec))
    ok(remote("pause", "endless"))
    ok(remote("slow", "endless", "g", "skip"))
    ok(remote("slow", "endless", "h", "block", "--lag", "2.5"))
    ok(remote("update", "endless", "--workers", "2"))
    for how in (signal.SIGKILL, signal.SIGTERM):
        daemon.process.send_signal(how)
        daemon.process.wait(60)
        daemon = Daemon(tmp_path / "run" / "penstock.sock")
        eventually(lambda: "paused" in ok(remote("list")))
        assert "workers: 2" in ok(remote("get", "endless"))
        assert kinds(ok(remote("events", "endless", "--json")))[0] == "returned"
        penstock = pytest.importorskip("penstock")
        loaders = [penstock.attach("endless", socket=daemon.socket, timeout=30, group=group) for group in "gh"]
        assert [line.rstrip().split("  ")[-1].strip() for line in ok(remote("groups", "endless")).splitlines()[1:]] == ["skip", "block, 2500 ms"]
        for loader in loaders:
            loader.close()
    assert json.loads(ok(remote("top", "endless", "--count", "1", "--json"))).get("steps", "0") == "0"
    ok(remote("resume", "endless"))
    daemon.kill()
    daemon = Daemon(tmp_path / "run" / "penstock.sock")
    eventually(lambda: "running" in ok(remote("list")))
    eventually(lambda: int(json.loads(ok(remote("top", "endless", "--count", "1", "--json")))["steps"]) > 0)
    assert daemon.stop() == 0
