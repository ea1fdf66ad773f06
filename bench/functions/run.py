"""What functions of images and arrays cost beside TensorFlow's: `./dev bench functions [--quick] [--cases A,B]`.

Each case (cases.py) is run by turns in Penstock and in tf.data with parallel map and prefetch, and printed as a line of JSON: `ours`
and `theirs` are medians of microseconds of processor time an element, all processes together; `ratio`, `min` and `max` the median and
the extremes of theirs / ours over the turns. Everything else goes to stderr.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import cases

TAKE = pathlib.Path(__file__).parents[1] / "effects" / "take.py"


def microseconds(python, side, case, seconds):
    command = [python, TAKE, "--side", side, "--cases-of", pathlib.Path(__file__).parent, "--case", case, "--folder", ".",
               "--seconds", seconds, "--tuned"]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120 + 20 * seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{side}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])["cpu_s_per_million"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf-python", required=True, help="a Python with TensorFlow")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(cases.CASES))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="one run")
    arguments = parser.parse_args()
    runs = 1 if arguments.quick else arguments.runs
    unknown = set(arguments.cases) - set(cases.CASES)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(cases.CASES)}")
    failed = False
    for case in arguments.cases:
        try:
            pairs = []
            for _ in range(runs):
                pairs.append((microseconds(sys.executable, "penstock", case, arguments.seconds),
                              microseconds(arguments.tf_python, "tensorflow", case, arguments.seconds)))  # fmt: skip
            ratios = [theirs / ours for ours, theirs in pairs]
            ours, theirs = (round(statistics.median(side), 1) for side in zip(*pairs))
            ratio, least, most = (round(value, 3) for value in (statistics.median(ratios), min(ratios), max(ratios)))
            print(json.dumps({"case": case, "peer": "tf.data", "ours": ours, "theirs": theirs, "ratio": ratio, "runs": runs,
                              "min": least, "max": most}), flush=True)  # fmt: skip
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"FAILED: {case}: {error}", file=sys.stderr, flush=True)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
