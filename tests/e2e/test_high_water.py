"""A change never reaches behind what anybody has taken: after deaths, clean stops, and when a stream has gone back."""

import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from programs import Daemon, Penstock, eventually

penstock = pytest.importorskip("penstock")

ROWS = 2
SPEC = """
name: "p"
ring { slots: 32 }
stage { range { stop: 1000000 } }
stage { batch { batch_size: 2 } }
stage { map { constant { name: "K" value: 1 dtype: "int64" } out: "y = value * K" } }
"""


class Restarted:
    """A daemon that ends and comes back."""

    def __init__(self, folder):
        self.socket = folder / "penstock.sock"
        self.daemon = Daemon(self.socket)
        self.remote = Penstock(folder, str(self.socket))

    def restart(self, how, trainers=()):
        """The trainers' processes die with it."""
        if how == signal.SIGKILL:
            self.daemon.kill()
        else:
            assert self.daemon.stop(how) == 0
        for trainer in trainers:
            trainer.kill()
            trainer.wait(60)
        self.daemon = Daemon(self.socket, "--rejoin-seconds", "3")
        assert self.daemon.is_ready

    def begun(self, *words):
        """The command, once the pipeline has begun again: whom it waits for may have left just before the death."""
        results = []

        def ask():
            results[:] = [self.remote(*words)]
            return not any(text in results[0].err for text in ("has not begun yet", "has not come back yet", "cannot connect"))

        eventually(ask)
        return results[0]

    def attach(self, **options):
        return penstock.attach("p", socket=str(self.socket), timeout=60, **options)


TRAINER = """
import sys, time, penstock
rank = {"group": "ranks", "mode": "rank", "rank": int(sys.argv[3]), "world_size": int(sys.argv[4])} if sys.argv[4] != "0" else {}
loader = penstock.attach("p", socket=sys.argv[1], timeout=60, **rank)
print("attached", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    next(loader)
print(loader.cursor.hex(), flush=True)
sys.stdin.readline()
"""


