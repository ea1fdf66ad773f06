"""What a release leaves behind for the next ones: how it is made, and how it is used. Both record.py and the tests have it from here."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import tfrecord_files  # noqa: E402

SHARDS = 3
RECORDS = 40

_PARSE = 'stage { parse_example { feature { key: "n" int64 {} } feature { key: "s" bytes { length: 4 } } } }'
_SHARDS = 'stage { tfrecord { files: "numbers-*.tfrecord" } }'
_TURNS = 'stage { tfrecord { files: "numbers-*.tfrecord" cycle_length: 2 block_length: 3 } }'

# One for each kind of state that a cursor has: places in files, elements held back, draws, passes, inputs in step, sections.
SPECS = {
    "numbers": "stage { range { stop: 300 } } stage { batch { batch_size: 7 } }",
    "shuffled": "stage { range { stop: 300 } } stage { shuffle { buffer_size: 50 seed: 7 } } stage { repeat { count: 2 } } stage { batch { batch_size: 9 } }",
    "records": f"{_SHARDS} {_PARSE} stage {{ shuffle {{ buffer_size: 30 seed: 1 }} }} stage {{ repeat {{}} }} stage {{ batch {{ batch_size: 8 }} }}",
    "turns": f"{_TURNS} {_PARSE} stage {{ skip {{ count: 5 }} }} stage {{ batch {{ batch_size: 6 }} }}",
    "everywhere": f"{_SHARDS} stage {{ shuffle {{ global: true seed: 5 }} }} {_PARSE} stage {{ repeat {{ count: 2 }} }} stage {{ batch {{ batch_size: 10 }} }}",
    "drawn": f"{_SHARDS} {_PARSE} stage {{ map {{ out: \"u = random_uniform([3], seed=1)\" out: \"n = n\" }} }} stage {{ batch {{ batch_size: 8 }} }}",
    "filtered": 'stage { range { stop: 400 } } stage { filter { predicate: "value % 3 != 1" } } stage { repeat { count: 2 } } stage { batch { batch_size: 11 } }',
    "lines": 'stage { text_line { files: "lines.txt" } } stage { shuffle { buffer_size: 9 seed: 3 } } stage { batch { batch_size: 4 } }',
}
# The steps in front of each cursor, and behind it.
STEPS_BEFORE, STEPS_BEHIND = 4, 5

# The trainer of the state folder is not waited for.
REJOIN = ("--rejoin-seconds", "0.5")
# The pipeline of the state folder.
KEPT = 'name: "kept" stage { range { stop: 300 } } stage { shuffle { buffer_size: 50 seed: 7 } } stage { repeat {} } stage { batch { batch_size: 7 } }'


def write_data(folder):
    """Shards that count, and lines."""
    for shard in range(SHARDS):
        numbers = range(shard * RECORDS, (shard + 1) * RECORDS)
        tfrecord_files.write(folder / f"numbers-{shard}.tfrecord", [tfrecord_files.example(n=n, s=b"%04d" % n) for n in numbers])
    (folder / "lines.txt").write_text("".join(f"line {n}\n" for n in range(60)))


def sums(socket, steps):
    """The sum of each of the next batches of the pipeline `kept`, as text."""
    import penstock

    with penstock.attach("kept", socket=socket, timeout=60) as loader:
        return "".join(f"{loader.step} {int(batch.sum())}\n" for _, batch in zip(range(steps), loader))
