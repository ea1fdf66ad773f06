"""Order ops, shards and files that become others when an epoch ends: no batch is lost or doubled, and the history makes the same bytes again."""

import collections
import re

import pytest

import tfrecord_files
from programs import Daemon, Penstock, eventually
from test_steering import Running, first_difference, ok, steps_of

NUMBERS = """
name: "p"
stage { range { stop: 1000 } }
stage { shard { num_shards: 2 index: %(shard)d } }
stage { shuffle { buffer_size: %(buffer)d seed: %(seed)d } }
stage { map { constant { name: "K" value: 2 } out: "x = value * K" } }
stage { batch { batch_size: 16 } }
stage { repeat {} }
"""
STEPS_AN_EPOCH = 32  # 500 elements, the last batch short
OLD = {"shard": 0, "buffer": 50, "seed": 1}
NEW = {"shard": 1, "buffer": 7, "seed": 2}
STEPS = 4000


def write(path, text):
    path.write_text(text)
    return path


def epoch_in(text):
    return int(re.search(r"from epoch (\d+) on", text)[1])


def begun_in(history):
    """The epoch of the last change, 0 while it is not known, and its step, None while it waits."""
    change = history.split("change {")[-1]
    step = re.search(r"^  step: (\d+)", change, re.MULTILINE)
    epoch = int(re.search(r"^  epoch: (\d+)", change, re.MULTILINE)[1])
    return epoch, int(step[1]) if step and epoch else None


def begun(remote, running, epoch, at):
    """The history, once the trainer is behind the epoch's beginning."""
    running.read(at + 60 - len(running.lines))
    eventually(lambda: begun_in(ok(remote("history", "p"))) == (epoch, at))
    return ok(remote("history", "p"))


def lines(text):
    return text.splitlines()


@pytest.fixture
def specs(tmp_path):
    return write(tmp_path / "old.textproto", NUMBERS % OLD), write(tmp_path / "new.textproto", NUMBERS % NEW)


def test_order_ops_and_shards_change_when_the_epoch_ends(remote, specs, tmp_path):
    old, new = specs
    plain = ok(remote("run", old, "--steps", STEPS, "--name", "old"))
    other = ok(remote("run", new, "--steps", STEPS, "--name", "new"))
    running = Running(remote, old, STEPS)
    epoch = epoch_in(ok(remote("update", "p", "--spec", new)))
    waiting = ok(remote("history", "p"))
    assert begun_in(waiting) == (epoch, None)
    # What has no effect on bytes may be changed meanwhile, anything else not.
    ok(remote("update", "p", "--workers", "3"))
    for words in (("--set", "K=3"), ("--skip", "1"), ("--spec", old)):
        refused = remote("update", "p", *words)
        assert refused.code == 1 and f"a change waits for the beginning of epoch {epoch}" in refused.err, refused
    at = epoch * STEPS_AN_EPOCH
    text = begun(remote, running, epoch, at)
    assert f"epoch {epoch} begins at step {at}" in ok(remote("events", "p"))
    steered = running.rest()
    assert steps_of(steered) == list(range(STEPS))
    # Both specs make as many steps an epoch, so that the new one's epochs are where they would be without the old one.
    assert lines(steered) == lines(plain)[:at] + lines(other)[at:]

    history = write(tmp_path / "history", text)
    assert ok(remote("run", old, "--steps", STEPS, "--name", "again", "--history", history, "--workers", "2")) == steered
    # One that was written down while the change waited makes the same.
    assert ok(remote("run", old, "--steps", STEPS, "--name", "early", "--history", write(tmp_path / "waiting", waiting))) == steered
    for behind in (at - 5, at, at + 1, at + STEPS_AN_EPOCH + 3):
        cursor = tmp_path / "cursor"
        ok(remote("run", old, "--steps", behind, "--name", "head", "--history", history, "--cursor-out", cursor))
        tail = ok(remote("run", old, "--steps", "100", "--name", "tail", "--history", history, "--resume", cursor))
        assert lines(tail) == lines(steered)[behind:behind + 100], behind


def test_options_are_set_and_later_changes_follow(remote, specs, tmp_path):
    old, _ = specs
    running = Running(remote, old, STEPS)
    epoch = epoch_in(ok(remote("update", "p", "--next-epoch", "--set", "shuffle.buffer_size=9", "--set", "shard.index=1", "--set", "K=5")))
    at = epoch * STEPS_AN_EPOCH
    begun(remote, running, epoch, at)
    ok(remote("update", "p", "--set", "K=6"))
    # A change that has not begun itself is gone on from.
    assert epoch_in(ok(remote("update", "p", "--next-epoch", "--set", "shuffle.buffer_size=8"))) > epoch
    running.read(200)
    eventually(lambda: begun_in(ok(remote("history", "p")))[1] is not None)
    ok(remote("update", "p", "--skip", "3"))
    # Also in front of the change before it.
    ok(remote("update", "p", "--next-epoch", "--set", "shuffle.buffer_size=9"))
    running.read(200)
    running.read(100)
    eventually(lambda: begun_in(ok(remote("history", "p")))[1] is not None)
    # Stages may come and go.
    shorter = (NUMBERS % NEW).replace("stage { shuffle", "stage { take { count: 64 } }\nstage { filter { predicate: \"value % 4 == 1\" } }\nstage { shuffle")
    second = epoch_in(ok(remote("update", "p", "--spec", write(tmp_path / "shorter", shorter))))
    assert second > epoch
    running.read(1500)
    eventually(lambda: begun_in(ok(remote("history", "p")))[1] is not None)
    text = ok(remote("history", "p"))
    assert text.count("change {") == 6 and "take" in ok(remote("get", "p"))
    steered = running.rest()
    assert steps_of(steered) == list(range(STEPS))
    again = ok(remote("run", old, "--steps", STEPS, "--name", "again", "--history", write(tmp_path / "history", text)))
    assert first_difference(again, steered) is None


