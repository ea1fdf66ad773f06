"""Kills worker processes of Python functions, their daemons and their trainers at random moments, and compares what the trainers took with what it must be (fault 64 of
docs/reliability.md).

    python_loop.py --kills 300 [--seed S] [--campaign]

Real processes: a trainer of each pipeline of python_pipelines.py with its private daemon, and two over the daemon of a job (penstock.shared_daemon). Killed
with SIGKILL are

  worker     one worker of a trainer's daemon, but no other one before the trainer has gone on: a row whose worker dies twice is a failure
  workers    all of them at once
  daemon     the private daemon, behind which the iteration goes on by itself, or that of the job, which its supervisor starts again
  trainer    it is started again, and goes on behind its checkpoint
  all        a trainer with its daemon and workers

In the end each trainer's log has every step in order, with the digests that an undisturbed run with one worker has; a step stands there twice only where the
trainer was killed between its log and its checkpoint. Nothing of what a dead trainer or daemon had is left.

With --campaign a line about it is added to tests/campaigns.jsonl. The Python package must be on PYTHONPATH, and PENSTOCK_BIN the folder of the programs.
"""

import argparse
import collections
import hashlib
import os
import pathlib
import random
import select
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "support"))
import campaigns  # noqa: E402
import python_pipelines  # noqa: E402
from children import children_of, name_of  # noqa: E402
from crash_loop import Trainer, check_digests, wait_for  # noqa: E402

KINDS = ["worker", "worker", "worker", "workers", "daemon", "trainer", "all"]
OF_WORKERS = ("worker", "workers")
OVER_JOB = {"job-mapped": "mapped", "job-states": "states"}
PAUSE_S = 0.001
WORKERS = 2
# More than lie ready or are begun in front of a trainer: a row that was at work when they were is done by then.
STEPS_AHEAD = 40
# In which what belongs to a dead one ends.
END_S = 30

# Where trainers write, and the job whose daemon they have; as a Run to a Trainer.
Place = collections.namedtuple("Place", ["folder", "socket"])


class PythonTrainer(Trainer):
    PROGRAM = "python_trainer.py"

    def __init__(self, run, name, pipeline, **options):
        self.next_worker = 0  # the steps from which on a worker may be killed
        super().__init__(run, name, pipeline, **options)

    def daemon(self):
        """Its daemon's process; None where there is none just now."""
        if self.run.socket:
            return serving(job_socket(self.run.socket))
        found = [child for child in children_of(self.process.pid) if name_of(child) == "penstockd"]
        return found[0] if found else None

    def num_steps(self):
        """How many it has written down, those that it did twice counted twice."""
        return sum(entry is not None for entry in self.entries())

    def stop_at(self, steps):
        file = self.run.folder / f"{self.name}.stop"
        (self.run.folder / f"{self.name}.stop.new").write_text(str(steps))
        (self.run.folder / f"{self.name}.stop.new").rename(file)


