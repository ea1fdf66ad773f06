"""The loop that times one side of a case, and prints {"examples_per_s": …, "cpu_s_per_million": …}: processor time of all its processes."""

import json
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))

from process_tree import cpu_seconds  # noqa: E402


def time_batches(batches, warm_up, seconds=None, at_once=1, rows=None):
    """Takes batches, each the number of its rows, for `seconds`, and looks at the clock after every `at_once`; or all of them, of `rows` together. The first `warm_up` do not count."""
    for _ in range(warm_up):
        next(batches)
    taken, begin, cpu = rows or 0, time.perf_counter(), cpu_seconds()
    if rows is not None:
        for _ in batches:
            pass
    else:
        while time.perf_counter() - begin < seconds:
            for _ in range(at_once):
                taken += next(batches)
    took, cpu = time.perf_counter() - begin, cpu_seconds() - cpu
    print(json.dumps({"examples_per_s": taken / took, "cpu_s_per_million": 1e6 * cpu / taken}))