def test_a_daemon_that_is_killed_in_front_of_the_epoch_and_behind_it(tmp_path, specs):
    old, new = specs
    daemon = Daemon(tmp_path / "penstock.sock")
    try:
        remote = Penstock(tmp_path, daemon.socket)
        running = Running(remote, old, STEPS)
        epoch = epoch_in(ok(remote("update", "p", "--spec", new)))
        waiting = ok(remote("history", "p"))
        daemon.kill()
        daemon = Daemon(tmp_path / "penstock.sock")
        eventually(lambda: remote("history", "p").code == 0)
        assert ok(remote("history", "p")) == waiting
        text = begun(remote, running, epoch, epoch * STEPS_AN_EPOCH)
        daemon.kill()
        daemon = Daemon(tmp_path / "penstock.sock")
        eventually(lambda: remote("history", "p").code == 0)
        assert ok(remote("history", "p")) == text
        steered = running.rest()
        assert steps_of(steered) == list(range(STEPS))
        again = ok(remote("run", old, "--steps", STEPS, "--name", "again", "--history", write(tmp_path / "history", text)))
        assert first_difference(again, steered) is None and len(lines(again)) == STEPS
    finally:
        daemon.stop()


def test_a_change_that_waits_is_withdrawn(remote, specs, tmp_path):
    old, new = specs
    plain = ok(remote("run", old, "--steps", STEPS, "--name", "old"))
    refused = remote("update", "p", "--withdraw")
    assert refused.code == 1 and 'no pipeline "p"' in refused.err
    running = Running(remote, old, STEPS)
    refused = remote("update", "p", "--withdraw")
    assert refused.code == 1 and "no change waits" in refused.err
    epoch = epoch_in(ok(remote("update", "p", "--spec", new)))
    refused = remote("update", "p", "--withdraw", "--workers", "2")
    assert refused.code == 1 and "nothing but the name and the etag goes with it" in refused.err
    assert epoch_in(ok(remote("update", "p", "--withdraw"))) == epoch
    assert "withdrawn_unix_ms: " in ok(remote("history", "p"))
    assert f"that from epoch {epoch} on was withdrawn" in ok(remote("events", "p"))
    # A step far ahead, twice; and one that stays.
    for k, step in ((3, 3500), (4, 3600)):
        ok(remote("update", "p", "--set", f"K={k}", "--at-step", step))
    assert f"step {3600}" in ok(remote("update", "p", "--withdraw"))
    assert f"step {3500}" in ok(remote("update", "p", "--withdraw"))
    ok(remote("update", "p", "--set", "K=5", "--at-step", "3900"))
    running.read(STEPS_AN_EPOCH * (epoch + 2))
    history = write(tmp_path / "history", ok(remote("history", "p")))
    assert history.read_text().count("withdrawn_unix_ms") == 3
    steered = running.rest()
    assert steps_of(steered) == list(range(STEPS))
    assert first_difference(steered, plain) == 3900
    assert ok(remote("run", old, "--steps", STEPS, "--name", "again", "--history", history)) == steered


def test_a_daemon_that_is_killed_in_front_of_a_withdrawal_and_behind_it(tmp_path, specs):
    old, new = specs
    daemon = Daemon(tmp_path / "penstock.sock")
    try:
        remote = Penstock(tmp_path, daemon.socket)
        plain = ok(remote("run", old, "--steps", STEPS, "--name", "old"))
        running = Running(remote, old, STEPS)
        for withdrawn in (False, True, True):
            if not withdrawn:
                epoch_in(ok(remote("update", "p", "--spec", new)))
            elif "withdrawn" not in ok(remote("history", "p")):
                ok(remote("update", "p", "--withdraw"))
            kept = ok(remote("history", "p"))
            assert ("withdrawn_unix_ms" in kept) == withdrawn
            daemon.kill()
            daemon = Daemon(tmp_path / "penstock.sock")
            eventually(lambda: remote("history", "p").code == 0)
            assert ok(remote("history", "p")) == kept
        refused = remote("update", "p", "--withdraw")
        assert refused.code == 1 and "no change waits" in refused.err
        assert running.rest() == plain
    finally:
        daemon.stop()


FILES = """
name: "p"
stage { tfrecord { files: "data/*.tfrecord" cycle_length: 2 } }
stage { shuffle { buffer_size: 20 seed: 5 } }
stage { parse_example { feature { key: "n" int64 {} } } }
stage { batch { batch_size: 8 } }
stage { repeat {} }
"""