def trainers(pair, *steps, ranks=0):
    """Processes that have taken so many steps, and the cursors behind them."""
    made = [
        subprocess.Popen(
            [sys.executable, "-c", TRAINER, str(pair.socket), str(count), str(i), str(ranks)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i, count in enumerate(steps)
    ]
    for trainer in made:
        assert trainer.stdout.readline() == "attached\n"
    for trainer in made:
        trainer.stdin.write("\n")
        trainer.stdin.flush()
    return made, [bytes.fromhex(trainer.stdout.readline()) for trainer in made]


@pytest.fixture
def pair(tmp_path):
    one = Restarted(tmp_path)
    (tmp_path / "p.textproto").write_text(SPEC)
    yield one
    one.daemon.stop()


def ok(result):
    assert result.code == 0, result
    return result.out


def step_in(text):
    return int(re.search(r"from step (\d+) on", text)[1])


def take(loader, seen, steps):
    for _ in range(steps):
        batch = next(loader)
        seen[loader.step] = batch["y"].tolist()
        del batch


def together(*works):
    """Each in a thread: who comes back to a daemon waits for the others."""
    failures = []

    def run(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures, failures


def begun(pair):
    """The stream has begun again, with both."""
    return len(pair.remote("consumers", "p").out.splitlines()) == 3


def plain(step):
    return [ROWS * step, ROWS * step + 1]


def changed_from(words, step, first, cursor_step):
    """What a step holds behind the change."""
    if words[0] == "--skip":
        return plain(step + 3)
    if words[0] == "--cursor":
        return plain(step - first + cursor_step)
    if "batch" in words[1]:
        return [ROWS * first + step - first]
    return [1000 * value for value in plain(step)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("words", [["--set", "map.K=1000"], ["--skip", "3"], ["--set", "batch.batch_size=1"], ["--cursor"]], ids=" ".join)
def test_fault_49_a_change_after_the_daemons_end_begins_behind_who_was_furthest(pair, tmp_path, words, how):
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    far, near = pair.attach(), pair.attach()
    seen_far, seen_near = {}, {}
    take(far, seen_far, 10)
    take(near, seen_near, 5)
    if words == ["--cursor"]:
        (tmp_path / "cursor").write_bytes(near.cursor)
        words = ["--cursor", tmp_path / "cursor"]
    ok(remote("pause", "p"))
    pair.restart(how)
    rest = [threading.Thread(target=take, args=[loader, seen, 1]) for loader, seen in ((far, seen_far), (near, seen_near))]
    for thread in rest:
        thread.start()
    eventually(lambda: begun(pair))
    command = ["seek", "p", *words] if words[0] == "--cursor" else ["update", "p", *words]
    early = remote(*command, "--at-step", "6")
    assert early.code == 1 and "step 6 is being made, or changed, already: the earliest is" in early.err and "may have been taken already" in early.err, early
    changed = remote(*command)
    first = step_in(ok(changed))
    assert f"steps in front of step {first} may have been taken already, before the daemon was started again" in changed.err, changed
    # After a clean end it is the first step that was in no ring.
    assert 10 <= first <= (5 + 32 + 32 if how == signal.SIGTERM else 4096)
    ok(remote("resume", "p"))
    for thread in rest:
        thread.join(60)
    together(lambda: take(far, seen_far, first - 5), lambda: take(near, seen_near, first))
    for step in range(first + 5):
        expected = plain(step) if step < first else changed_from(words, step, first, 5)
        for seen in (seen_far, seen_near):
            assert seen.get(step, expected) == expected, step
    assert len(seen_far) == first + 6 and len(seen_near) == first + 6


def test_two_ranks_have_halves_of_one_batch_after_a_death(pair):
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    ranks = [pair.attach(group="ranks", mode="rank", rank=rank, world_size=2) for rank in range(2)]
    seen = [{}, {}]
    take(ranks[0], seen[0], 10)
    take(ranks[1], seen[1], 5)
    ok(remote("pause", "p"))
    pair.restart(signal.SIGKILL)
    rest = [threading.Thread(target=take, args=[ranks[rank], seen[rank], 40]) for rank in range(2)]
    for thread in rest:
        thread.start()
    eventually(lambda: begun(pair))
    first = step_in(ok(remote("update", "p", "--set", "map.K=1000")))
    ok(remote("resume", "p"))
    for thread in rest:
        thread.join(60)
    together(*(lambda rank=rank: take(ranks[rank], seen[rank], first - len(seen[rank]) + 3) for rank in range(2)))
    for step in range(first + 3):
        factor = 1 if step < first else 1000
        assert [seen[0][step][0], seen[1][step][0]] == [factor * value for value in plain(step)], step


def test_a_rank_that_has_not_come_back_yet_has_halves_of_the_same_batches(pair):
    """The other one is slower, and asks for a change meanwhile."""
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    (far, near), _ = trainers(pair, 10, 5, ranks=2)
    ok(remote("pause", "p"))
    os.kill(far.pid, signal.SIGSTOP)
    pair.restart(signal.SIGKILL)
    try:
        assert step_in(ok(pair.begun("update", "p", "--set", "map.K=1000"))) >= 10
    finally:
        for trainer in (far, near):
            trainer.kill()
            trainer.wait(60)


def test_checkpoints_go_on_when_everybody_has_died_and_somebody_has_sought(pair):
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    gone, (cursor, _) = trainers(pair, 20, 5)
    ok(remote("pause", "p"))
    pair.restart(signal.SIGKILL, gone)
    # Nobody comes back to say what was had: the pipeline begins where the slower one was, and has made nothing yet.
    first = step_in(ok(pair.begun("seek", "p", "--beginning")))
    assert first >= 20
    ok(remote("update", "p", "--set", "map.K=7"))
    ok(remote("resume", "p"))
    back, late = pair.attach(cursor=cursor), pair.attach()
    seen_back, seen_late = {}, {}
    together(lambda: take(back, seen_back, first), lambda: take(late, seen_late, first + 20))
    for seen in (seen_back, seen_late):
        for step, rows in seen.items():
            assert rows == (plain(step) if step < first else [7 * value for value in plain(step - first)]), step
    assert max(seen_late) > first + 10
    assert min(seen_back) == 20


def test_what_somebody_has_taken_is_not_withdrawn_after_a_death(pair):
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    ok(remote("pause", "p"))
    first = step_in(ok(remote("update", "p", "--set", "map.K=1000")))
    ok(remote("resume", "p"))
    near, far = pair.attach(), pair.attach()
    seen = {}
    # One is in front of the change, and the other behind it.
    together(lambda: take(near, {}, first - 10), lambda: take(far, seen, first + 5))
    assert seen[first] == [1000 * value for value in plain(first)]
    # So that no step is made again before the change is asked to go.
    ok(remote("pause", "p"))
    pair.restart(signal.SIGKILL)
    refused = pair.begun("update", "p", "--withdraw")
    assert refused.code == 1 and "every step in front of it has been begun" in refused.err, refused


def test_a_change_begins_behind_who_was_ahead_of_a_stream_that_has_gone_back(pair):
    """No death at all: whoever reads alone takes the stream along."""
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    first_reader = pair.attach()
    seen = {}
    take(first_reader, seen, 5)
    cursor = first_reader.cursor
    take(first_reader, seen, 195)
    far = first_reader.cursor
    first_reader.close()
    back = pair.attach(cursor=cursor)
    take(back, seen, 1)
    early = remote("update", "p", "--skip", "4", "--at-step", "100")
    assert early.code == 1 and "may have been taken already, by those who were further on" in early.err, early
    first = step_in(ok(remote("update", "p", "--skip", "4")))
    assert first >= 200
    again = {}
    take(back, again, first)
    resumed = {}
    back.close()
    take(pair.attach(cursor=far), resumed, 60)
    for step, rows in {**again, **resumed}.items():
        assert rows == plain(step if step < first else step + 4), step
    assert min(resumed) == 200


def test_a_cursor_of_a_run_that_was_not_skipped_is_refused_behind_a_skip(pair, tmp_path):
    remote = pair.remote
    ok(remote("create", "p.textproto"))
    loader = pair.attach()
    take(loader, {}, 1)
    before = loader.cursor
    first = step_in(ok(remote("update", "p", "--skip", "5")))
    take(loader, {}, first + 9)
    own = loader.cursor
    ok(remote("run", "p.textproto", "--name", "other", "--steps", first + 10, "--cursor-out", tmp_path / "cursor"))
    with pytest.raises(penstock.Error, match=f"it had no change of position in front of step {first + 10}, this pipeline has 5 steps left out in front of step {first}"):
        pair.attach(cursor=(tmp_path / "cursor").read_bytes())
    seen = {}
    take(pair.attach(cursor=own), seen, 3)
    take(pair.attach(cursor=before), seen, first + 3)
    for step, rows in seen.items():
        assert rows == plain(step if step < first else step + 5)
    # A pipeline that begins behind one of these cursors goes on with what is behind it.
    (tmp_path / "own").write_bytes(own)
    ok(remote("create", "p.textproto", "--name", "p2", "--resume", tmp_path / "own"))
    assert next(penstock.attach("p2", socket=str(pair.socket), timeout=60))["y"].tolist() == seen[first + 10]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_what_holds_from_an_epoch_on_begins_behind_what_may_have_been_taken(pair, tmp_path, how):
    remote = pair.remote
    (tmp_path / "p.textproto").write_text(SPEC.replace("1000000", "20") + "stage { repeat {} }")
    ok(remote("create", "p.textproto"))
    (far,), _ = trainers(pair, 25)
    ok(remote("pause", "p"))
    pair.restart(how, [far])
    answer = pair.begun("update", "p", "--next-epoch", "--set", "map.K=1000")
    behind = int(re.search(r"from the first epoch behind step (\d+) on", ok(answer))[1])
    assert behind >= 24 and "whose number is known then" in answer.err, answer
    refused = remote("update", "p", "--skip", "1")
    assert refused.code == 1 and f"a change waits for the beginning of the first epoch behind step {behind}" in refused.err, refused
    # It waits on over another death, and those who have had steps of it go on with theirs.
    ok(remote("resume", "p"))
    seen = {}
    loader = pair.attach()
    take(loader, seen, 5)
    loader.close()
    pair.restart(how)
    first = (behind // 10 + 1) * 10
    loader = pair.attach()
    take(loader, seen, first + 5 - (loader.step or 0))
    while max(seen) < first + 5:
        take(loader, seen, 1)
    for step, rows in seen.items():
        begin = step % 10 * ROWS
        assert rows == [n * (1 if step < first else 1000) for n in range(begin, begin + ROWS)], step
    told = ok(remote("history", "p"))
    assert f"step: {first}" in told and f"epoch: {first // 10}" in told, told
