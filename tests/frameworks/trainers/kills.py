"""Kills trainers at random steps, and compares the batches that their models see with those of a run that nobody disturbs.

    kills.py [--kinds transformers,accelerate,…] [--kills 20] [--seed S] [--keep] [--campaign]

Each trainer (kinds.py) is a real one, with the checkpoints of its own. It is killed (SIGKILL) as soon as its model has seen a step drawn at random, and begun again behind its newest
checkpoint, until all steps are done. Each line of its log has the digest that this step has in the undisturbed run, and each run goes on behind a
checkpoint. With --campaign a line about it is added to tests/campaigns.jsonl. The Python package must be on PYTHONPATH, and PENSTOCK_BIN the folder of the programs.
"""

import argparse
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
sys.path.insert(0, str(HERE))
import campaigns  # noqa: E402

KINDS = ["transformers", "accelerate", "lightning", "keras", "checkpoint"]
# Of a run: two epochs and a half.
STEPS = 25
SAVED_EVERY = 3
HUNG_S = 300


class Trainer:
    """The runs of one kind, in a folder at a time (`folder`); a context manager."""

    def __init__(self, kind, errors):
        self.kind = kind
        self.folder = None
        self.errors = errors
        environment = {**os.environ, "TRAINERS_JOB": f"{kind}-{os.getpid()}"}
        with open(errors, "w") as file:
            self.server = subprocess.Popen(
                [sys.executable, HERE / "forks.py", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True, env=environment
            )
        self._read("ready")

    def __enter__(self):
        return self

    def __exit__(self, type, value, traceback):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def _read(self, expected=None):
        line = self.server.stdout.readline().strip()
        assert line and expected in (None, line), f"expected {expected or 'an answer'}, found {line!r}: {self.errors.read_text()[-4000:]}"
        return line

    def lines(self):
        """(step, digest) of what the model has seen."""
        log = self.folder / "log"
        if not log.exists():
            return []
        return [line.split() for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def run(self, steps, kill_at=None):
        """A run, or the part of it up to a step at which it is killed. Says whether it was."""
        had = len(self.lines())
        self.server.stdin.write(f"{self.folder} {steps}\n")
        self.server.stdin.flush()
        process = int(self._read())
        if kill_at is not None:
            self._kill(process, lambda: any(int(step) >= kill_at for step, _ in self.lines()[had:]))
        status = int(self._read())
        assert status == 0 or kill_at is not None and status == signal.SIGKILL, f"status {status}: {self.errors.read_text()[-4000:]}"
        return status != 0

    def _kill(self, process, is_there):
        """Kills it when it is there, unless it has ended by then."""
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            return
        try:
            deadline = time.monotonic() + HUNG_S
            while not select.select([descriptor], [], [], 0.002)[0]:
                if is_there():
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    return
                assert time.monotonic() < deadline, f"the step to be killed at does not come: {self.errors.read_text()[-4000:]}"
        finally:
            os.close(descriptor)


def undisturbed(trainer, folder, steps):
    """The digests of all steps."""
    folder.mkdir()
    trainer.folder = folder
    trainer.run(steps)
    lines = trainer.lines()
    assert [int(step) for step, _ in lines] == list(range(steps)), lines
    assert len({digest for _, digest in lines}) == steps, "some batches are the same: the test could not tell them apart"
    return [digest for _, digest in lines]


def killed(trainer, folder, steps, kills, dice):
    """The lines of a run that is killed so many times: those of each part of it."""
    folder.mkdir()
    trainer.folder = folder
    parts = []
    done = 0
    for kill in range(kills + 1):
        # Each kill finds steps to do: the last of them are left to those that follow.
        at = dice.randrange(done, max(done + 1, steps - (kills - kill))) if kill < kills else None
        before = len(trainer.lines())
        trainer.run(steps, at)
        new = trainer.lines()[before:]
        parts.append(new)
        # A run that saved its last step has none to do.
        done = min(int(new[-1][0]), steps - 1) if new else done
    return parts


def check(kind, parts, whole):
    begin = 0
    for part in parts:
        for place, (step, digest) in enumerate(part):
            step = int(step)
            if place == 0:
                assert step % SAVED_EVERY == 0 and step <= begin, f"{kind}: a run goes on at step {step}, and {begin} was to come"
                begin = step
            assert step == begin + place, f"{kind}: step {step} behind {begin + place - 1}"
            assert digest == whole[step], f"{kind}: step {step} saw another batch than undisturbed"
        begin += len(part)
    assert begin == len(whole), f"{kind}: ended at step {begin}"


def campaign(kind, steps, kills, dice, folder):
    """The parts of the run that was killed."""
    with Trainer(kind, folder / f"{kind}.errors") as trainer:
        whole = undisturbed(trainer, folder / f"{kind}-undisturbed", steps)
        parts = killed(trainer, folder / f"{kind}-killed", steps, kills, dice)
    check(kind, parts, whole)
    return parts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--kills", type=int, default=20)
    campaigns.add_options(parser)
    arguments = parser.parse_args()
    steps = STEPS + 2 * arguments.kills

    def loop(seed, folder):
        dice = random.Random(seed)
        started = time.monotonic()
        for kind in arguments.kinds:
            parts = campaign(kind, steps, arguments.kills, dice, folder)
            print(f"{kind}: {arguments.kills} kills, {sum(map(len, parts))} steps seen for {steps}, each as undisturbed", flush=True)
        return time.monotonic() - started, {"trainers": arguments.kinds, "steps": steps}

    campaigns.run(arguments, "trainers", arguments.kills * len(arguments.kinds), "kills", loop)


if __name__ == "__main__":
    main()
