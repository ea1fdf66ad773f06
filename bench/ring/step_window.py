"""What a training loop is measured with: the time and the trainer's processor time of a step, for a while after the first steps."""

import json
import os
import time

WARM_UP_STEPS = 10


def cpu_seconds():
    """Of this process and of those that it has started, ended or not (a loader's workers)."""
    total = 0.0
    for pid in [os.getpid(), *_below(os.getpid())]:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return total


def _below(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []
    return children + [one for child in children for one in _below(child)]


class StepWindow:
    """`step_done()` after every step says whether the window is over; `show()` prints what was found."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.steps = -WARM_UP_STEPS
        self.begin = self.cpu = 0.0

    def step_done(self):
        self.steps += 1
        if self.steps < 0:
            return False
        if self.steps == 0:
            self.begin, self.cpu = time.perf_counter(), cpu_seconds()
            return False
        self.end = time.perf_counter()
        return self.end - self.begin >= self.seconds

    def show(self, loss):
        cpu = cpu_seconds() - self.cpu
        print(json.dumps({"steps": self.steps, "step_ms": (self.end - self.begin) / self.steps * 1e3,
                          "trainer_cpu_ms": cpu / self.steps * 1e3, "loss": loss}))
