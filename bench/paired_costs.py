"""Two sides of a case, run by turns, and a line of JSON for their costs: what `./dev bench functions` and `./dev bench augment` share."""

import json
import statistics
import subprocess
import sys


def run_json(command, seconds):
    """Runs one side for some `seconds` and returns its line of JSON."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120 + 20 * seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def add_options(parser, known):
    """The options that choose cases and how often and how long each side of them is run."""
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(known))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="one run")


def compare(parser, arguments, known, peer, ours, theirs):
    """Prints the line of each case that was asked for.

    `ours` and `theirs` take a case and return microseconds of processor time an element. Returns the exit code: 1 where a side failed.
    """
    unknown = set(arguments.cases) - set(known)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(known)}")
    runs = 1 if arguments.quick else arguments.runs
    failed = False
    for case in arguments.cases:
        try:
            pairs = [(ours(case), theirs(case)) for _ in range(runs)]
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"FAILED: {case}: {error}", file=sys.stderr, flush=True)
            failed = True
            continue
        costs = [round(statistics.median(side), 1) for side in zip(*pairs)]
        ratios = [peer_cost / own for own, peer_cost in pairs]
        ratio, least, most = (round(value, 3) for value in (statistics.median(ratios), min(ratios), max(ratios)))
        print(json.dumps({"case": case, "peer": peer, "ours": costs[0], "theirs": costs[1], "ratio": ratio, "runs": runs,
                          "min": least, "max": most}), flush=True)  # fmt: skip
    return 1 if failed else 0
