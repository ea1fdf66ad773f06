"""What each lever of tf.data's performance guide does, there and here: `./dev bench effects [--quick] [--cases A,B]`.

Each case (cases.py) is run by turns in Penstock as it comes ("defaults"), in Penstock tuned by hand, in tf.data as it comes and in
tf.data tuned, on the same warm files, and printed as a line of JSON a peer: `ours` (defaults) and `theirs` are medians in examples/s,
`ratio`, `min` and `max` the median and the extremes of ours / theirs over the turns. Then how long a dataset over 10,000 files takes
to say its len, element_spec and repr, and what `import penstock` takes beyond the import of NumPy, each in milliseconds beside the
limit (`limit_ms`) that it keeps to. Everything else goes to stderr.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import penstock

HERE = pathlib.Path(__file__).parent
SIDES = {
    "penstock": ("penstock", False),
    "penstock tuned": ("penstock", True),
    "tf.data default": ("tensorflow", False),
    "tf.data tuned": ("tensorflow", True),
}


def log(text):
    print(text, file=sys.stderr, flush=True)


def show(**fields):
    print(json.dumps(fields), flush=True)


def median(results, field):
    return statistics.median(result[field] for result in results)


def rate_case(case, arguments, folder):
    results = {side: [] for side in SIDES}
    for run in range(arguments.runs):
        for name, (side, tuned) in SIDES.items():
            python = arguments.tf_python if side == "tensorflow" else sys.executable
            command = [python, HERE / "take.py", "--side", side, "--case", case, "--folder", folder, "--seconds", arguments.seconds]
            command += ["--tuned"] * tuned
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120 + 20 * arguments.seconds)
            if done.returncode != 0:
                raise RuntimeError(f"{name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
            results[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
            log(f"{case} {run + 1}/{arguments.runs} {name}: {results[name][-1]['examples_per_s']:,.0f}/s")
    ours = results.pop("penstock")
    for peer, theirs in results.items():
        ratios = [a["examples_per_s"] / b["examples_per_s"] for a, b in zip(ours, theirs)]
        cpu_ratios = [b["cpu_s_per_million"] / max(a["cpu_s_per_million"], 1e-9) for a, b in zip(ours, theirs)]
        show(
            case=case, peer=peer, ours=round(median(ours, "examples_per_s")), theirs=round(median(theirs, "examples_per_s")),
            ratio=round(statistics.median(ratios), 3), cpu_ratio=round(statistics.median(cpu_ratios), 3), runs=arguments.runs,
            min=round(min(ratios), 3), max=round(max(ratios), 3),
        )  # fmt: skip


def described(arguments, folder):
    """Milliseconds that len, element_spec and repr take on 10,000 files, each of a dataset that nobody has asked yet."""
    folder = pathlib.Path(folder, "many")
    folder.mkdir()
    record = cases.tfrecord_files.framed(b"a record")
    for i in range(10_000):
        (folder / f"{i:05}.tfrecord").write_bytes(record)
    next(iter(penstock.Dataset.range(1)))  # the private daemon runs
    asks = {"len": lambda d: d.cardinality(), "element_spec": lambda d: d.element_spec, "repr": repr}
    for name, ask in asks.items():
        times = []
        for _ in range(max(arguments.runs, 3)):
            dataset = penstock.TFRecordDataset(f"{folder}/*.tfrecord").batch(8)
            begin = time.perf_counter()
            ask(dataset)
            times.append(1e3 * (time.perf_counter() - begin))
        show_times(f"{name}_10000_files", times, 50)


def show_times(case, times, limit_ms, **fields):
    middle = statistics.median(times)
    show(case=case, ms=round(middle, 2), limit_ms=limit_ms, ratio=round(middle / limit_ms, 3), runs=len(times), min=round(min(times), 2), max=round(max(times), 2), **fields)


def imported(arguments, folder):
    """Milliseconds of processor time that `import penstock` takes where NumPy is imported, by turns with NumPy's own, each in a new process."""
    measure = "import time; begin = time.process_time(); import numpy; middle = time.process_time(); import penstock; end = time.process_time()"
    measure += "; print(1e3 * (middle - begin), 1e3 * (end - middle))"
    # As where packages are installed: compiled once.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(pathlib.Path(folder, "compiled"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    pairs = []
    for _ in range(max(arguments.runs, 5) + 1):
        done = subprocess.run([sys.executable, "-c", measure], env=environment, check=True, capture_output=True, text=True, timeout=60)
        pairs.append(tuple(map(float, done.stdout.split())))
    numpy_ms, ours_ms = zip(*pairs[1:])
    show_times("import_beyond_numpy", ours_ms, 30, numpy_ms=round(statistics.median(numpy_ms), 2))


def main():
    alone = {"described": described, "import": imported}
    known = [*cases.CASES, *alone]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tf-python", required=True, help="a Python with TensorFlow")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=known)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="the window's length")
    parser.add_argument("--quick", action="store_true", help="fewer records, one run of one second")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.runs, arguments.seconds = 1, 1.0
    unknown = set(arguments.cases) - set(known)
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}. There are: {', '.join(known)}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        cases.write_files(folder, 1 if arguments.quick else 4)
        for case in arguments.cases:
            try:
                alone[case](arguments, folder) if case in alone else rate_case(case, arguments, folder)
            except (RuntimeError, OSError, ValueError, subprocess.SubprocessError, penstock.Error) as error:
                log(f"FAILED: {case}: {error}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
