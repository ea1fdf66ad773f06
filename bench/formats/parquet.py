"""Parquet and source processes, beside pyarrow's and Grain's own readers.

    python bench/formats/parquet.py [--quick] [--cases parquet,parquet_binary,source_process] [--runs N]

One line of JSON a case and peer; everything else goes to stderr. It runs by a Python that has penstock, pyarrow and, for that peer, grain. Each side is a process of
its own and reads the same file, from memory, by turns; processor time is that of all processes of a side, from the first batch to the end.

* parquet: three columns of numbers, zstd, batches of 64. pyarrow: iter_batches(64), whose columns become NumPy's arrays; "pyarrow_bare": the row groups alone, as whole columns.
* parquet_binary: binaries of 4 KB, not compressed, batches of 64. pyarrow: the row groups, whose bytes are not touched.
* source_process: records of 4 KB of a penstock.io.Source, batches of 64; the peer is a loop over its read() alone.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))

from process_tree import cpu_seconds  # noqa: E402
from turns import by_turns, median, ratios, spread  # noqa: E402

BATCH = 64
RECORD_BYTES = 4096
PEERS = {"parquet": ("pyarrow", "pyarrow_bare", "grain"), "parquet_binary": ("pyarrow",), "source_process": ("loop",)}
ROWS = {"parquet": 8_000_000, "parquet_binary": 200_000, "source_process": 200_000}


# --- files --------------------------------------------------------------------------------------


def make(case, rows, folder):
    if case == "source_process":
        return ""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = str(folder / f"{case}.parquet")
    random = np.random.default_rng(1)
    if case == "parquet":
        columns = {"a": random.normal(size=rows).astype(np.float32), "b": np.arange(rows), "c": random.integers(0, 1000, rows)}
        pq.write_table(pa.table(columns), path, row_group_size=131_072, compression="zstd")
        return path
    data = random.integers(0, 256, rows * RECORD_BYTES, np.uint8).tobytes()
    offsets = np.arange(rows + 1, dtype=np.int64) * RECORD_BYTES
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    pq.write_table(pa.table({"x": values}), path, row_group_size=4_096, compression="none", use_dictionary=False)
    return path


# --- sides --------------------------------------------------------------------------------------


def penstock_batches(case, path, rows):
    import penstock

    if case == "source_process":
        from records import Records

        return penstock.Dataset.from_source(Records(rows, RECORD_BYTES)).batch(BATCH)
    return penstock.Dataset.parquet(path).batch(BATCH)


def pyarrow_batches(case, path, rows):
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    if case == "parquet_binary":
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, use_threads=False)
        return
    for batch in file.iter_batches(BATCH, use_threads=False):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def pyarrow_bare_batches(case, path, rows):
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, use_threads=False)
        yield [column.to_numpy() for column in table.columns]


def grain_batches(case, path, rows):
    import grain

    dataset = getattr(grain, "experimental", grain).ParquetIterDataset(path)
    return iter(dataset.batch(BATCH))


def loop_batches(case, path, rows):
    from records import Records

    for record, _ in Records(rows, RECORD_BYTES).read(None):
        yield record


def take(side, case, path, rows):
    batches = iter(globals()[f"{side}_batches"](case, path, rows))
    next(batches)
    cpu, start = cpu_seconds(), time.monotonic()
    for _ in batches:
        pass
    seconds, cpu = time.monotonic() - start, cpu_seconds() - cpu
    return {"rows_per_s": rows / seconds, "rows_per_cpu_s": rows / cpu}


# --- turns --------------------------------------------------------------------------------------


def in_process(side, case, path, rows):
    command = [sys.executable, __file__, "--side", side, "--cases", case, "--path", path, "--rows", str(rows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return json.loads(done.stdout)


def run(case, rows, runs, peers=None):
    """Prints the case's lines; False where a side has failed."""
    peers = [peer for peer in PEERS[case] if peers is None or peer in peers]
    with tempfile.TemporaryDirectory() as folder:
        path = make(case, rows, pathlib.Path(folder))
        takes = {side: lambda side=side: in_process(side, case, path, rows) for side in ("penstock", *peers)}
        results = by_turns(case, takes, runs)
    ours = results["penstock"]
    for peer in peers:
        theirs = results[peer]
        if ours is None or theirs is None:
            continue
        line = {"case": case, "peer": peer, "rows_per_s": round(median(ours, "rows_per_s")), "rows_per_cpu_s": round(median(ours, "rows_per_cpu_s"))}
        line |= {"peer_rows_per_s": round(median(theirs, "rows_per_s")), "peer_rows_per_cpu_s": round(median(theirs, "rows_per_cpu_s"))}
        line |= spread(ratios("rows_per_s", ours, theirs))
        line |= {f"cpu_{name}": value for name, value in spread(ratios("rows_per_cpu_s", ours, theirs)).items()}
        print(json.dumps({**line, "runs": runs, "load": round(os.getloadavg()[0], 1)}), flush=True)
    return None not in results.values()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", default=",".join(PEERS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--side")
    parser.add_argument("--path")
    parser.add_argument("--rows", type=int)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(take(arguments.side, arguments.cases, arguments.path, arguments.rows)))
        return
    done = [run(case, ROWS[case] // (8 if arguments.quick else 1), 1 if arguments.quick else arguments.runs) for case in arguments.cases.split(",")]
    sys.exit(0 if all(done) else 1)


if __name__ == "__main__":
    main()
