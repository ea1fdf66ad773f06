"""Writes corpus/cursor from real cursors: those that `penstock run --cursor-out` makes of the pipelines of cursor_fuzz.cc and of others.

    make_cursor_corpus.py PENSTOCK      # the program; its private daemon does the rest
"""

import pathlib
import struct
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).parent / "corpus" / "cursor"

SPECS = {
    "range": "stage { range { stop: 1000 } } stage { shuffle { buffer_size: 20 seed: 1 } } stage { repeat { count: 3 } } "
    "stage { batch { batch_size: 4 } }",
    "zip": "stage { range { stop: 40 } } stage { zip { input { stage { range { stop: 90 } } stage { skip { count: 3 } } } } } "
    "stage { take { count: 30 } } stage { repeat {} } stage { enumerate {} } stage { batch { batch_size: 6 } }",
    "records": "stage { tfrecord { files: 'DATA/*' cycle_length: 2 } } stage { shuffle { global: true seed: 2 } } "
    "stage { shard { num_shards: 3 index: 1 } } stage { repeat {} } stage { batch { batch_size: 5 } }",
}

# Positions of the three pipelines, from the last op to the sources.
COUNTERS = [
    [0, 1, 1, 1, 9, 1, 30, 0],
    [0, 0, 1, 2, 5, 0, 17],
    [0, 11, 0, 0, 1, 12, 0, 0, 0, 3, 0, 15],
]


def main(penstock):
    CORPUS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([penstock, "make-sample", "chess", "--records", "200", "--out", f"{folder}/data"], check=True)
        for name, text in SPECS.items():
            spec = pathlib.Path(folder) / f"{name}.textproto"
            spec.write_text(text.replace("DATA", f"{folder}/data"))
            cursor = pathlib.Path(folder) / f"{name}.cursor"
            subprocess.run([penstock, "run", spec, "--steps", "7", "--cursor-out", cursor], check=True, stdout=subprocess.DEVNULL)
            bytes_ = cursor.read_bytes()
            (CORPUS / f"{name}-cursor").write_bytes(bytes([0]) + bytes_)
            (CORPUS / f"{name}-message").write_bytes(bytes([4]) + bytes_[8:])
    for pipeline, counters in enumerate(COUNTERS):
        (CORPUS / f"counters-{pipeline}").write_bytes(bytes([8 + pipeline]) + struct.pack(f"<{len(counters)}Q", *counters))


if __name__ == "__main__":
    main(*sys.argv[1:])