def shard(tmp_path, name, first, records):
    (tmp_path / "data").mkdir(exist_ok=True)
    tfrecord_files.write(tmp_path / "data" / f"{name}.tfrecord", [tfrecord_files.example(n=first + n) for n in range(records)])


def test_files_that_are_added_and_left_out(tmp_path):
    shard(tmp_path, "a", 0, 100)
    shard(tmp_path, "b", 1000, 60)
    spec = write(tmp_path / "p.textproto", FILES)
    daemon = Daemon(tmp_path / "penstock.sock")
    try:
        remote = Penstock(tmp_path, daemon.socket)
        plain = ok(remote("run", spec, "--steps", "300", "--name", "plain"))
        running = Running(remote, spec, STEPS)
        shard(tmp_path, "c[1]", 2000, 40)
        # The same globs, which match one file more now.
        epoch = epoch_in(ok(remote("update", "p", "--next-epoch")))
        assert ok(remote("history", "p")).count("change {") == 2  # with what the globs matched in the beginning
        # Both files of before, by the daemon that comes back: not what the glob matches now. It was stopped cleanly: after a kill the next
        # epoch is not known until the steps that were reserved have been made.
        assert daemon.stop() == 0
        daemon = Daemon(tmp_path / "penstock.sock")
        eventually(lambda: remote("history", "p").code == 0)
        at = epoch * 20
        begun(remote, running, epoch, at)
        second = epoch_in(ok(remote("update", "p", "--files", "data/[bc]*.tfrecord")))
        daemon.kill()
        daemon = Daemon(tmp_path / "penstock.sock")
        eventually(lambda: remote("history", "p").code == 0)
        text = begun(remote, running, second, at + 25 * (second - epoch))
        steered = running.rest()
        assert steps_of(steered) == list(range(STEPS))
        assert lines(steered)[:20] == lines(plain)[:20]
        history = write(tmp_path / "history", text)
        # Files that come later have nothing to do with it.
        shard(tmp_path, "d", 3000, 10)
        assert ok(remote("run", spec, "--steps", STEPS, "--name", "again", "--history", history)) == steered
        # Each epoch has as many rows as its files have records.
        rows = collections.Counter()
        for line in lines(steered):
            rows[int(re.search(r"  epoch (\d+)", line)[1])] += int(re.search(r" int64 \D(\d+)", line)[1])
        whole = sorted(rows)[:-1]
        assert [rows[one] for one in whole] == [160 if one < epoch else 200 if one < second else 100 for one in whole]
    finally:
        daemon.stop()


RANGE = 'name: "p" stage { range { stop: 100 } } %s'
BATCH = "stage { batch { batch_size: 4 } }"


@pytest.mark.parametrize("before, after, words, complaint", [
    (BATCH, BATCH, (), "no epoch follows: the pipeline has no `repeat`"),
    ("stage { repeat {} }" + BATCH, "stage { repeat {} }" + BATCH, (), "epochs do not end where steps do, since batch (stage batch) stands behind repeat"),
    (BATCH + "stage { repeat {} }", BATCH, (), "no epoch follows"),
    (BATCH + "stage { repeat {} }", 'stage { map { out: "value = float32(value)" } }' + BATCH + "stage { repeat {} }", (), "consumers would get another element"),
    (BATCH + "stage { repeat {} }", "stage { batch { batch_size: 8 } } stage { repeat {} }", (), "a batch_size larger than that of the beginning"),
    (BATCH + "stage { repeat {} }", BATCH + "stage { repeat { count: 1 } }", (), "the new repeat has the count 1"),
    (BATCH + "stage { repeat {} }", BATCH + "stage { repeat {} }", ("--at-step", "9000", "--next-epoch"), "found both"),
    (BATCH + "stage { repeat {} }", BATCH + "stage { repeat {} }", ("--skip", "1"), "neither leaves steps out nor seeks"),
    (BATCH + "stage { repeat {} }", "stage { shufle {} }", (), "shufle"),
])
def test_what_cannot_be_changed_at_an_epoch_is_one_clear_error(remote, tmp_path, before, after, words, complaint):
    ok(remote("create", write(tmp_path / "before", RANGE % before)))
    text = ok(remote("get", "p")), ok(remote("history", "p"))
    refused = remote("update", "p", "--spec", write(tmp_path / "after", RANGE % after), *words)
    assert refused.code == 1 and complaint in refused.err, refused
    assert (ok(remote("get", "p")), ok(remote("history", "p"))) == text


def test_the_last_epoch_is_followed_by_those_of_a_longer_repeat(remote, tmp_path):
    finite = RANGE % (BATCH + "stage { repeat { count: %d } }")
    running_spec = write(tmp_path / "spec", finite % 40)
    running = Running(remote, running_spec, 1500)
    # It may be any epoch that is being made; the ring holds some of them.
    ok(remote("update", "p", "--spec", write(tmp_path / "longer", finite % 60)))
    out = running.rest()
    assert steps_of(out) == list(range(1500))
