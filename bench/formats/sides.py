"""Two sides of a case by turns: our engine over a spec, and a peer's program; each prints {"examples_per_s": …, "cpu_s_per_million": …}."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
BIN = HERE.parents[1] / "build" / "release" / "bin"


def arguments_of(description, cases):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", default=",".join(cases))
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=5)
    return parser.parse_args()


def log(text):
    print(text, file=sys.stderr, flush=True)


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def engine(folder, name, stages, seconds, workers=1):
    """The command that runs our engine over these stages."""
    path = folder / f"{name}.textproto"
    path.write_text("\n".join([f'name: "{name}"', *(f"stage {{ {stage} }}" for stage in stages)]) + "\n")
    return [BIN / "bench_engine_alone", "--workers", workers, "--seconds", seconds, "--spec", path]


def compare(case, peer, ours, theirs, turns, **fields):
    """Runs both commands by turns and prints the case's line of JSON.

    `ours` and `theirs` are medians of rows a second, `ratio`, `min` and `max` the median and the extremes of ours / theirs over the turns, `cpu_ratio` the median of their
    processor time a row over ours, `per_cpu_s` the rows of a second of our processor time.
    """
    pairs = []
    for turn in range(turns):
        sides = [run(command) for command in ((ours, theirs) if turn % 2 == 0 else (theirs, ours))]
        pairs.append(sides if turn % 2 == 0 else sides[::-1])
        log(f"{case}, {peer}, {turn + 1}/{turns}: " + ", ".join(f"{side['examples_per_s']:,.0f}/s, {side['cpu_s_per_million']:.3f} s/million" for side in pairs[-1]))
    ratios = [ours["examples_per_s"] / theirs["examples_per_s"] for ours, theirs in pairs]
    cpu = [theirs["cpu_s_per_million"] / ours["cpu_s_per_million"] for ours, theirs in pairs]
    rates = [statistics.median(side["examples_per_s"] for side in sides) for sides in zip(*pairs)]
    print(json.dumps({
        "case": case, "peer": peer, "ours": round(rates[0]), "theirs": round(rates[1]), "ratio": round(statistics.median(ratios), 3),
        "cpu_ratio": round(statistics.median(cpu), 3), "min": round(min(ratios), 3), "max": round(max(ratios), 3), "runs": turns,
        "per_cpu_s": round(1e6 / statistics.median(ours["cpu_s_per_million"] for ours, _ in pairs)), **fields,
    }), flush=True)  # fmt: skip
