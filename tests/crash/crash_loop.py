"""Kills, freezes and steers at random moments, and compares what the trainers took with what it must be: faults 48 and 49.

    crash_loop.py --kills 300 [--pauses 30] [--seed S] [--campaign]

Real processes: `penstockd --supervise`, and of the pipeline `records` two trainers of a broadcast, one that takes its batches in halves, one by fives, two ranks
of a group, two of a group with batches of 12, three workers of a split group. `cached` keeps its elements in a file, `twin` begins with the same stages as both, so that each
element is parsed once for all of them; they have a trainer or two each. Of `numbers` three workers of a split group take batches of 5, 12 and 20 rows.

At each moment somebody is killed with SIGKILL: the daemon, a trainer, both, the daemon with its supervisor, or the whole machine: supervisor, daemon and all
trainers at once. A trainer is started again and goes on behind its checkpoint; a worker may be taken over by a second process while it is frozen. A pause stops a trainer
or the daemon (SIGSTOP) for some seconds, or, right behind the death of a trainer, all of them for
longer than a lost one is waited for, as a frozen container or a machine that is moved does. Meanwhile the pipelines are steered: a
constant that is added to every row becomes another one, at once, at a step or with the next epoch; batches become smaller or larger; steps are left out; the stream goes on at its beginning or
behind a cursor; a change that waits is withdrawn: often in the very moment of a kill. In the end:

  changes           every one that was answered is in the history, at the step that the answer said
  broadcast, sizes of their own, rank
                    each trainer's log has every step in order, with the bytes that the history says: those of a clean run without changes,
                    moved by the steps that were left out and with the constant of that step added; a step stands there
                    twice only where the trainer was killed between its log and its checkpoint
  split             every step was given out, and without a mark not more than once
  split, sizes of their own
                    the same of every row

With --campaign a line about it is added to tests/campaigns.jsonl.

PENSTOCK_BIN is the folder of the programs; the Python package must be on PYTHONPATH.
"""

import argparse
import codecs
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import time
import zlib
from typing import NamedTuple, Optional

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import campaigns  # noqa: E402
import numpy as np  # noqa: E402
import tfrecord_files  # noqa: E402
from own_sizes import own_batches  # noqa: E402

import penstock  # noqa: E402

RECORDS = 500
BATCH = 8  # so that each pass ends with a short batch
OWN = {"halves": 4, "fives": 5, "twelves-0": 12, "twelves-1": 12}
STREAMS = ["broadcast-0", "broadcast-1", "rank-0", "rank-1", *OWN]
OTHERS = {"cached-0": "cached", "cached-1": "cached", "twin-0": "twin"}

PARSED = """
stage { tfrecord { files: "records.tfrecord" } }
%s
stage { parse_example { feature { key: "n" int64 {} } } }
"""
REST = """
stage { map { constant { name: "K" value: 0 dtype: "int64" } out: "n = n + K" } }
stage { batch { batch_size: 8 } }
stage { repeat {} }
"""
SHUFFLE = "stage { shuffle { buffer_size: 50 seed: 3 } }"
SPECS = {
    "records": 'name: "records"' + PARSED % SHUFFLE + REST,
    "cached": 'name: "cached"' + PARSED % "" + 'stage { cache { filename: "kept" } }' + SHUFFLE + REST,
    "twin": 'name: "twin"' + PARSED % "" + REST,
}
CONFIG = "shared_prefix { min_element_us: 0 }"

# A history has 1,000 changes at most, and each is prepared anew at every start.
MOST_CHANGES = 200

# Who takes 20 rows in a `for` loop holds those of two such batches, which lie in six of 8 at most.
SIZED = [5, 12, 20]
SPECS["numbers"] = """
name: "numbers"
ring { slots: 32 }
stage { range { stop: 1000000000000 } }
stage { map { out: "n = value" } }
stage { batch { batch_size: 8 } }
"""


REJOIN_S = 10  # a trainer that is started again needs a second or two, and may be paused for three


