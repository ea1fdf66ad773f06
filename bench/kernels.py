"""`./dev bench kernels`: bench_kernels' expressions against hand-written loops, and against NumPy over the same batch of rows.

Prints a line of JSON a case and peer: {"case", "peer", "ours", "theirs" (ns a row), "ratio", "runs"}, medians of turns in which all
sides are timed one after the other. NumPy's line has "over_loop", its time over the hand-written loop's, too: how many times as fast
as NumPy a loop is that memory alone holds up.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np

ROWS, SIDE = 16, 64
TURNS = 3
WINDOW_S = 0.1
MEAN = np.array([123.675, 116.28, 103.53], np.float32)
STD = np.array([58.395, 57.12, 57.375], np.float32)
HALF, ONE = np.float32(127.5), np.float32(1)


def inputs():
    random = np.random.default_rng(1)
    image = random.integers(0, 256, (ROWS, SIDE, SIDE, 3), np.uint8)
    x = random.uniform(-2, 62, (ROWS, SIDE, SIDE, 3)).astype(np.float32)
    return image, x, np.arange(ROWS) * 61 % 1000


def one_hot(label):
    result = np.zeros((len(label), 1000), np.float32)
    result[np.arange(len(label)), label] = 1
    return result


# What a user of NumPy writes for a batch.
CASES = {
    "normalise_to_planes": lambda image, x, label: np.ascontiguousarray(((image - MEAN) / STD).transpose(0, 3, 1, 2)),
    "gather": lambda image, x, label: image[..., [2, 1, 0]].astype(np.float32),
    "where": lambda image, x, label: np.where(x > 0, x, x * np.float32(0.01)),
    "scale": lambda image, x, label: image / HALF - ONE,
    "transpose": lambda image, x, label: np.ascontiguousarray(x.reshape(ROWS, SIDE, 3 * SIDE).transpose(0, 2, 1)),
    "one_hot": lambda image, x, label: one_hot(label),
    "subtract_mean": lambda image, x, label: x - x.mean(axis=(1, 2, 3), keepdims=True),
    "log_tanh": lambda image, x, label: np.tanh(np.log(x * x + ONE)),
    "rational": lambda image, x, label: (x + ONE) * (x - ONE) / (x * x + ONE),
}


def numpy_ns(function, arguments):
    function(*arguments)
    passes, begin = 0, time.thread_time()
    while time.thread_time() - begin < WINDOW_S:
        function(*arguments)
        passes += 1
    return (time.thread_time() - begin) * 1e9 / (passes * ROWS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    options = parser.parse_args()
    arguments = inputs()
    for name in options.cases or CASES:
        loops, numpys = [], []
        for _ in range(TURNS):
            run = subprocess.run([options.program, name], check=True, stdout=subprocess.PIPE, text=True)
            loops.append(json.loads(run.stdout))
            numpys.append(numpy_ns(CASES[name], arguments))
        ours = [loop["ours"] for loop in loops]
        theirs = [loop["theirs"] for loop in loops]
        over_loop = statistics.median(numpy / loop for numpy, loop in zip(numpys, theirs))
        show(name, "loop", ours, theirs, [loop["ratio"] for loop in loops])
        show(name, "numpy", ours, numpys, [a / b for a, b in zip(ours, numpys)], over_loop=round(over_loop, 2))


def show(name, peer, ours, theirs, ratios, **more):
    print(json.dumps({
        "case": name, "peer": peer, "ours": round(statistics.median(ours), 1), "theirs": round(statistics.median(theirs), 1),
        "ratio": round(statistics.median(ratios), 3), "min": round(min(ratios), 3), "max": round(max(ratios), 3), "runs": TURNS, **more,
    }), flush=True)


if __name__ == "__main__":
    main()
