"""Two builds of Penstock side by side, to see what a change costs: `./dev bench builds --before TREE [--cases A,B] [--pairs N]`.

TREE is another checkout, with programs and Python package in its build/release. Daemons of both builds run the same pipeline over the same warm files, each with a
trainer of its own. The trainers take batches by turns, in windows of a fraction of a second: whatever else the machine does meets both alike, so that differences of
one in a hundred can be seen where runs one behind the other differ by one in ten.

Prints a line of JSON a case. `rate` and `cpu` are this build's over the other one's: medians of the pairs, with the interval in which 95 of 100 medians of drawn
pairs lie (bootstrap). CPU seconds are those of daemon and trainer.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

from run import RATE_CASES, SHARDS_OF, SPEC_OF
from sample_data import shards, warm

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
RECORDS = {"chess": 400_000, "flowers": 2_000, "segmentation": 200}
START = """
import sys
sys.path.insert(0, "bench/peers")
import daemon
print(daemon.spec_text(*sys.argv[1:]))
with daemon.daemon(sys.argv[3]) as (process, socket):
    daemon.ctl(socket, "create", sys.argv[3] + "/" + sys.argv[1] + ".textproto")
    print(process.pid, socket, flush=True)
    sys.stdin.read()
"""


def log(text):
    print(text, file=sys.stderr, flush=True)


class Build:
    """A daemon of a tree and its trainer."""

    def __init__(self, tree, case, files, stack):
        name = case.removesuffix("_read")
        pipeline = "chess" if name == "chess_float64" else SPEC_OF.get(name, name)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        environment = {**os.environ, "PYTHONPATH": str(tree / "build/release/python"), "PENSTOCK_BIN": str(tree / "build/release/bin")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
        self._daemon = subprocess.Popen([sys.executable, "-c", START, pipeline, files, folder], cwd=tree, **pipes)
        stack.callback(self._end, self._daemon)
        self._line(self._daemon)
        pid, socket = self._line(self._daemon).split()
        self._trainer = subprocess.Popen([sys.executable, HERE / "take_in_turns.py", "--socket", socket, "--pipeline", pipeline, "--daemon-pid", pid,
                                          *(["--read"] if case.endswith("_read") else [])], **pipes)
        stack.callback(self._end, self._trainer)
        self._line(self._trainer)

    def measure(self, seconds):
        self._trainer.stdin.write(f"{seconds}\n")
        self._trainer.stdin.flush()
        return json.loads(self._line(self._trainer))

    @staticmethod
    def _line(process):
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side has ended: {' '.join(map(str, process.args[:3]))}")
        return line

    @staticmethod
    def _end(process):
        process.stdin.close()
        process.wait()


def median_and_interval(ratios):
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(1000))
    return [round(value, 3) for value in (statistics.median(ratios), medians[25], medians[974])]


def compare(case, before, pairs, seconds, photos):
    kind = SHARDS_OF.get(case, case.partition("_")[0])
    folder = shards(kind, RECORDS[kind], log, photos)
    warm(folder)
    ratios = {"examples_per_s": [], "cpu_s_per_million": []}
    rates = []
    with contextlib.ExitStack() as stack:
        sides = [Build(tree, case, f"{folder}/*.tfrecord", stack) for tree in (before, ROOT)]
        for number in range(pairs):
            order = (0, 1) if number % 2 else (1, 0)
            taken = {side: sides[side].measure(seconds) for side in order}
            rates.append(taken[1]["examples_per_s"])
            for what, found in ratios.items():
                found.append(taken[1][what] / taken[0][what])
    rate, cpu = map(median_and_interval, ratios.values())
    return {"case": case, "pairs": pairs, "examples_per_s": round(statistics.median(rates)), "rate": rate, "cpu": cpu}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=pathlib.Path, help="the other checkout, built")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=RATE_CASES)
    parser.add_argument("--pairs", type=int, default=80)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a window")
    parser.add_argument("--photos", help="the pattern of photographs of which flowers are made")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(RATE_CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}. There are: {', '.join(RATE_CASES)}")
    if not (arguments.before / "build/release/bin/penstockd").is_file():
        parser.error(f"{arguments.before} has no build/release/bin/penstockd: build it first")
    for case in arguments.cases:
        print(json.dumps(compare(case, arguments.before.resolve(), arguments.pairs, arguments.seconds, arguments.photos)), flush=True)


if __name__ == "__main__":
    main()