class Trainer:
    PROGRAM = "trainer.py"

    def __init__(self, run, name, pipeline="records", **options):
        self.run, self.name = run, name
        self.words = [sys.executable, str(pathlib.Path(__file__).parent / self.PROGRAM), run.socket, pipeline,
                      str(run.folder), name, json.dumps(options)]
        self.kills = 0
        self.start()

    def start(self, **more):
        words = [*self.words[:-1], json.dumps({**json.loads(self.words[-1]), **more})]
        with open(self.run.folder / f"{self.name}.err", "ab") as errors:
            self.process = subprocess.Popen(words, stderr=errors)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def take_over(self, seconds):
        """A second process takes its place while it stands still."""
        frozen = self.process
        frozen.send_signal(signal.SIGSTOP)
        size = self.log_bytes
        self.start(take_over=True)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.log_bytes <= size + 2:
            time.sleep(0.02)
        frozen.kill()
        frozen.wait()
        self.kills += 1

    @property
    def done(self):
        code = self.process.poll()
        if code not in (None, 0):
            raise SystemExit(f"{self.name} ended with {code}:\n{(self.run.folder / (self.name + '.err')).read_text()}")
        return code == 0

    @property
    def log_bytes(self):
        log = self.run.folder / f"{self.name}.log"
        return log.stat().st_size if log.exists() else 0

    def entries(self):
        """(step, redelivered, crc) of what it worked on; None where it was started again."""
        found = []
        if not (self.run.folder / f"{self.name}.log").exists():
            return found
        for line in (self.run.folder / f"{self.name}.log").read_text().split("\n"):
            words = line.split()
            if not words:
                if found and found[-1] is not None:
                    found.append(None)
            elif len(words) == 3:
                found.append(tuple(map(int, words)))
        return found

    def rows(self):
        """(rows, redelivered) of each batch that was written down whole."""
        found = []
        for line in (self.run.folder / f"{self.name}.log").read_text().split("\n"):
            words = line.split()
            if len(words) == 4:
                rows = [int(row) for row in words[3].split(",") if row]
                if zlib.crc32(struct.pack(f"<{len(rows)}q", *rows)) == int(words[2]):
                    found.append((rows, int(words[1])))
        return found

    def position(self):
        steps = [entry[0] for entry in self.entries() if entry]
        return steps[-1] + 1 if steps else 0


class Change(NamedTuple):
    """One of a history, or one that was answered. What does not apply is None."""

    step: Optional[int]  # None: it waits for the beginning of an epoch
    constant: Optional[int] = None
    batch_size: Optional[int] = None
    skipped: int = 0
    seek: Optional[bytes] = None  # the cursor; empty: the beginning
    is_withdrawn: bool = False

    @property
    def holds(self):
        return self.step is not None and not self.is_withdrawn

    def answers(self, asked):
        """Whether the history's change may be the one that was `asked` for. One of the next epoch has all stages, also those that stay."""
        return ((self.skipped, self.seek) == (asked.skipped, asked.seek) and asked.step in (None, self.step)
                and asked.constant in (None, self.constant) and asked.batch_size in (None, self.batch_size))


