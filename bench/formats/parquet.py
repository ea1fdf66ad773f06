"""Parquet files and source processes beside pyarrow, Grain and a loop: a part of `./dev bench formats`.

parquet          batches of 64 rows of three numeric columns (float32, int64, int64), zstd, in order; beside pyarrow's iter_batches(64) as NumPy arrays (peer `pyarrow`), its row groups
                 as whole columns without any batches (`pyarrow_columns`), and Grain's reader (`grain`)
parquet_binary   batches of 64 binaries of 4 KB, not compressed; beside pyarrow's row groups, whose bytes nobody touches
source_process   batches of 64 records of 4 KB of a penstock.io.Source; beside a loop over its read() alone

Ours is the Python client: trainer, daemon and worker processes together, from the first batch on. --peer-python has pyarrow and grain.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import sides

CASES = ("parquet", "parquet_binary", "source_process")

PEERS = {"parquet": ("pyarrow", "pyarrow_columns", "grain"), "parquet_binary": ("pyarrow_columns",), "source_process": ("loop",)}
ROWS = {"parquet": 8_000_000, "parquet_binary": 200_000, "source_process": 400_000}
# Of the rows, for a peer that would take minutes for all of them.
PART = {"grain": 16}

# In a Python that has the package.
WRITE = """
import sys, numpy as np, pyarrow as pa, pyarrow.parquet as pq
case, path, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
dice = np.random.default_rng(1)
if case == "parquet":
    table = pa.table({"a": dice.normal(size=rows).astype(np.float32), "b": np.arange(rows), "c": dice.integers(0, 1000, rows)})
    pq.write_table(table, path, row_group_size=131072, compression="zstd")
else:
    data, ends = dice.integers(0, 256, rows * 4096, np.uint8).tobytes(), np.arange(rows + 1, dtype=np.int64) * 4096
    values = pa.LargeBinaryArray.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(data)])
    pq.write_table(pa.table({"x": values}), path, row_group_size=4096, compression="none", use_dictionary=False)
"""


def main():
    arguments = sides.arguments_of(__doc__.splitlines()[0], CASES)
    build = sides.BIN.parent
    paths = f"PYTHONPATH={build / 'python'}", f"PATH={sides.BIN}:{os.environ['PATH']}"
    turns = 1 if arguments.quick else arguments.turns
    # As an installed package is: each worker process imports it.
    subprocess.run(["env", "-u", "PYTHONDONTWRITEBYTECODE", arguments.peer_python, "-m", "compileall", "-q", build / "python" / "penstock"], check=True)
    for case in arguments.cases.split(","):
        rows = ROWS[case] // (8 if arguments.quick else 1)
        with tempfile.TemporaryDirectory() as folder:
            def side(name, case=case, rows=rows, folder=folder):
                rows //= PART.get(name, 1)
                path = pathlib.Path(folder) / f"{rows}.parquet"
                if case != "source_process" and not path.exists():
                    subprocess.run([arguments.peer_python, "-c", WRITE, case, str(path), str(rows)], check=True, stdout=sys.stderr)
                return ["env", *paths, arguments.peer_python, sides.HERE / "side_parquet.py", name, case, path, rows]

            for peer in PEERS[case]:
                sides.compare(case, peer, side("penstock"), side(peer), turns, rows=rows, load=round(os.getloadavg()[0], 1))


if __name__ == "__main__":
    main()
