"""One peer, by its own loop: `side_loop.py NAME FILES SECONDS` with a Python that has its package. Prints {"examples_per_s": …, "cpu_s_per_million": …}."""

import glob
import random
import sys

from timed_loop import time_batches

BATCH = 64


def pyarrow_batches(files):
    """Three columns of each batch of 64 rows, as NumPy arrays."""
    import pyarrow as pa

    while True:
        for path in sorted(glob.glob(files)):
            with pa.memory_map(path) as source:
                for batch in pa.ipc.open_file(source).read_all().to_batches(max_chunksize=BATCH):
                    columns = [column.to_numpy() for column in batch.columns]
                    yield len(columns[0])


def datasets_batches(folder):
    """The same by datasets with torch's format."""
    ds = _saved(folder)
    while True:
        for batch in ds.iter(BATCH):
            yield len(batch["a"])


def datasets_rows(folder):
    """Single rows at random, as a sampler asks for them."""
    ds, dice = _saved(folder), random.Random(1)
    count = len(ds)
    while True:
        for _ in range(BATCH):
            ds[dice.randrange(count)]
        yield BATCH


def _saved(folder):
    import datasets

    return datasets.load_from_disk(folder).with_format("torch")


def webdataset_samples(files):
    import webdataset

    paths = sorted(glob.glob(files))
    while True:
        rows = 0
        for sample in webdataset.WebDataset(paths, shardshuffle=False, empty_check=False):
            sample["bin"], sample["cls"]
            rows += 1
            if rows == BATCH:
                yield rows
                rows = 0


SIDES = {"pyarrow": pyarrow_batches, "datasets": datasets_batches, "datasets_rows": datasets_rows, "webdataset": webdataset_samples}


def main():
    name, files, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    time_batches(SIDES[name](files), warm_up=20, seconds=seconds, at_once=20)


if __name__ == "__main__":
    main()