class Steering:
    """The changes of a pipeline: what was asked for, what was answered, and what its history says. `cursors`: where it may seek, by files."""

    def __init__(self, run, pipeline, most, cursors):
        self.run, self.pipeline, self.most, self.cursors = run, pipeline, most, cursors
        self.asked = 0
        self.answered = []
        self.withdrawn = 0
        self.counts = {}  # of those that were answered, by their kinds
        self.under_way = None

    def words(self, dice):
        """What is asked for: its kind, the words of the command, and the change without its step."""
        last = next((change.step for change in reversed(self.answered) if change.step is not None), None)
        kind = dice.choices(["constant", "batch-size", "skip", "seek", "at-step", "next-epoch", "withdraw"], [30, 10, 18, 12, 12, 8, 10])[0]
        if kind == "batch-size":
            size = dice.randint(3, BATCH)
            return kind, ["update", self.pipeline, "--set", f"batch.batch_size={size}"], Change(None, batch_size=size)
        if kind == "skip":
            skipped = dice.randint(1, 5)
            return kind, ["update", self.pipeline, "--skip", str(skipped)], Change(None, skipped=skipped)
        if kind == "seek":
            file = dice.choice([None, *self.cursors])
            where = ["--beginning"] if file is None else ["--cursor", file]
            return kind, ["seek", self.pipeline, *where], Change(None, seek=b"" if file is None else self.cursors[file])
        if kind == "withdraw":
            return kind, ["update", self.pipeline, "--withdraw"], None
        constant = 1000 * self.asked
        more = []
        if kind == "at-step" and last is None:
            kind = "constant"
        if kind == "next-epoch":
            more = ["--next-epoch"]
        elif kind == "at-step":
            more = ["--at-step", str(last + dice.randint(10, 150))]
        return kind, ["update", self.pipeline, "--set", f"map.K={constant}", *more], Change(None, constant=constant)

    def begin(self, dice):
        if self.under_way is not None or self.asked >= self.most:
            return
        self.asked += 1
        kind, words, change = self.words(dice)
        self.under_way = self.run.command(*words), kind, change

    def end(self):
        """Waits for the answer, if there is one."""
        if self.under_way is None:
            return
        process, kind, change = self.under_way
        self.under_way = None
        try:
            out, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return
        if process.returncode != 0:
            return
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if change is None:
            self.withdrawn += 1
            return
        found = re.search(r"from step (\d+) on", out)
        self.answered.append(change._replace(step=int(found[1]) if found else None))

    def history(self):
        """The changes, as the daemon has written them down."""
        deadline = time.monotonic() + 60
        while True:
            process = self.run.command("history", self.pipeline)
            out, error = process.communicate(timeout=60)
            if process.returncode == 0:
                break
            # The daemon is just coming back.
            assert time.monotonic() < deadline, error
            time.sleep(0.1)
        changes = [parsed_change(text) for text in re.split(r"^change \{", out, flags=re.MULTILINE)[1:]]
        left = list(changes)
        for one in self.answered:
            found = [change for change in left if change.answers(one)]
            assert found, f"{self.pipeline}: the change {one} was answered and is not in the history, {changes}"
            left.remove(found[0])
        withdrawn = sum(change.is_withdrawn for change in changes)
        assert withdrawn >= self.withdrawn, f"{self.pipeline}: {self.withdrawn} were withdrawn, and of the history {withdrawn}: {changes}"
        return changes


def parsed_change(text):
    step = re.search(r"^  step: (\d+)", text, re.MULTILINE)
    epoch = re.search(r"^  epoch: (\d+)", text, re.MULTILINE)
    skipped = re.search(r"^  skip_steps: (\d+)", text, re.MULTILINE)
    seek = re.search(r'^  seek_cursor: "(.*)"$', text, re.MULTILINE)
    constant = re.search(r'name: "K"(?:\s+value: ([\d.e+]+))?', text)
    size = re.search(r"batch_size: (\d+)", text)
    # Until its epoch begins, a change has no step, or the one behind which that is to begin.
    waits = epoch is not None and (step is None or epoch[1] == "0")
    number = None if waits else int(step[1]) if step else 0
    is_withdrawn = "  withdrawn_unix_ms:" in text
    if skipped:
        return Change(number, skipped=int(skipped[1]), is_withdrawn=is_withdrawn)
    if seek:
        return Change(number, seek=codecs.escape_decode(seek[1].encode())[0], is_withdrawn=is_withdrawn)
    return Change(number, constant=int(float(constant[1] or 0)) if constant else None, batch_size=int(size[1]) if size else None,
                  is_withdrawn=is_withdrawn)


