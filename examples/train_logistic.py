"""Trains a logistic regression in NumPy on chess positions: who stands better, the side to move or its opponent?

    penstock create config/pipelines/chess_float32.textproto
    python examples/train_logistic.py

The batches are read where the daemon wrote them, in shared memory; nothing is copied on the way.
"""

import argparse
import os

# One thread is enough for a product of 512 x 1546, and the rest of the machine belongs to the daemon's workers.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np
import penstock

LEARNING_RATE = 0.05
REPORT_SECONDS = 1.0


class LogisticRegression:
    """Predicts the sign of `score` from the bits of `board` and `flags`, by stochastic gradient descent."""

    def __init__(self):
        self.board_weights = np.zeros(8 * 8 * 24, np.float32)
        self.flags_weights = np.zeros(10, np.float32)
        self.bias = np.float32(0)

    def step(self, batch):
        """Returns the mean loss and the share of right predictions over the decided positions of the batch, before its update."""
        board = batch["board"].reshape(len(batch["board"]), -1)
        flags = batch["flags"]
        decided = batch["score"] != 0
        target = (batch["score"] > 0).astype(np.float32)
        logit = board @ self.board_weights + flags @ self.flags_weights + self.bias
        loss = np.logaddexp(0, logit) - target * logit
        error = (1 / (1 + np.exp(-logit)) - target) * decided / max(1, decided.sum())
        self.board_weights -= LEARNING_RATE * (error @ board)
        self.flags_weights -= LEARNING_RATE * (error @ flags)
        self.bias -= LEARNING_RATE * error.sum()
        return loss[decided].mean(), ((logit > 0) == (target > 0))[decided].mean()


def cpu_seconds(pid):
    """User and system time of a process so far (man 5 proc, fields 14 and 15 of stat)."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", default="chess_float32")
    parser.add_argument("--socket", help="the daemon's socket, if it is not the default one")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--daemon-pid", type=int, help="whose processor time is shown, too")
    arguments = parser.parse_args()

    model = LogisticRegression()
    examples = steps = 0
    waiting = 0.0
    losses, hits = [], []
    pids = {"trainer": os.getpid(), "penstockd": arguments.daemon_pid}
    pids = {name: pid for name, pid in pids.items() if pid}
    batches = iter(penstock.attach(arguments.pipeline, socket=arguments.socket))

    print(f"{'seconds':>7} {'step':>7} {'examples':>10} {'loss':>7} {'right':>6} {'waiting':>8}")
    cpu_before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    start = report = asked = time.perf_counter()
    try:
        for batch in batches:
            got = time.perf_counter()
            waiting += got - asked
            loss, right = model.step(batch)
            losses.append(loss)
            hits.append(right)
            examples += len(batch["score"])
            steps += 1
            asked = time.perf_counter()
            if asked - report >= REPORT_SECONDS or asked - start >= arguments.seconds:
                print(f"{asked - start:7.1f} {steps:7d} {examples:10d} {np.mean(losses):7.4f} {np.mean(hits):6.1%} "
                      f"{waiting / (asked - start):8.1%}", flush=True)
                losses, hits, report = [], [], asked
                if asked - start >= arguments.seconds:
                    break
    except KeyboardInterrupt:
        print()
    elapsed = asked - start
    print()
    print(f"{'examples/s':32} {examples / elapsed:12,.0f}")
    print(f"{'share of time the trainer waited':32} {waiting / elapsed:12.1%}")
    for name, pid in pids.items():
        print(f"{'CPU seconds of ' + name:32} {cpu_seconds(pid) - cpu_before[name]:12.2f}   in {elapsed:.1f} s")


if __name__ == "__main__":
    main()
