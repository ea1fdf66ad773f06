"""One side of parquet.py's cases: `side_parquet.py NAME CASE PATH ROWS`. Prints {"examples_per_s": …, "cpu_s_per_million": …}, processor time of all its processes."""

import sys

from timed_loop import time_batches

BATCH = 64
RECORD_BYTES = 4096


def penstock_batches(case, path, rows):
    import penstock

    if case != "source_process":
        return penstock.Dataset.parquet(path).batch(BATCH)
    from records import Records

    return penstock.Dataset.from_source(Records(rows, RECORD_BYTES)).batch(BATCH)


def pyarrow_batches(case, path, rows):
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(BATCH, use_threads=False):
        yield [column.to_numpy(zero_copy_only=False) for column in batch.columns]


def pyarrow_columns_batches(case, path, rows):
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, use_threads=False)
        yield table if case == "parquet_binary" else [column.to_numpy() for column in table.columns]


def grain_batches(case, path, rows):
    import grain

    return grain.experimental.ParquetIterDataset(path).batch(BATCH)


def loop_batches(case, path, rows):
    from records import Records

    return (record for record, _ in Records(rows, RECORD_BYTES).read(None))


def main():
    name, case, path, rows = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    time_batches(iter(globals()[f"{name}_batches"](case, path, rows)), warm_up=1, rows=rows)


if __name__ == "__main__":
    main()