def steered(clean, changes, steps, cursors):
    """The bytes of each step, of a clean run's batches without the changes. `cursors`: the rows in front of which they go on, by their bytes."""
    rows = np.concatenate(clean)
    batches, constant, size, position = [], 0, BATCH, 0

    def behind():
        # The last batch of a pass is short.
        return min(position + size, (position // RECORDS + 1) * RECORDS)

    waiting = sorted((change for change in changes if change.holds), key=lambda change: change.step)
    for step in range(steps):
        begun = [change for change in waiting if change.step <= step]
        waiting = waiting[len(begun):]
        # Those of one step hold together: steps are left out in batches of the new size.
        sizes = [change.batch_size for change in begun if change.batch_size is not None]
        size = sizes[-1] if sizes else size
        for change in begun:
            constant = constant if change.constant is None else change.constant
            for _ in range(change.skipped):
                position = behind()
            if change.seek is not None:
                position = cursors[change.seek]
        batches.append((rows[position:behind()] + constant).tobytes())
        position = behind()
    return batches


class Run:
    """A supervised daemon with the pipelines."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.socket = str(folder / "penstock.sock")
        self.programs = pathlib.Path(os.environ["PENSTOCK_BIN"])
        tfrecord_files.write(folder / "records.tfrecord", [tfrecord_files.example(n=n) for n in range(RECORDS)])
        (folder / "config.textproto").write_text(CONFIG)
        self.log = open(folder / "penstockd.log", "w")
        self.start()
        for name, spec in SPECS.items():
            (folder / f"{name}.textproto").write_text(spec)
            created = self.command("create", f"{name}.textproto")
            _, error = created.communicate()
            if created.returncode != 0:
                self.stop()
                raise SystemExit(f"the pipeline {name} could not be created: {error}")

    def start(self):
        """Returns when it listens. A daemon that was just killed may still be ending, and have the socket."""
        deadline = time.monotonic() + 60
        while True:
            ready, ready_end = os.pipe()
            self.supervisor = subprocess.Popen(
                [self.programs / "penstockd", "--supervise", "--config", self.folder / "config.textproto", "--socket", self.socket,
                 "--state-dir", self.folder / "state", "--rejoin-seconds", str(REJOIN_S), "--ready-fd", str(ready_end)],
                pass_fds=[ready_end], stderr=self.log)
            os.close(ready_end)
            listens = os.read(ready, 1) == b"\n"
            os.close(ready)
            if listens:
                return
            self.supervisor.wait()
            assert time.monotonic() < deadline, "no daemon could be started"
            time.sleep(0.05)

    def command(self, *words):
        return subprocess.Popen([self.programs / "penstock", "--socket", self.socket, *words], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def daemon(self):
        """The daemon's process, which its supervisor starts again."""
        children = pathlib.Path(f"/proc/{self.supervisor.pid}/task/{self.supervisor.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def kill_daemon(self):
        pid = self.daemon()
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def kill_supervisor(self):
        """And the daemon, which nobody would start again; the next ones are `start`ed."""
        # So that it makes none meanwhile.
        self.supervisor.send_signal(signal.SIGSTOP)
        pid = self.daemon()
        self.supervisor.kill()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        self.supervisor.wait()

    def stop(self):
        self.supervisor.terminate()
        code = self.supervisor.wait(30)
        self.log.close()
        return code


def freeze(processes, seconds):
    """Stops the processes, by their numbers, and lets them go on."""
    stopped = []
    try:
        for number in processes:
            os.kill(number, signal.SIGSTOP)
            stopped.append(number)
        time.sleep(seconds)
    except ProcessLookupError:  # it has just ended
        pass
    finally:
        for number in stopped:
            # It may have been dying before it was stopped, and is gone by now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)


def pause(run, everybody, dice):
    """Freezes somebody. Returns whom, or None where there was nobody."""
    what = dice.choice(["a trainer", "the daemon", "all"])
    victim, daemon = dice.choice(everybody), run.daemon()
    if victim.done or daemon is None:
        return None
    if what == "a trainer":
        freeze([victim.process.pid], dice.uniform(0.1, 3))
    elif what == "the daemon":
        freeze([daemon], dice.uniform(0.1, 3))
    else:
        victim.kill()
        # The daemon has seen that it is gone.
        time.sleep(0.2)
        freeze([daemon, *(trainer.process.pid for trainer in everybody)], REJOIN_S + 1)
    return what


def clean_run(folder, steps):
    """The batches of the first steps of each pipeline, from a daemon that nobody kills or steers; `steps`: how many of each."""
    run = Run(folder)
    try:
        found = {}
        for name, count in steps.items():
            found[name] = []
            with penstock.attach(name, socket=run.socket, timeout=120) as loader:
                while len(found[name]) < count:
                    found[name].append(np.array(next(loader)["n"]))
        return found
    finally:
        run.stop()


def rows_of(batch, r, n):
    count = len(batch) // 8
    return batch[8 * (r * count // n):8 * ((r + 1) * count // n)]


def last_of(size, steps):
    """The batch of that size with which a trainer ends."""
    return steps * BATCH // size - 1


def sized(clean, size, steps, r=0, n=1):
    """(number, bytes) of each batch of that size behind the first step of the clean run, of rank r of n."""
    rows = [[batch[at:at + 8] for at in range(0, len(batch), 8)] for batch in clean[1:]]
    found = []
    for number, batch in own_batches(rows, BATCH, size, first_step=1):
        found.append((number, rows_of(b"".join(batch), r, n)))
        if number >= last_of(size, steps):
            return found
    raise SystemExit("the clean run is too short")


def check_stream(trainer, clean, begin=1):
    """Every one of `clean`, (step, bytes), in order from `begin` on; one back only where the trainer was started again."""
    check_digests(trainer, [(step, zlib.crc32(data)) for step, data in clean], begin)


def check_digests(trainer, clean, begin=0):
    """The same of (step, digest)."""
    index_of = {step: index for index, (step, _) in enumerate(clean)}
    expected, restarted = begin, False
    for entry in trainer.entries():
        if entry is None:
            restarted = True
            continue
        step, redelivered, crc = entry
        # Killed between the log and the checkpoint, it does that step once more.
        allowed = (expected - 1, expected) if restarted else (expected,)
        index = index_of.get(step)
        assert index in allowed, f"{trainer.name}: step {step} where number {expected} of {len(clean)} was due"
        assert crc == clean[index][1], f"{trainer.name}: other bytes in step {step}"
        assert not redelivered
        expected, restarted = index + 1, False
    assert expected == len(clean), f"{trainer.name}: ends with number {expected} of {len(clean)}"


def check_split(workers, last_words, clean):
    """Every step was given out, and as often as it was marked once more at most. `last_words`: those taken in the end."""
    given, marked = {}, {}
    for entry in [entry for worker in workers for entry in worker.entries() if entry] + last_words:
        step, redelivered, crc = entry
        if step < len(clean):
            assert crc == zlib.crc32(clean[step]), f"split: other bytes in step {step}"
        given[step] = given.get(step, 0) + 1
        marked[step] = marked.get(step, 0) + redelivered
    # What a worker was given and never wrote down came back, marked or not.
    lost = [step for step in range(min(given), max(given)) if step not in given]
    assert not lost, f"split: lost {lost}"
    repeated = [step for step in given if given[step] > marked[step] + 1]
    assert not repeated, f"split: given out twice without a mark: {repeated}"
    return len(given), sum(marked.values())


def take_the_rest(run, workers):
    """What the split group still has to give, up to a step that nobody has had."""
    highest = max(entry[0] for worker in workers for entry in worker.entries() if entry)
    taken = []
    with penstock.attach("records", socket=run.socket, group="workers", mode="split", timeout=120) as loader:
        while not taken or taken[-1][0] <= highest + 20:
            batch = next(loader)
            taken.append((loader.step, int(loader.redelivered), zlib.crc32(batch["n"].tobytes())))
            del batch
    return taken


def rest_of_rows(run, sizes):
    """(rows, redelivered) of what the group of the sizes still has to give, up to rows that nobody has had."""
    highest = max(row for worker in sizes for rows, _ in worker.rows() for row in rows)
    taken = []
    with penstock.attach("numbers", socket=run.socket, group="sized", mode="split", timeout=120) as loader:
        while not taken or taken[-1][0][0] <= highest + 40 * BATCH:
            batch = next(loader)
            taken.append((batch["n"].tolist(), int(loader.redelivered)))
            del batch
    return taken


def check_rows(sizes, rest):
    """Every row was given out, and as often as a batch of it was marked once more at most."""
    given, marked, last = {}, {}, 0
    for rows, redelivered in [entry for worker in sizes for entry in worker.rows()] + rest:
        assert len(set(rows)) == len(rows), f"sizes of their own: a row twice in {rows}"
        for row in rows:
            given[row] = given.get(row, 0) + 1
            marked[row] = marked.get(row, 0) + redelivered
    for worker in sizes:
        last = max([last, *(row for rows, _ in worker.rows() for row in rows)])
    lost = [row for row in range(last) if row not in given]
    assert not lost, f"sizes of their own: lost {lost}"
    repeated = [row for row in given if given[row] > marked[row] + 1]
    assert not repeated, f"sizes of their own: given out twice without a mark: {repeated}"
    return len(given), sum(count - 1 for count in given.values())


def wait_for(trainers, seconds):
    """Until all have ended. They have failed when none of those that are left has written anything for so long: a busy machine is slow."""
    written, deadline = None, 0
    while not all([trainer.done for trainer in trainers]):
        now = [trainer.log_bytes for trainer in trainers]
        if now != written:
            written, deadline = now, time.monotonic() + seconds
        if time.monotonic() > deadline:
            raise SystemExit(f"did not end, and wrote nothing for {seconds} s: " + ", ".join(t.name for t in trainers if not t.done))
        time.sleep(0.05)


KINDS = ["daemon", "daemon", "trainer", "trainer", "both", "both", "supervisor", "machine", "takeover"]


def kill(run, everybody, workers, dice):
    """Kills somebody. Returns what, or None where there was nobody."""
    what = dice.choice(KINDS)
    if what == "takeover":
        victim = dice.choice(workers)
        if victim.done:
            return None
        victim.take_over(dice.uniform(0.5, 3))
        return what
    victim = dice.choice(everybody)
    if victim.done:
        return None
    if what in ("daemon", "both") and not run.kill_daemon():
        return None
    if what in ("trainer", "both"):
        victim.kill()
    if what in ("supervisor", "machine"):
        run.kill_supervisor()
        if what == "machine":
            alive = [trainer for trainer in everybody if not trainer.done]
            for trainer in alive:
                trainer.process.kill()
        run.start()
        if what == "machine":
            for trainer in alive:
                trainer.kill()
    return what


def crash_loop(kills, pauses, seed, folder):
    dice = random.Random(seed)
    run = Run(folder / "killed")
    started = time.monotonic()
    everybody = []
    try:
        # All begin behind the same first step, whenever they come.
        cursors = {}  # by pipelines: the files, with their bytes
        for pipeline, names in {"records": STREAMS, **{name: [one for one in OTHERS if OTHERS[one] == name] for name in ("cached", "twin")}}.items():
            with penstock.attach(pipeline, socket=run.socket, timeout=120) as loader:
                next(loader)
                for name in names:
                    (run.folder / f"{name}.cursor").write_bytes(loader.cursor)
                (run.folder / f"{pipeline}.first").write_bytes(loader.cursor)
                cursors[pipeline] = {f"{pipeline}.first": loader.cursor}
        trainers = [Trainer(run, f"broadcast-{i}", group="trainers") for i in range(2)]
        trainers += [Trainer(run, f"rank-{i}", group="ranks", mode="rank", rank=i, world_size=2) for i in range(2)]
        own = [Trainer(run, name, group=name, batch_size=OWN[name]) for name in ("halves", "fives")]
        own += [Trainer(run, f"twelves-{i}", group="twelves", mode="rank", rank=i, world_size=2, batch_size=12) for i in range(2)]
        others = [Trainer(run, name, pipeline=pipeline, group=name) for name, pipeline in OTHERS.items()]
        workers = [Trainer(run, f"worker-{i}", group="workers", mode="split", consumer=f"worker-{i}") for i in range(3)]
        sizes = [Trainer(run, f"sized-{size}", pipeline="numbers", group="sized", mode="split", batch_size=size) for size in SIZED]
        everybody = [*trainers, *own, *others, *workers, *sizes]
        steering = {name: Steering(run, name, min(MOST_CHANGES, kills), cursors[name]) for name in ("records", "cached", "twin")}
        done = {what: 0 for what in dict.fromkeys(KINDS)}
        paused = {"a trainer": 0, "the daemon": 0, "all": 0}
        while sum(done.values()) < kills:
            time.sleep(dice.uniform(0.05, 1.2))
            # Spread over the kills.
            if sum(paused.values()) * kills < pauses * sum(done.values()):
                whom = pause(run, everybody, dice)
                if whom is not None:
                    paused[whom] += 1
                continue
            steered_now = steering[dice.choice(list(steering))]
            if dice.random() < 0.7:
                steered_now.begin(dice)
                # In the middle of it, or behind its answer.
                if dice.random() < 0.5:
                    steered_now.end()
                else:
                    time.sleep(dice.uniform(0, 0.05))
            what = kill(run, everybody, workers, dice)
            if what is not None:
                done[what] += 1
            steered_now.end()
        seconds = time.monotonic() - started
        histories = {name: one.history() for name, one in steering.items()}
        # Who comes back with a cursor has a stream of its own until it meets the others, and may be far ahead of them by then. The last
        # changes begin behind all that may have been taken: those that are not too far are gone through.
        steps = max(trainer.position() * OWN.get(trainer.name, BATCH) // BATCH for trainer in [*trainers, *own, *others]) + 500
        steps = max([steps, *(one.step + 100 for changes in histories.values() for one in changes if one.holds and one.step < steps + 5000)])
        for size in set(OWN.values()):
            (run.folder / f"stop-{size}.new").write_text(str(last_of(size, steps) + 1))
            (run.folder / f"stop-{size}.new").rename(run.folder / f"stop-{size}")
        (run.folder / "stop.new").write_text(str(steps))
        (run.folder / "stop.new").rename(run.folder / "stop")
        wait_for([*trainers, *own, *others], 300)
        (run.folder / "stop-workers").touch()
        # They may wait for steps that the ring has no slot for: another one takes them along.
        rest = take_the_rest(run, workers)
        wait_for(workers, 60)
        rest += take_the_rest(run, workers)
        rows_left = rest_of_rows(run, sizes)
        wait_for(sizes, 60)
        rows_left += rest_of_rows(run, sizes)
        # An epoch that a change waited for may have begun meanwhile.
        histories = {name: one.history() for name, one in steering.items()}
    finally:
        for trainer in everybody:
            trainer.process.kill()
            trainer.process.wait()
        run.stop()
    skipped = {name: sum(one.skipped for one in changes if one.holds and one.step < steps + 20) for name, changes in histories.items()}
    plain = clean_run(folder / "clean", {name: steps + 20 + count for name, count in skipped.items()})
    longer = {name: steered(plain[name], changes, steps + 20, {b"": 0, **{cursor: BATCH for cursor in cursors[name].values()}})
              for name, changes in histories.items()}
    clean = longer["records"][:steps]
    for i in range(2):
        check_stream(trainers[i], list(enumerate(clean)))
        check_stream(trainers[2 + i], list(enumerate(rows_of(batch, i, 2) for batch in clean)))
    for i, trainer in enumerate(own):
        rank = (i % 2, 2) if trainer.name.startswith("twelves") else (0, 1)
        check_stream(trainer, sized(longer["records"], OWN[trainer.name], steps, *rank), begin=0)
    for trainer in others:
        check_stream(trainer, list(enumerate(longer[OTHERS[trainer.name]][:steps])))
    divided, marked = check_split(workers, rest, clean)
    rows, repeated = check_rows(sizes, rows_left)
    changes = [one for history in histories.values() for one in history]
    kinds = {}
    for one in steering.values():
        for kind, count in one.counts.items():
            kinds[kind] = kinds.get(kind, 0) + count
    text = (f"{sum(done.values())} kills in {seconds:.0f} s ({', '.join(f'{n} {what}' for what, n in done.items())}), "
            f"{sum(paused.values())} pauses ({', '.join(f'{n} of {who}' for who, n in paused.items())}), "
            f"{len(changes)} changes, {sum(one.holds and one.step < steps for one in changes)} of them gone through "
            f"({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))} answered): "
            f"{steps} steps for each of {len(STREAMS) + len(OTHERS)} trainers, {divided} divided among 3 workers, "
            f"{marked} redelivered; {rows} rows divided by sizes of their own, {repeated} of them given once more; seed {seed}")
    print(text)
    return seconds, {"kinds": done, "pauses": sum(paused.values()), "changes": len(changes), "steps": steps}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--pauses", type=int, default=30)
    campaigns.add_options(parser)
    arguments = parser.parse_args()
    campaigns.run(arguments, "crash", arguments.kills, "kills", lambda seed, folder: crash_loop(arguments.kills, arguments.pauses, seed, folder))


if __name__ == "__main__":
    main()
