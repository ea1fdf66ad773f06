"""Arrow files beside pyarrow and Hugging Face's datasets: a part of `./dev bench formats`.

arrow           batches of 64 rows of three numeric columns (int64, float32, float64), in order, beside pyarrow's own loop over batches of 64 as NumPy arrays, and beside
                datasets with torch's format (case `arrow`, peer `datasets`)
arrow_random    rows of a data set on the disk in a random order, in batches of 64, beside ds[i] of datasets with torch's format
"""

import pathlib
import subprocess
import sys
import tempfile

import sides

CASES = ("arrow", "arrow_random")

# In a Python that has the packages.
WRITE = """
import sys, numpy as np, datasets, pyarrow as pa
folder, rows = sys.argv[1], int(sys.argv[2])
dice = np.random.default_rng(5)
columns = {"a": np.arange(rows), "b": dice.random(rows, np.float32), "c": dice.random(rows)}
table = pa.table(columns)
with pa.ipc.new_file(f"{folder}/rows.arrow", table.schema) as out:
    out.write_table(table, max_chunksize=65536)
datasets.disable_progress_bars()
datasets.Dataset(table).save_to_disk(f"{folder}/saved", num_shards=4)
"""


def main():
    arguments = sides.arguments_of(__doc__.splitlines()[0], CASES)
    cases = arguments.cases.split(",")
    seconds, turns = (1, 1) if arguments.quick else (3, arguments.turns)
    rows = 1_000_000 if arguments.quick else 4_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([arguments.peer_python, "-c", WRITE, name, str(rows)], check=True, stdout=sys.stderr)
        columns = " ".join(f'feature {{ name: "{column}" }}' for column in "abc")
        batch = ["batch { batch_size: 64 drop_remainder: true }", "repeat {}"]

        def peer(side, files):
            return [arguments.peer_python, sides.HERE / "side_loop.py", side, files, seconds]

        saved = f'arrow {{ files: "{folder}/saved/data-*.arrow" {columns} }}'
        if "arrow" in cases:
            ours = sides.engine(folder, "arrow", [f'arrow {{ files: "{folder}/rows.arrow" {columns} }}', *batch], seconds)
            sides.compare("arrow", "pyarrow", ours, peer("pyarrow", folder / "rows.arrow"), turns, rows=rows)
            ours = sides.engine(folder, "arrow_saved", [saved, *batch], seconds)
            sides.compare("arrow", "datasets", ours, peer("datasets", folder / "saved"), turns, rows=rows)
        if "arrow_random" in cases:
            ours = sides.engine(folder, "arrow_random", [saved, "shuffle { global: true seed: 1 }", *batch], seconds)
            sides.compare("arrow_random", "datasets", ours, peer("datasets_rows", folder / "saved"), turns, rows=rows)


if __name__ == "__main__":
    main()
