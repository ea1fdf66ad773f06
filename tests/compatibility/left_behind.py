"""What a release leaves behind for the next ones: how it is made, and how it is used. Both record.py and the tests have it from here."""

import gzip
import io
import json
import pathlib
import shutil
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import tfrecord_files  # noqa: E402

_GOLDEN = pathlib.Path(__file__).parents[1] / "golden"

SHARDS = 3
RECORDS = 40


def stages(text):
    """Stages of a spec, of the short form of tests/support/stages.h: "range { stop: 9 } | zip { (| range { stop: 3 } |) }"."""

    def wrapped(parts):
        return " ".join(f"stage {{ {part.strip()} }}" for part in parts.split(" | "))

    while (begin := text.rfind("(|")) >= 0:
        end = text.index("|)", begin)
        text = f"{text[:begin]}input {{ {wrapped(text[begin + 2:end])} }}{text[end + 2:]}"
    return wrapped(text)


_PARSE = 'parse_example { feature { key: "n" int64 {} } feature { key: "s" bytes { length: 4 } } }'
_SHARDS = 'tfrecord { files: "numbers-*.tfrecord" }'
_TURNS = 'tfrecord { files: "numbers-*.tfrecord" cycle_length: 2 block_length: 3 }'
_LINES = 'text_line { files: "lines.txt" }'
_DOCUMENTS = 'json_lines { files: "documents.jsonl" }'
_DECODE = 'decode_json { feature { name: "n" dtype: "int64" } feature { name: "l" dtype: "int64" shape: -1 } }'
_SAMPLES = 'tar { files: "samples.tar" feature { extension: "txt" } feature { extension: "__key__" } }'
# Documents of 0 to 12 tokens.
_TOKENS = "range { stop: 200 } | map { out: 'tokens = arange(value % 13) + value * 100' }"
_LISTS = "range { stop: 90 } | map { out: 'l = arange(value % 7)' out: 'n = value' }"

