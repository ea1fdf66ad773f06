"""One side of one case, once: prints a line of JSON. run.py starts it in the Python that the side needs."""

import argparse
import importlib
import json
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "peers"))

import functions
import numpy as np
import process_tree
import window

STEPS_BEFORE = 100  # of a state that a loader goes on from


def first_batch(batches):
    """Seconds until the first batch is there. What the trainer imports is imported already."""
    begin = time.perf_counter()
    next(batches)
    return {"seconds": time.perf_counter() - begin}


def resume(side, function, batch, workers):
    """Seconds from the making of a loader, which is given a state, to the first batch behind that. Its workers, and Penstock's daemon, are others than before."""
    state = side.state_behind(STEPS_BEFORE, function, batch, workers)
    batches = side.batches_from(state, function, batch, workers)
    return first_batch(batches)


def memory(side, options, workers, array_bytes):
    """Bytes that an array in a function takes: of all processes, beyond the same with an array of 1 MiB."""

    def used(size):
        rows = side.batches(functions.Table(np.ones(size // 8, np.int64)), 1, workers, **options)
        for _ in range(64 * workers):  # every worker has had a row
            next(rows)
        total = process_tree.memory_bytes()
        rows.close()
        return total

    plain = used(1 << 20)
    return {"memory_bytes": used(array_bytes) - plain}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", required=True, help="a module side_NAME")
    parser.add_argument("--what", choices=["rate", "first_batch", "resume", "memory"], default="rate")
    parser.add_argument("--function", default="small")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--worker", type=int, help="of several loops, which")
    parser.add_argument("--no-seeds", action="store_true", help="Penstock leaves the global generators alone")
    parser.add_argument("--array-bytes", type=int, default=1 << 30)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()

    side = importlib.import_module("side_" + arguments.side)
    options = {} if arguments.worker is None else {"worker": arguments.worker}
    if arguments.no_seeds:
        options["seeds"] = False
    if arguments.what == "memory":
        print(json.dumps(memory(side, options, arguments.workers, arguments.array_bytes)))
        return
    function = getattr(functions, arguments.function)
    if arguments.what == "resume":
        print(json.dumps(resume(side, function, arguments.batch, arguments.workers)))
        return
    batches = side.batches(function, arguments.batch, workers=arguments.workers, **options)
    if arguments.what == "first_batch":
        print(json.dumps(first_batch(batches)))
    else:
        window.measure(batches, window.touch_ends, arguments.seconds, process_tree.cpu_seconds)


if __name__ == "__main__":
    main()
