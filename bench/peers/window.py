"""What every side of a comparison is measured with: a plain `for` loop over its batches, for a while after the first one."""

import json
import os
import time

import numpy as np

WARM_UP_SECONDS = 0.5  # after the first batch, before the window: every side reaches its pace


def touch_ends(arrays):
    """Reads the first and the last element of each array."""
    for array in arrays:
        array.item(0)
        array.item(array.size - 1)


def sum_bytes(arrays):
    """Reads every byte: the arrays' memory is added up as 64-bit words."""
    total = 0
    for array in arrays:
        total += int(array.reshape(-1).view(np.uint64).sum())
    return total


def own_cpu_seconds():
    """User and system time of this process and of its ended children."""
    return sum(os.times()[:4])


def process_cpu_seconds(pid):
    """User and system time of a process so far (man 5 proc, fields 14 and 15 of stat)."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(batches, touch, seconds, cpu_seconds=own_cpu_seconds):
    """Takes batches (sequences of arrays) and prints the window's result as a line of JSON: costs by `cpu_seconds`, and of this process."""
    begin = examples = 0
    warm = None
    for arrays in batches:
        touch(arrays)
        now = time.perf_counter()
        if begin:
            examples += len(arrays[0])
            if now - begin >= seconds:
                break
        elif warm is None:
            warm = now + WARM_UP_SECONDS
        elif now >= warm:
            begin, cpu, own = now, cpu_seconds(), time.process_time()
    else:
        raise SystemExit("the stream ended within the window")
    own = time.process_time() - own
    cpu = cpu_seconds() - cpu
    costs = {"cpu_s_per_million": cpu / examples * 1e6, "trainer_cpu_s_per_million": own / examples * 1e6}
    print(json.dumps({"examples_per_s": examples / (now - begin), **costs}), flush=True)
