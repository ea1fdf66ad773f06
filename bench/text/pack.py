"""Packing alone: the time for a token, the padding beside Grain's, and resuming in the middle of a window.

    python bench/text/pack.py [--quick] [--grain-python PYTHON] [--runs N] [--bin FOLDER]

Prints a JSON line for each case. `pack` is asked to take at most 5 ns a token in all its parts, and its padding to be at most that of
Grain's best fit over the same lengths (PYTHON has grain and NumPy). Lengths are log-normal, of a median of 500 tokens. What a resume takes
where a `map` makes the documents, and there can be no index of tokens, is told besides; with one it is the case `resume` (pipeline.py).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

CASES = ("pack",)
ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("PENSTOCK_BENCH_TEXT_PYTHON", str(ROOT / "build/text-venv/bin/python"))
LENGTH = 2048
BATCH = 8
WINDOW = 10_000
DOCUMENTS = 20_000
GRAIN_DOCUMENTS = 1_500  # it takes a minute for them

# Grain's best fit, with a number of open sequences. Documents that are longer than a sequence are cut.
GRAIN = """
import sys, json, numpy as np, grain, grain.experimental
lengths, size, bins = np.load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
pieces = [min(size, n - at) for n in lengths.tolist() for at in range(0, n, size)]
source = grain.MapDataset.source([{"x": np.ones(n, np.int32)} for n in pieces]).to_iter_dataset()
packed = grain.experimental.BestFitPackIterDataset(source, length_struct={"x": size}, num_packing_bins=bins, shuffle_bins=False)
rows = sum(1 for _ in packed)
print(json.dumps({"padding": 1 - sum(pieces) / (rows * size)}))
"""


def last_line(program, *arguments):
    ended = subprocess.run([str(part) for part in (program, *arguments)], capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{program}: {ended.stderr.strip()}")
    return json.loads(ended.stdout.splitlines()[-1])


def alone(folder, method):
    """Documents of 500 tokens out of an array: there is next to nothing to do but to pack."""
    np.save(folder / "tokens.npy", np.arange(DOCUMENTS * 500, dtype=np.int32).reshape(DOCUMENTS, 500))
    path = folder / f"alone_{method}.textproto"
    path.write_text(
        f"stage {{ from_tensor_slices {{ tensor {{ name: 'tokens' npy: '{folder}/tokens.npy' }} }} }}\n"
        f"stage {{ pack {{ sequence_length: {LENGTH} method: '{method}' window: {WINDOW} }} }}\n"
        f"stage {{ batch {{ batch_size: {BATCH} }} }}\nstage {{ repeat {{}} }}\n"
    )
    return path


def spec(folder, lengths, method):
    np.save(folder / "lengths.npy", lengths)
    path = folder / f"{method}.textproto"
    path.write_text(
        f"stage {{ from_tensor_slices {{ tensor {{ name: 'n' npy: '{folder}/lengths.npy' }} }} }}\n"
        "stage { map { out: 'tokens = int32(arange(n))' } }\n"
        f"stage {{ pack {{ sequence_length: {LENGTH} tokens: 'tokens' method: '{method}' window: {WINDOW} segment_ids: true "
        f"positions: true }} }}\nstage {{ batch {{ batch_size: {BATCH} }} }}\nstage {{ repeat {{}} }}\n"
    )
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", help="ignored: there is one")
    parser.add_argument("--grain-python", default=PYTHON if os.path.exists(PYTHON) else None)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options = parser.parse_args()
    if options.quick:
        options.runs = 1
    lengths = np.random.default_rng(1).lognormal(np.log(500), 1.0, DOCUMENTS).astype(np.int64)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        steps = int(lengths.sum()) // LENGTH // BATCH
        paddings = {}
        for method in ("concat", "best_fit", "first_fit_decreasing"):
            path = spec(folder, lengths, method)
            program = options.bin / "bench_text_pack"
            runs = [last_line(program, "--spec", alone(folder, method), "--steps", 2000) for _ in range(options.runs)]
            times = [run["cpu_ns_per_token"] for run in runs]
            paddings[method] = last_line(program, "--spec", path, "--steps", steps)["padding"]
            print(json.dumps({"case": "pack", "method": method, "cpu_ns_per_token": round(statistics.median(times), 3), "min": min(times),
                              "max": max(times), "asked": 5, "padding": round(paddings[method], 5),
                              "runs": len(runs), "load": round(os.getloadavg()[0], 1)}), flush=True)  # fmt: skip
            resume = last_line(options.bin / "bench_engine_resume", "--spec", path, "--step", steps // 2, "--runs", options.runs)
            print(json.dumps({"case": "resume", "index": False, "method": method, "step": steps // 2, **resume}), flush=True)
        if options.grain_python:
            path = spec(folder, lengths[:GRAIN_DOCUMENTS], "best_fit")
            steps = int(lengths[:GRAIN_DOCUMENTS].sum()) // LENGTH // BATCH
            paddings["best_fit"] = last_line(options.bin / "bench_text_pack", "--spec", path, "--steps", steps)["padding"]
            for bins in (30, 300):
                script = folder / "grain_padding.py"
                script.write_text(GRAIN)
                grain = last_line(options.grain_python, script, folder / "lengths.npy", LENGTH, bins)["padding"]
                print(json.dumps({"case": "padding", "peer": "grain best fit", "bins": bins, "padding": round(paddings["best_fit"], 5),
                                  "peer_padding": round(grain, 5),
                                  "ratio": round(paddings["best_fit"] / grain, 3)}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