# For each kind of state that a cursor has (places in files, elements held back, draws, passes, inputs in step, sections), and each op at
# least once.
_SHORT = {
    "numbers": "range { stop: 300 } | batch { batch_size: 7 }",
    "shuffled": "range { stop: 300 } | shuffle { buffer_size: 50 seed: 7 } | repeat { count: 2 } | batch { batch_size: 9 }",
    "records": f"{_SHARDS} | {_PARSE} | shuffle {{ buffer_size: 30 seed: 1 }} | repeat {{}} | batch {{ batch_size: 8 }}",
    "turns": f"{_TURNS} | {_PARSE} | skip {{ count: 5 }} | batch {{ batch_size: 6 }}",
    "everywhere": f"{_SHARDS} | shuffle {{ global: true seed: 5 }} | {_PARSE} | repeat {{ count: 2 }} | batch {{ batch_size: 10 }}",
    "drawn": f'{_SHARDS} | {_PARSE} | map {{ out: "u = random_uniform([3], seed=1)" out: "n = n" }} | batch {{ batch_size: 8 }}',
    "filtered": 'range { stop: 400 } | filter { predicate: "value % 3 != 1" } | repeat { count: 2 } | batch { batch_size: 11 }',
    "lines": f"{_LINES} | shuffle {{ buffer_size: 9 seed: 3 }} | batch {{ batch_size: 4 }}",
    # Formats, in order and by their indices.
    "lines_everywhere": f"{_LINES} | shuffle {{ global: true seed: 1 }} | repeat {{ count: 2 }} | batch {{ batch_size: 7 }}",
    "compressed": f'tfrecord {{ files: "numbers-0.tfrecord.gz" compression: "GZIP" }} | {_PARSE} | repeat {{}} | batch {{ batch_size: 9 }}',
    "documents": f"{_DOCUMENTS} | shuffle {{ global: true seed: 3 }} | {_DECODE} | ragged_batch {{ batch_size: 6 }} | repeat {{}}",
    "columns": 'csv { files: "columns.csv" header: true column { dtype: "int64" } column { dtype: "string" } } | skip { count: 2 }'
               " | batch { batch_size: 5 }",
    "pieces": 'fixed_length_record { files: "lines.txt" record_bytes: 8 footer_bytes: 6 } | shuffle { global: true seed: 2 }'
              " | repeat { count: 3 } | batch { batch_size: 6 }",
    "samples": f"{_SAMPLES} | shuffle {{ global: true seed: 4 }} | ragged_batch {{ batch_size: 4 }} | repeat {{}}",
    "rows": 'arrow { files: "numbers.arrow" feature { name: "int64" } } | shuffle { global: true seed: 5 } | repeat { count: 9 }'
            " | batch { batch_size: 7 }",
    "parquet_rows": 'parquet { files: "pages.parquet" feature { name: "int8_r" } feature { name: "string_r" } } | shuffle { global: true seed: 6 }'
                    " | repeat { count: 9 } | batch { batch_size: 7 }",
    "sequences": 'tfrecord { files: "sequences.tfrecord" } | parse_sequence_example { context { key: "id" int64 {} } '
                 'sequence { key: "rating" sequence { dtype: "float32" } } } | padded_batch { batch_size: 5 } | repeat {}',
    "paths": 'list_files { files: "numbers-*.tfrecord" seed: 3 } | interleave { (| tfrecord {} |) cycle_length: 2 block_length: 3 }'
             f" | {_PARSE} | batch {{ batch_size: 9 }} | repeat {{ count: 2 }}",
    "whole": "files { files: 'numbers-*.tfrecord' } | map { out: 'n = string_length(bytes)' } | repeat {} | batch { batch_size: 2 }",
    # Several inputs.
    "joined": "concatenate { (| range { stop: 31 } |) (| range { start: 100 stop: 120 } |) } | enumerate { start: 5 }"
              " | assert_cardinality { cardinality: 51 } | shuffle { buffer_size: 9 seed: 1 } | repeat { count: 2 } | batch { batch_size: 9 }",
    "paired": "zip { (| counter { start: 5 step: -2 } |) (| random { seed: 4 } | prefetch { buffer_size: 2 } |)"
              " (| from_tensor_slices { tensor { int_value: 3 int_value: 1 int_value: 4 } } | repeat {} |) } | batch { batch_size: 9 }",
    "mixed": "sample_from_datasets { (| range { stop: 90 } |) (| range { stop: 30 } | filter { predicate: 'value % 3 != 0' } |)"
             " weight: 1 weight: 2.5 seed: 1 } | repeat { count: 3 } | batch { batch_size: 9 }",
    "chosen": "range { stop: 3 } | repeat {} | choose_from_datasets { (| range { stop: 90 } |) (| range { stop: 30 } |) (| counter {} |) }"
              " | batch { batch_size: 6 }",
    # Datasets of elements.
    "copies": "range { stop: 30 } | flat_map { (| repeat { count: 4 } | shard { num_shards: 2 index: 1 } |) } | batch { batch_size: 7 }",
    "windows": "range { stop: 101 } | enumerate {} | window { size: 5 shift: 3 (| zip { (| window_part { component: 0 } |)"
               " (| window_part { component: 1 } |) } | batch { batch_size: 4 } |) } | repeat { count: 2 }",
    "grouped": "range { stop: 101 } | group_by_window { key: 'value % 3' window_size: 4 (| reduce { initial_state { name: 's' int_value: 0 }"
               " state: 's = s + value' } |) } | batch { batch_size: 3 } | repeat { count: 2 }",
    "bucketed": f"{_LISTS} | bucket_by_sequence_length {{ element_length: 'shape(l)[0]' bucket_boundary: 2 bucket_boundary: 4 "
                "bucket_batch_size: 9 bucket_batch_size: 5 bucket_batch_size: 3 } | repeat { count: 2 }",
    "taken_apart": "range { stop: 101 } | batch { batch_size: 7 } | unbatch {} | shuffle { buffer_size: 9 seed: 1 }"
                   " | batch { batch_size: 4 } | rebatch { batch_size: 5 } | repeat { count: 2 }",
    # States, and elements that are left out.
    "new_ones": "range { stop: 101 } | map { out: 'value = value * value % 23' structure: 'null' } | unique {} | repeat { count: 9 }"
                " | batch { batch_size: 4 }",
    "sums": "range { stop: 101 } | scan { initial_state { name: 's' int_value: 1 } state: 's = s * 3 % 101 + value' out: 'a = s' }"
            " | take_while { predicate: 'a != 500' } | batch { batch_size: 9 }",
    "resampled": "range { stop: 101 } | rejection_resample { class_func: 'value % 3' target_dist: 3 target_dist: 1 target_dist: 1 seed: 3 }"
                 " | repeat {} | batch { batch_size: 5 }",
    "padded": f"{_LISTS} | pad_to_cardinality {{ cardinality: 100 }} | padded_batch {{ batch_size: 9 }}",
    "sparse": f"{_LISTS} | map {{ out: 'l = l' }} | sparse_batch {{ batch_size: 9 row_shape: -1 }} | repeat {{ count: 2 }}",
    # A number of one digit or three has no whole number of pairs of bytes.
    "sound_ones": "range { stop: 101 } | map { out: 'a = decode_raw(as_string(value), \"uint16\")[0]' } | ignore_errors {}"
                  " | take { count: 85 } | batch { batch_size: 8 }",
    "constant": "from_tensors { tensor { int_value: 3 int_value: 4 } } | repeat { count: 90 } | batch { batch_size: 7 }",
    # Sequences of documents.
    "packed": f"{_TOKENS} | pack {{ sequence_length: 16 end_id: -1 segment_ids: true positions: true }} | batch {{ batch_size: 4 }}"
              " | repeat { count: 2 }",
    "fitted": f"{_TOKENS} | shuffle {{ buffer_size: 30 seed: 1 }} | pack {{ sequence_length: 16 method: 'best_fit' window: 70 "
              "cu_seqlens: true max_documents: 5 } | batch { batch_size: 3 } | repeat {}",
    "packed_texts": f"{_DOCUMENTS} | {_DECODE} | pack {{ sequence_length: 16 tokens: 'l' method: 'best_fit' window: 30 }} | repeat {{}}"
                    " | batch { batch_size: 2 }",
    # What is kept: in folders of the release itself.
    "cached": "range { stop: 40 } | shuffle { buffer_size: 20 seed: 1 } | cache { filename: 'cached' } | repeat { count: 4 } | batch { batch_size: 9 }",
    "shot": "range { stop: 40 } | shuffle { buffer_size: 20 seed: 1 } | snapshot { path: 'shot' } | repeat { count: 4 } | batch { batch_size: 9 }",
    "loaded": "load { path: 'saved' } | shuffle { global: true seed: 1 } | repeat { count: 3 } | batch { batch_size: 7 }",
}
# Those that keep elements in a folder of their name.
KEEPING = ["cached", "shot"]
SPECS = {name: stages(text) for name, text in _SHORT.items()}
# What `loaded` reads.
SAVING = stages("range { stop: 60 } | map { out: 'a = value * 3' out: 't = as_string(value)' } | save { path: 'saved' }")
# Ops that leave nothing of their own in a cursor or a folder, and why no spec has them.
LEFT_OUT = {
    "save": "SAVING has it",
    "python": "its function is one of the process that made the pipeline, which no folder holds",
    "from_generator": "its function is one of the process that made the pipeline, which no folder holds",
}
# By an index of tokens.
BY_TOKENS = "packed_texts"
# Those that read by an index of their files.
BY_INDEX = ["everywhere", "lines_everywhere", "documents", "pieces", "samples", BY_TOKENS]

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
    compressed = gzip.compress((folder / "numbers-0.tfrecord").read_bytes(), mtime=0)
    (folder / "numbers-0.tfrecord.gz").write_bytes(compressed)
    (folder / "documents.jsonl").write_text("".join(json.dumps({"n": n, "l": list(range(n % 5))}) + "\n" for n in range(70)))
    (folder / "columns.csv").write_text("n,text\n" + "".join(f'{n},"the ""text"" {n}"\n' for n in range(60)))
    shutil.copy(_GOLDEN / "arrow" / "numbers.arrow", folder)
    shutil.copy(_GOLDEN / "parquet" / "pages_v2.parquet", folder / "pages.parquet")
    shutil.copy(_GOLDEN / "inspect_sequences.tfrecord", folder / "sequences.tfrecord")
    with tarfile.open(folder / "samples.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for n in range(30):
            for extension, size in (("cls", 1), ("txt", 10 * n)):
                member = tarfile.TarInfo(f"folder/{n:03}.{extension}")
                member.size = size
                archive.addfile(member, io.BytesIO(b"t" * size))


def sums(socket, steps):
    """The sum of each of the next batches of the pipeline `kept`, as text."""
    import penstock

    with penstock.attach("kept", socket=socket, timeout=60) as loader:
        return "".join(f"{loader.step} {int(batch.sum())}\n" for _, batch in zip(range(steps), loader))