def job_socket(job):
    """The socket of a job's daemon below TMPDIR."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{os.environ['TMPDIR']}/penstock-{os.geteuid()}-{file.read(8)}/{job}/penstock.sock"


def serving(path):
    """The process that serves a socket, or None."""
    with socket.socket(socket.AF_UNIX) as connection:
        if connection.connect_ex(path) != 0:
            return None
        return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


class Ending:
    """Processes that are to end, by descriptors, so that others which get their numbers are not meant."""

    def __init__(self):
        self.waiting = []  # (descriptor, deadline, text)

    def add(self, process, text):
        try:
            self.waiting.append((os.pidfd_open(process), time.monotonic() + END_S, f"process {process}, {text}"))
        except ProcessLookupError:
            pass

    def look(self):
        """Fails where one is over its time."""
        left = []
        for descriptor, deadline, text in self.waiting:
            if select.select([descriptor], [], [], 0)[0]:
                os.close(descriptor)
                continue
            assert time.monotonic() < deadline, f"{text}, has not ended in {END_S} s"
            left.append((descriptor, deadline, text))
        self.waiting = left

    def wait(self):
        while self.waiting:
            self.look()
            time.sleep(0.05)


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def end(processes, daemon):
    """At once, as the daemon sees it: it is not to give the row of the first to another that ends a moment later, for which the row would count
    as one that ends its worker twice."""
    send(daemon, signal.SIGSTOP)
    for process in processes:
        send(process, signal.SIGKILL)
    send(daemon, signal.SIGCONT)


def kill(what, trainer, trainers, dice, ending):
    """Whether there was somebody to be killed."""
    daemon = trainer.daemon()
    workers = children_of(daemon) if daemon is not None else []
    if what in OF_WORKERS:
        # A job's daemon has the workers of all its trainers.
        hit = [other for other in trainers if other is trainer or (trainer.run.socket and other.run.socket == trainer.run.socket)]
        steps = {other: other.num_steps() for other in hit}
        if not workers or any(steps[other] < other.next_worker for other in hit):
            return False
        for other in hit:
            other.next_worker = steps[other] + STEPS_AHEAD
        end([dice.choice(workers)] if what == "worker" else workers, daemon)
        return True
    if what in ("daemon", "all") and daemon is None:
        return False
    # The job's lives while another trainer of it does.
    if what != "trainer" or not trainer.run.socket:
        for worker in workers:
            ending.add(worker, f"a worker of {trainer.name}, whose {what} was killed")
        if daemon is not None:
            ending.add(daemon, f"the daemon of {trainer.name}, whose {what} was killed")
    if what == "daemon":
        send(daemon, signal.SIGKILL)
    elif what == "trainer":
        trainer.kill()
    else:
        dying = [daemon, *workers]
        dice.shuffle(dying)
        end(dying, daemon)
        trainer.kill()
    return True


def start_all(folder, job, pause, workers):
    """A trainer of each pipeline."""
    folder.mkdir()
    options = {"pause": pause, "workers": workers}
    own = [PythonTrainer(Place(folder, ""), name, name, **options) for name in python_pipelines.PIPELINES]
    return own + [PythonTrainer(Place(folder, job), name, pipeline, **options) for name, pipeline in OVER_JOB.items()]


def check_shares(done):
    """Fails where kills of workers alone, which this loop is for, are fewer than drawing them can explain (four standard deviations)."""
    kills, found = sum(done.values()), sum(done[what] for what in OF_WORKERS)
    share = sum(what in OF_WORKERS for what in KINDS) / len(KINDS)
    least = max(1, share * kills - 4 * (kills * share * (1 - share)) ** 0.5)
    assert kills < 8 or found >= least, f"{found} of {kills} kills were of workers, {least:.0f} at least are to be"


def end_all(trainers):
    for trainer in trainers:
        trainer.process.kill()
        trainer.process.wait()


def undisturbed(folder, steps):
    """(step, digest) of the first steps of each trainer's; `steps`: how many, by its name."""
    trainers = []
    try:
        trainers = start_all(folder, "clean", 0, 1)
        for trainer in trainers:
            trainer.stop_at(steps[trainer.name])
        wait_for(trainers, 600)
        return {trainer.name: [(step, digest) for step, _, digest in filter(None, trainer.entries())] for trainer in trainers}
    finally:
        end_all(trainers)


def python_loop(kills, seed, folder):
    dice = random.Random(seed)
    ending = Ending()
    done = {what: 0 for what in dict.fromkeys(KINDS)}
    trainers = []
    started = time.monotonic()
    try:
        trainers = start_all(folder / "killed", "job", PAUSE_S, WORKERS)
        last = started
        while sum(done.values()) < kills:
            time.sleep(dice.uniform(0.02, 0.4))
            # Waits until there is somebody for what was drawn, so that what is seldom possible is done as often as the rest.
            what = dice.choice(KINDS)
            while True:
                ending.look()
                assert not any([trainer.done for trainer in trainers])
                if kill(what, dice.choice(trainers), trainers, dice, ending):
                    break
                assert time.monotonic() < last + 120, f"no {what} could be killed for two minutes: the trainers stand still"
                time.sleep(0.01)
            done[what] += 1
            last = time.monotonic()
        seconds = time.monotonic() - started
        check_shares(done)
        for trainer in trainers:
            trainer.stop_at(trainer.position() + STEPS_AHEAD)
        wait_for(trainers, 300)
        ending.wait()
    finally:
        end_all(trainers)
    steps = {trainer.name: trainer.position() for trainer in trainers}
    clean = undisturbed(folder / "clean", steps)
    digest = hashlib.sha256()
    for trainer in trainers:
        assert len(clean[trainer.name]) == steps[trainer.name]
        check_digests(trainer, clean[trainer.name])
        digest.update(repr(clean[trainer.name]).encode())
    resumed = sum((folder / "killed" / f"{trainer.name}.err").read_text().count("resumed from the checkpoint") for trainer in trainers)
    print(f"{sum(done.values())} kills in {seconds:.0f} s ({', '.join(f'{n} {what}' for what, n in done.items())}): {sum(steps.values())} steps of "
          f"{len(trainers)} trainers, digest {digest.hexdigest()[:16]} as undisturbed; {resumed} resumes in a running trainer; seed {seed}")
    return seconds, {"kinds": done, "steps": sum(steps.values())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=300)
    campaigns.add_options(parser)
    arguments = parser.parse_args()

    def loop(seed, folder):
        # Daemons, and what they leave behind when they are killed.
        (folder / "tmp").mkdir(0o700)
        os.environ["TMPDIR"] = str(folder / "tmp")
        os.environ.setdefault("PENSTOCKD", str(pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstockd"))
        return python_loop(arguments.kills, seed, folder)

    campaigns.run(arguments, "crash of Python workers", arguments.kills, "kills", loop)


if __name__ == "__main__":
    main()
