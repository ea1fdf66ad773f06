"""DALI's reader of TFRecords on objects of S3: image and label of each record, not decoded. One JSON line.

    AWS_ENDPOINT_URL=… AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… python dali_s3.py FOLDER RECORDS s3://BUCKET/NAME…

FOLDER has the same files, of which the indices are made that DALI's reader wants. "cannot" in the place of figures: DALI's own words.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

import nvidia.dali.fn as fn
from nvidia.dali import pipeline_def

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

from take_dali import BYTES, NUMBER, THREADS, write_index  # noqa: E402

BATCH = 40


@pipeline_def(batch_size=BATCH, num_threads=THREADS, device_id=None)
def records(paths, indices):
    read = fn.readers.tfrecord(path=paths, index_path=indices, features={"image/encoded": BYTES, "image/class/label": NUMBER}, dont_use_mmap=True,
                               prefetch_queue_depth=2)
    return read["image/encoded"], read["image/class/label"]


def main():
    folder, count, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as made:
        indices = []
        for path in paths:
            name = path.rsplit("/", 1)[1]
            indices.append(os.path.join(made, name))
            write_index(os.path.join(folder, name), indices[-1])
        try:
            pipeline = records(paths, indices)
            pipeline.build()
            pipeline.run()
        except (RuntimeError, ValueError) as error:
            print(json.dumps({"cannot": " ".join(str(error).split())[:300]}))
            return
        begin, taken = time.monotonic(), 0
        # One pass, but for the first batch, which has waited for the start; at most a minute of it.
        while taken + BATCH < int(count) and time.monotonic() - begin < 60:
            pipeline.run()
            taken += BATCH
        print(json.dumps({"records_per_s": taken / (time.monotonic() - begin)}))


main()
