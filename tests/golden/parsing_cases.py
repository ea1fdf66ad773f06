"""Ways to parse tf.train.Examples that read the same in tf.data and in Penstock, as dataset_cases.py's do.

make_parsing_goldens.py runs them with TensorFlow, tests/client/python_parsing_test.py with Penstock. A case is a dataset of what a feature
becomes, in one of the arrangements: parsed one by one, parsed one by one and then batched, parsed in batches.
"""

import gzip
import json
import pathlib
import random
import struct
import sys
import zlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
import tfrecord_files  # noqa: E402


# The names of types that `t` has.
DTYPES = ("uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64", "string")


def _splits(dice, items):
    """Row splits of a random partition."""
    ends = sorted(dice.randint(0, items) for _ in range(dice.randint(0, 3)))
    return [0, *ends, items]


def _row(dice, number):
    """The lists of one Example, some of which are missing."""
    items = dice.randint(0, 6)
    splits = _splits(dice, items)
    outer = _splits(dice, len(splits) - 1)
    pairs = 2 * dice.randint(0, 3)
    rowids = [row for row in range(len(splits) - 1) for _ in range(splits[row], splits[row + 1])]
    lists = {
        "label": [number],
        "ints": [dice.randint(-(2**62), 2**62) for _ in range(items)],
        "floats": [dice.randint(-1000, 1000) / 8 for _ in range(items)],
        "texts": [bytes(dice.choices(b"abc", k=dice.randint(0, 4))) for _ in range(items)],
        "pairs": [dice.randint(0, 9) for _ in range(pairs)],
        "pair_texts": [bytes([65 + i]) * (i % 3) for i in range(pairs)],
        "splits": splits,
        "lengths": [end - begin for begin, end in zip(splits, splits[1:])],
        "starts": splits[:-1],
        "limits": splits[1:],
        "rowids": rowids,
        "outer_splits": outer,
        "outer_lengths": [end - begin for begin, end in zip(outer, outer[1:])],
        "x": [dice.randint(0, 9) for _ in range(items)],
        "y": [dice.randint(0, 4) for _ in range(items)],
        "sorted_x": sorted(dice.randint(0, 9) for _ in range(items)),
    }
    # A list of none is a missing feature.
    return {key: values for key, values in lists.items() if values}


def write_files(folder):
    dice = random.Random(5)
    for shard in range(2):
        examples = [tfrecord_files.example(**_row(dice, 7 * shard + i)) for i in range(7)]
        tfrecord_files.write(folder / f"parse-{shard}.tfrecord", examples)
    (folder / "table-0.csv").write_text("name,x,y,big\na,0.5,1,3000000000\nb,,2,4\n\"c, d\",2.5,3,5\n")
    (folder / "table-1.csv").write_text("name,x,y,big\ne,1e30,7,6\nf,-4,8,7\n")
    (folder / "other-order.csv").write_text("name,y,x,big\ne,7,1e30,6\n")
    (folder / "no-table.csv").write_text("")
    lines = '"a, ""name""",nothing,x,wide\n"b\nc",,1,a\x85b\nd,,2.5,e\x0cf\n'
    (folder / "lines.csv").write_text(lines, "utf-8")
    (folder / "lines.csv.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "blank-line.csv").write_text("x,y\n1,2\n\n3,4\n")
    (folder / "later.csv").write_text("x,y\n" + "1,2\n" * 5000 + "late,\udcff\n", errors="surrogateescape")


FEATURES = {
    "var_len_int64": lambda t: {"ints": t.io.VarLenFeature(t.int64)},
    "var_len_float": lambda t: {"floats": t.io.VarLenFeature(t.float32)},
    "var_len_string": lambda t: {"texts": t.io.VarLenFeature(t.string)},
    "var_len_missing": lambda t: {"nothing": t.io.VarLenFeature(t.int64)},
    "var_lens": lambda t: {
        "label": t.io.FixedLenFeature([], t.int64), "texts": t.io.VarLenFeature(t.string), "x": t.io.VarLenFeature(t.int64),
    },
    "sequence_int64": lambda t: {"ints": t.io.FixedLenSequenceFeature([], t.int64, allow_missing=True)},
    "sequence_default": lambda t: {"ints": t.io.FixedLenSequenceFeature([], t.int64, allow_missing=True, default_value=-1)},
    "sequence_float": lambda t: {"floats": t.io.FixedLenSequenceFeature([], t.float32, allow_missing=True, default_value=0.5)},
    "sequence_string": lambda t: {"texts": t.io.FixedLenSequenceFeature([], t.string, allow_missing=True, default_value="-")},
    "sequence_pairs": lambda t: {"pairs": t.io.FixedLenSequenceFeature([2], t.int64, allow_missing=True)},
    "sequence_text_pairs": lambda t: {"pair_texts": t.io.FixedLenSequenceFeature([2], t.string, allow_missing=True)},
    "sequence_missing": lambda t: {"nothing": t.io.FixedLenSequenceFeature([], t.float32, allow_missing=True)},
    "sequences": lambda t: {
        "label": t.io.FixedLenFeature([], t.int64),
        "ints": t.io.FixedLenSequenceFeature([], t.int64, allow_missing=True),
        "pairs": t.io.FixedLenSequenceFeature([1, 2], t.int64, allow_missing=True, default_value=9),
    },
    "sparse": lambda t: {"s": t.io.SparseFeature("x", "floats", t.float32, 10)},
    "sparse_string": lambda t: {"s": t.io.SparseFeature("x", "texts", t.string, 10)},
    "sparse_as_it_is": lambda t: {"s": t.io.SparseFeature("x", "ints", t.int64, 10, True)},
    "sparse_sorted": lambda t: {"s": t.io.SparseFeature("sorted_x", "ints", t.int64, 10, already_sorted=True)},
    "sparse_out_of_shape": lambda t: {"s": t.io.SparseFeature("x", "ints", t.int64, 3)},
    "sparse_2": lambda t: {"s": t.io.SparseFeature(["x", "y"], "floats", t.float32, [10, 5])},
    "sparse_2_string": lambda t: {"s": t.io.SparseFeature(["y", "x"], "texts", t.string, [5, 10])},
    "sparse_and_its_parts": lambda t: {
        "s": t.io.SparseFeature("x", "ints", t.int64, 10), "x": t.io.VarLenFeature(t.int64), "label": t.io.FixedLenFeature([], t.int64),
    },
    "ragged": lambda t: {"ints": t.io.RaggedFeature(t.int64)},
    "ragged_string": lambda t: {"r": t.io.RaggedFeature(t.string, value_key="texts")},
    "ragged_missing": lambda t: {"nothing": t.io.RaggedFeature(t.float32)},
    "row_splits": lambda t: _ragged(t, "RowSplits", "splits"),
    "row_lengths": lambda t: _ragged(t, "RowLengths", "lengths"),
    "row_starts": lambda t: _ragged(t, "RowStarts", "starts"),
    "row_limits": lambda t: _ragged(t, "RowLimits", "limits"),
    "value_rowids": lambda t: _ragged(t, "ValueRowIds", "rowids"),
    "uniform_row_length": lambda t: {"r": t.io.RaggedFeature(t.int64, "pairs", [t.io.RaggedFeature.UniformRowLength(2)])},
    "uniform_inside": lambda t: {
        "r": t.io.RaggedFeature(t.string, "pair_texts", [t.io.RaggedFeature.UniformRowLength(1), t.io.RaggedFeature.UniformRowLength(2)])
    },
    "uniform_outside": lambda t: {
        "r": t.io.RaggedFeature(
            t.float32, "floats", [t.io.RaggedFeature.UniformRowLength(1), t.io.RaggedFeature.RowLengths("lengths")]
        )
    },
    "row_splits_string": lambda t: {"r": t.io.RaggedFeature(t.string, "texts", [t.io.RaggedFeature.RowSplits("splits")])},
    "two_partitions": lambda t: {
        "r": t.io.RaggedFeature(
            t.float32, "floats", [t.io.RaggedFeature.RowSplits("outer_splits"), t.io.RaggedFeature.RowLengths("lengths")]
        )
    },
    "two_partitions_lengths": lambda t: {
        "r": t.io.RaggedFeature(
            t.int64, "ints", [t.io.RaggedFeature.RowLengths("outer_lengths"), t.io.RaggedFeature.RowLimits("limits")]
        ),
        "label": t.io.FixedLenFeature([], t.int64),
    },
    "mixed": lambda t: {
        "label": t.io.FixedLenFeature([], t.int64),
        "absent": t.io.FixedLenFeature([2], t.float32, [0.5, 1.5]),
        "texts": t.io.VarLenFeature(t.string),
        "floats": t.io.FixedLenSequenceFeature([], t.float32, allow_missing=True),
        "r": t.io.RaggedFeature(t.int64, "ints", [t.io.RaggedFeature.RowStarts("starts")]),
        "s": t.io.SparseFeature("x", "y", t.int64, 10),
    },
    # What does not fit is an error.
    "of_another_type": lambda t: {"ints": t.io.VarLenFeature(t.float32)},
    "ragged_of_another_type": lambda t: {"texts": t.io.RaggedFeature(t.float32)},
    "sequence_of_another_type": lambda t: {"texts": t.io.FixedLenSequenceFeature([], t.int64, allow_missing=True)},
    "sequence_of_threes": lambda t: {"pairs": t.io.FixedLenSequenceFeature([5], t.int64, allow_missing=True)},
    "sequence_not_missing": lambda t: {"ints": t.io.FixedLenSequenceFeature([], t.int64)},
    "sparse_of_other_values": lambda t: {"s": t.io.SparseFeature("x", "pairs", t.int64, 10)},
    "partition_of_others": lambda t: {
        "r": t.io.RaggedFeature(t.int64, "pairs", [t.io.RaggedFeature.RowLengths("lengths")], validate=True)
    },
    "uniform_of_fives": lambda t: {"r": t.io.RaggedFeature(t.int64, "pairs", [t.io.RaggedFeature.UniformRowLength(5)])},
    "missing": lambda t: {"nothing": t.io.FixedLenFeature([], t.int64)},
    "fixed_of_another_length": lambda t: {"ints": t.io.FixedLenFeature([2], t.int64)},
}


def _ragged(t, kind, key):
    partition = getattr(t.io.RaggedFeature, kind)(key)
    return {"r": t.io.RaggedFeature(t.float32, "floats", [partition]), "label": t.io.FixedLenFeature([], t.int64)}


def _records(t):
    return t.TFRecordDataset([f"{t.folder}/parse-{shard}.tfrecord" for shard in range(2)])


ARRANGEMENTS = {
    "single": lambda t, features: _records(t).map(lambda r: t.io.parse_single_example(r, features)),
    "single_then_batch": lambda t, features: _records(t).map(lambda r: t.io.parse_single_example(r, features)).batch(4),
    "batched": lambda t, features: _records(t).batch(4).map(lambda r: t.io.parse_example(r, features)),
    "batched_drop": lambda t, features: _records(t).batch(5, drop_remainder=True).map(lambda r: t.io.parse_example(r, features)),
    "taken": lambda t, features: _records(t).map(lambda r: t.io.parse_single_example(r, features)).skip(3).take(6).batch(2),
    "chosen": lambda t, features: _records(t)
    .map(lambda r: t.io.parse_single_example(r, {**features, "label": t.io.FixedLenFeature([], t.int64)}))
    .filter(lambda e: e["label"] % 3 != 1)
    .batch(3),
}

CASES = {
    f"{name}, {arrangement}": (lambda t, make=make, features=features: make(t, features(t)))
    for name, features in FEATURES.items()
    for arrangement, make in ARRANGEMENTS.items()
}

# Sparse batches of dense elements.
CASES.update(
    {
        f"sparse_batch, {name}": case
        for name, case in {
            "vectors": lambda t: t.Dataset.range(7).map(lambda x: x + t.np.arange(3)).sparse_batch(3, [4]),
            "matrices": lambda t: t.Dataset.range(5).map(lambda x: x * t.np.ones((2, 3), t.np.int64)).sparse_batch(2, [2, 5]),
            "lists": lambda t: _records(t)
            .map(lambda r: t.io.parse_single_example(r, FEATURES["sequence_int64"](t))["ints"])
            .sparse_batch(4, [8]),
            "strings": lambda t: _records(t)
            .map(lambda r: t.io.parse_single_example(r, FEATURES["sequence_string"](t))["texts"])
            .sparse_batch(4, [8]),
            "too_long": lambda t: _records(t)
            .map(lambda r: t.io.parse_single_example(r, FEATURES["sequence_int64"](t))["ints"])
            .sparse_batch(4, [3]),
        }.items()
    }
)


# Functions of strings. `t.required` is how a CSV field says that it must be there, `t.to_number` is tf.strings.to_number, `t.parse_tensor` takes a shape beside tf.io.parse_tensor's arguments.
NUMBERS = [
    "0", "-1", "+7", " 12 ", "12 3", "", " ", "1.5", "-.5", "5.", "1e3", "1e400", "-1e400", "1e-400", "nan", "-inf", "infinity", "Inf",
    "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "0x10", "1_000", "١", "--1", "1f", "16777217", "0.1", "3.4028236e38", "3.5e38",
]  # fmt: skip
RECORDS = {
    "plain": b"1,2.5,text",
    "empty_fields": b",,",
    "quoted": b'7,0.25,"a ""quoted"", text"',
    "quoted_number": b'"7",1,x',
    "spaces": b" 7 , 1.5 ,  x ",
    "na": b"NA,NA,NA",
    "too_few": b"1,2",
    "too_many": b"1,2,3,4",
    "no_number": b"x,1,y",
    "mark_inside": b'1,2,a"b',
    "mark_open": b'1,2,"ab',
    "mark_and_more": b'1,2,"ab"c',
    "empty": b"",
}
_DEFAULTS = {
    "defaults": lambda t: [[7], [0.5], ["none"]],
    "required": lambda t: [t.required(t.int64), t.required(t.float64), t.required(t.string)],
    "last_required": lambda t: [[1], [2.0], t.required(t.string)],
}


def _strings(t, *values):
    return t.Dataset.from_tensor_slices(list(values))


def _csv(t, record, defaults, **options):
    return _strings(t, record).map(lambda r: tuple(t.io.decode_csv(r, defaults, **options)))


def _number_case(text, dtype):
    return lambda t: _strings(t, text.encode()).map(lambda x: t.to_number(x, getattr(t, dtype)))


def _csv_case(record, defaults, **options):
    return lambda t: _csv(t, record, defaults(t), **options)


CASES.update(
    {
        f"to_number, {text!r} {dtype}": _number_case(text, dtype)
        for text in NUMBERS
        for dtype in ("float32", "float64", "int32", "int64")
    }
)
CASES.update(
    {
        f"decode_csv, {name} {kind}": _csv_case(record, defaults)
        for name, record in RECORDS.items()
        for kind, defaults in _DEFAULTS.items()
    }
)
_RAW = bytes(range(250, 256)) + bytes(range(18))
CASES.update(
    {
        f"decode_raw, {dtype} {little}": (
            lambda t, dtype=dtype, little=little: _strings(t, _RAW, _RAW[:8]).map(
                lambda x: t.io.decode_raw(x, getattr(t, dtype), little_endian=little)
            )
        )
        for dtype in ("uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64")
        for little in (True, False)
    }
)
CASES.update(
    {
        "decode_csv, select": lambda t: _csv(t, b"1,2.5,x,9,10", [[0], ["-"]], select_cols=[0, 2]),
        "decode_csv, delim": lambda t: _csv(t, b"1;2.5;x,y", _DEFAULTS["required"](t), field_delim=";"),
        "decode_csv, no_quotes": lambda t: _csv(t, b'1,2.5,"x"', _DEFAULTS["required"](t), use_quote_delim=False),
        "decode_csv, na_value": lambda t: _csv(t, b"NA,NA,NA", _DEFAULTS["defaults"](t), na_value="NA"),
        "decode_csv, na_required": lambda t: _csv(t, b"NA,1,x", _DEFAULTS["required"](t), na_value="NA"),
        "decode_raw, not_whole": lambda t: _strings(t, b"abc").map(lambda x: t.io.decode_raw(x, t.int32)),
        "decode_raw, empty": lambda t: _strings(t, b"").map(lambda x: t.io.decode_raw(x, t.int32)),
        "decode_raw, fixed": lambda t: _strings(t, _RAW, b"abc", b"").map(
            lambda x: t.io.decode_raw(x, t.int16, fixed_length=6)
        ),
        "decode_raw, fixed_big": lambda t: _strings(t, _RAW, b"abc").map(
            lambda x: t.io.decode_raw(x, t.int32, little_endian=False, fixed_length=8)
        ),
        "decode_compressed, zlib": lambda t: _strings(t, zlib.compress(b"some text" * 100), zlib.compress(b"")).map(
            lambda x: t.io.decode_compressed(x, "ZLIB")
        ),
        "decode_compressed, gzip": lambda t: _strings(t, gzip.compress(b"some text" * 100, mtime=0)).map(
            lambda x: t.io.decode_compressed(x, "GZIP")
        ),
        "decode_compressed, members": lambda t: _strings(t, gzip.compress(b"some ", mtime=0) + gzip.compress(b"text", mtime=0)).map(
            lambda x: t.io.decode_compressed(x, "GZIP")
        ),
        "decode_compressed, zeros behind": lambda t: _strings(t, gzip.compress(b"some text", mtime=0) + bytes(20)).map(
            lambda x: t.io.decode_compressed(x, "GZIP")
        ),
        "decode_compressed, none": lambda t: _strings(t, b"as it is").map(lambda x: t.io.decode_compressed(x)),
        "decode_compressed, no_zlib": lambda t: _strings(t, b"as it is").map(lambda x: t.io.decode_compressed(x, "ZLIB")),
        "decode_compressed, checksum": lambda t: _strings(t, zlib.compress(b"some text")[:-1] + b"?").map(
            lambda x: t.io.decode_compressed(x, "ZLIB")
        ),
    }
)


def _json_features(t):
    return {"i": t.io.VarLenFeature(t.int64), "f": t.io.VarLenFeature(t.float32), "b": t.io.VarLenFeature(t.string)}


def _json_examples(t, *texts):
    examples = _strings(t, *(text.encode() for text in texts)).map(lambda x: t.io.decode_json_example(x))
    return examples.map(lambda x: t.io.parse_single_example(x, _json_features(t)))


def _json(**lists):
    return json.dumps({"features": {"feature": {key: {kind: {"value": value}} for key, (kind, value) in lists.items()}}})


_JSON = {
    "all": [_json(i=("int64List", ["1", -2, "9223372036854775807"]), f=("floatList", [1.5, "-2.25", 3]), b=("bytesList", ["YWI=", ""]))],
    "several": [_json(i=("int64List", [1])), _json(f=("floatList", ["NaN", "-Infinity"])), _json(b=("bytesList", ["YWI"]))],
    "names": ['{"features": {"feature": {"i": {"int64_list": {"value": [1]}}}}}'],
    "empty": ["{}", '{"features": {}}', '{"features": {"feature": {}}}', '{"features": {"feature": {"i": {"int64List": {}}}}}'],
    "unwanted": [_json(i=("int64List", [7]), other=("bytesList", ["YWI="]))],
    "kind": [_json(i=("floatList", [1.5]))],
    "no_json": ["an example"],
    "cut": ['{"features":'],
    "behind": ['{"features": {}} {}'],
    "array": ["[]"],
    "unknown": ['{"feature": {}}'],
    "two_kinds": ['{"features": {"feature": {"i": {"int64List": {"value": [1]}, "floatList": {"value": [1]}}}}}'],
    "fraction": [_json(i=("int64List", [1.5]))],
    "text": [_json(i=("int64List", ["x"]))],
    "too_large": [_json(i=("int64List", ["9223372036854775808"]))],
    "base64": [_json(b=("bytesList", ["Y*"]))],
    "nothing": [""],
}
CASES.update({f"decode_json_example, {name}": (lambda t, texts=texts: _json_examples(t, *texts)) for name, texts in _JSON.items()})


def _ragged_rows(t, **options):
    features = {"r": t.io.RaggedFeature(t.int64, "ints", [t.io.RaggedFeature.RowLengths("lengths")], **options)}
    return _records(t).map(lambda r: t.io.parse_single_example(r, features))


def _list_feature(t):
    return {"ints": t.io.RaggedFeature(t.int64)}


# The type of row splits, which RaggedFeature and ragged_batch say, wherever ragged tensors go.
CASES.update({
    "row_splits, int64": lambda t: _ragged_rows(t, row_splits_dtype=t.int64).batch(4),
    "row_splits, handed on": lambda t: _ragged_rows(t).map(lambda x: {"other": x["r"]}).take(9).batch(2),
    "row_splits, numbered": lambda t: _ragged_rows(t).enumerate().batch(3),
    "row_splits, zipped": lambda t: t.Dataset.zip((_ragged_rows(t, row_splits_dtype=t.int64), _ragged_rows(t))).batch(3),
    "row_splits, list then ragged_batch": lambda t: _records(t).map(
        lambda r: t.io.parse_single_example(r, _list_feature(t))
    ).ragged_batch(3),
    "row_splits, list then ragged_batch int32": lambda t: _records(t).map(
        lambda r: t.io.parse_single_example(r, _list_feature(t))
    ).ragged_batch(3, row_splits_dtype=t.int32),
    "row_splits, ragged then ragged_batch": lambda t: _ragged_rows(t).ragged_batch(3),
    "row_splits, list then dense_to_ragged_batch": lambda t: _records(t).map(
        lambda r: t.io.parse_single_example(r, _list_feature(t))
    ).apply(t.experimental.dense_to_ragged_batch(3, drop_remainder=True)),
    "sparse_batch, experimental": lambda t: t.Dataset.range(7).map(lambda x: x + t.np.arange(3)).apply(
        t.experimental.dense_to_sparse_batch(3, [4])
    ),
    "parse_example_dataset": lambda t: _records(t).batch(4).apply(
        t.experimental.parse_example_dataset({"label": t.io.FixedLenFeature([], t.int64), "floats": t.io.VarLenFeature(t.float32)})
    ),
    "row_splits, lists of batches": lambda t: _records(t).batch(3).map(lambda r: t.io.parse_example(r, _list_feature(t))),
})


def _ragged_lists(t):
    features = {"ints": t.io.RaggedFeature(t.int64), "r": t.io.RaggedFeature(t.string, value_key="texts")}
    return _records(t).map(lambda r: t.io.parse_single_example(r, features))


def _sparse_batches(t):
    return t.Dataset.range(7).map(lambda x: x + t.np.arange(3)).apply(t.experimental.dense_to_sparse_batch(3, [4]))


# Ragged and sparse batches that are elements.
CASES.update({
    "ragged batches, numbered": lambda t: _ragged_lists(t).ragged_batch(3).enumerate(),
    "ragged batches, kept": lambda t: _ragged_lists(t).ragged_batch(3, row_splits_dtype=t.int32).cache().repeat(2),
    "ragged batches, shuffled and taken": lambda t: _ragged_lists(t).ragged_batch(3).shuffle(1).skip(1).take(3),
    "ragged batches, mapped": lambda t: _ragged_lists(t).ragged_batch(3).enumerate().map(lambda i, x: {"r": x["r"], "i": i * 2}),
    "ragged batches, rebatched": lambda t: _ragged_lists(t).ragged_batch(3, row_splits_dtype=t.int32).rebatch(2),
    "ragged batches, rebatched by turns": lambda t: _ragged_lists(t).ragged_batch(3).rebatch([1, 2], drop_remainder=True),
    "ragged batches, batched": lambda t: _ragged_lists(t).ragged_batch(2).batch(2),
    "ragged batches of one size, batched": lambda t: _ragged_lists(t).ragged_batch(2, drop_remainder=True).batch(2),
    "ragged batches, zipped": lambda t: t.Dataset.zip((_ragged_lists(t).ragged_batch(3), t.Dataset.range(3))),
    "ragged batches of ragged rows, numbered": lambda t: _ragged_rows(t).ragged_batch(3).enumerate(),
    "batches of ragged rows, kept": lambda t: _ragged_rows(t).batch(3).cache(),
    "sparse batches, numbered": lambda t: _sparse_batches(t).enumerate(),
    "sparse batches, kept": lambda t: _sparse_batches(t).cache().repeat(2),
    "sparse batches, batched": lambda t: _sparse_batches(t).batch(2),
    "batches of sparse rows, numbered": lambda t: _records(t).map(
        lambda r: t.io.parse_single_example(r, {"texts": t.io.VarLenFeature(t.string)})
    ).batch(4).enumerate(),
})


def _rows(t, rows):
    """Elements that are tensors of strings."""
    return t.Dataset.from_tensor_slices(np.array(rows, object))


def _texts(t):
    """The same, of lengths that only the data tells."""
    features = {"texts": t.io.FixedLenSequenceFeature([], t.string, allow_missing=True)}
    return _records(t).map(lambda r: t.io.parse_single_example(r, features)["texts"])


# Functions of a string that take several at once, each with elements for it: of one shape, in a matrix, batched, and where one of them is bad.
_OF_STRINGS = {
    "decode_raw": (lambda t, x: t.io.decode_raw(x, t.int16), [[b"abcd", b"efgh"], [b"ijkl", b"mnop"]], [b"", b"xyz"]),
    "decode_raw_fixed": (
        lambda t, x: t.io.decode_raw(x, t.uint8, fixed_length=5), [[b"abcd", b""], [b"abcdefg", b"x\0"]], None,
    ),
    "decode_csv": (
        lambda t, x: tuple(t.io.decode_csv(x, [[1], [2.5], ["none"]])),
        [[b'1,0.5,"a, b"', b",,"], [b"3,,c", b"-4,1e3,"]], [b"1,2,x", b"x,2,3"],
    ),
    "decode_compressed": (
        lambda t, x: t.io.decode_compressed(x, "ZLIB"),
        [[zlib.compress(b"some text" * 50), zlib.compress(b"")], [zlib.compress(b"a"), zlib.compress(bytes(300))]],
        [zlib.compress(b"a"), b"as it is"],
    ),
    "to_number": (lambda t, x: t.to_number(x, t.int32), [[b"1", b"-2"], [b" 3", b"2147483647"]], [b"1", b"x"]),
}  # fmt: skip
_JSON_ROWS = [
    [_json(i=("int64List", [7])).encode(), b"{}"],
    [_json(f=("floatList", [1.5]), b=("bytesList", ["YWI="])).encode(), _json(i=("int64List", [1, 2])).encode()],
]
for _name, (_function, _good, _bad) in _OF_STRINGS.items():
    _whole = lambda t, function=_function, rows=_good: _rows(t, rows).map(lambda x: function(t, x))  # noqa: E731
    CASES[f"{_name}, of strings"] = _whole
    CASES[f"{_name}, of strings, batched"] = lambda t, whole=_whole: whole(t).batch(2)
    CASES[f"{_name}, of a matrix"] = lambda t, function=_function, rows=_good: _rows(t, [rows, rows]).map(lambda x: function(t, x))
    CASES[f"{_name}, of a batch"] = lambda t, function=_function, rows=_good: _rows(t, rows[0] + rows[1]).batch(3).map(
        lambda x: function(t, x)
    )
    if _bad is not None:
        CASES[f"{_name}, of strings, one bad"] = lambda t, function=_function, bad=_bad: _rows(t, [bad]).map(lambda x: function(t, x))
CASES.update({
    "decode_raw, of strings, lengths": lambda t: _rows(t, [[b"ab", b"abcd"]]).map(lambda x: t.io.decode_raw(x, t.int16)),
    "decode_raw, of lists": lambda t: _texts(t).map(lambda x: t.io.decode_raw(x, t.uint8, fixed_length=3)),
    "decode_raw, of lists, batched": lambda t: _texts(t).map(lambda x: t.io.decode_raw(x, t.uint8, fixed_length=3)).padded_batch(4),
    "decode_csv, nothing": lambda t: _csv(t, b"", [["-"]]),
    "decode_csv, nothing selected": lambda t: _csv(t, b"", [["-"]], select_cols=[0]),
    "decode_compressed, of lists": lambda t: _texts(t).map(lambda x: t.io.decode_compressed(x)),
    "decode_compressed, of lists, batched": lambda t: _texts(t).map(lambda x: t.io.decode_compressed(x)).padded_batch(4),
    "decode_csv, of lists": lambda t: _texts(t).map(lambda x: tuple(t.io.decode_csv(x, [["-"]]))),
    "decode_csv, of lists, batched": lambda t: _texts(t).map(lambda x: t.io.decode_csv(x, [["-"]])[0]).padded_batch(4),
    "decode_json_example, of strings": lambda t: _rows(t, _JSON_ROWS).map(lambda x: t.io.decode_json_example(x)).unbatch().map(
        lambda x: t.io.parse_single_example(x, _json_features(t))
    ),
    "decode_json_example, of a batch": lambda t: _rows(t, _JSON_ROWS[0] + _JSON_ROWS[1]).batch(3).map(
        lambda x: t.io.parse_example(t.io.decode_json_example(x), _json_features(t))
    ),
})


def _bmp(width, height, bits, header=54, letters=b"BM", cut=0):
    row_bytes = (width * (bits // 8) + 3) // 4 * 4
    pixels = bytes(i * 7 % 256 for i in range(row_bytes * abs(height)))
    head = letters + struct.pack("<IHHI", header + len(pixels), 0, 0, header)
    head += struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, 0, 0, 0, 0, 0)
    file = head + b"p" * (header - 54) + pixels
    return file[: len(file) - cut]


_BMP = {
    "24": _bmp(3, 2, 24), "24_odd": _bmp(5, 3, 24), "8": _bmp(3, 2, 8), "32": _bmp(3, 2, 32), "downward": _bmp(3, -2, 24),
    "palette": _bmp(7, 5, 8, header=154), "9": _bmp(3, 2, 9), "16": _bmp(3, 2, 16), "1": _bmp(3, 2, 1), "one": _bmp(1, 1, 24),
    "no_width": _bmp(0, 2, 24), "no_height": _bmp(3, 0, 24), "cut": _bmp(3, 2, 24, cut=1), "letters": _bmp(3, 2, 24, letters=b"MB"),
    "header": _bmp(3, 2, 24)[:31], "longer": _bmp(3, 2, 24) + b"x", "nothing": b"",
}  # fmt: skip
CASES.update(
    {
        f"{function}, bmp {name}, {channels}": (
            lambda t, function=function, file=file, channels=channels: _strings(t, file).map(
                lambda x: getattr(t.io, function)(x, channels=channels)
            )
        )
        for function in ("decode_bmp", "decode_image")
        for name, file in _BMP.items()
        for channels in ((0, 3, 4) if function == "decode_bmp" else (0, 1, 3))
    }
)


def _lzw(indices, bits):
    """Colour indices as the image data of a GIF file."""
    clear, codes, size, out, filled = 1 << bits, {}, bits + 1, 0, 0

    def put(code):
        nonlocal out, filled
        out |= code << filled
        filled += size

    put(clear)
    known = ()
    for index in indices:
        longer = (*known, index)
        if len(longer) == 1 or longer in codes:
            known = longer
            continue
        put(codes[known] if len(known) > 1 else known[0])
        next_code = clear + 2 + len(codes)
        codes[longer] = next_code
        if next_code == 1 << size and size < 12:
            size += 1
        known = (index,)
        if next_code == 4095:
            put(codes.get(known, index))
            put(clear)
            codes, size, known = {}, bits + 1, ()
    if known:
        put(codes[known] if len(known) > 1 else known[0])
    put(clear + 1)
    data = out.to_bytes((filled + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255))
    return bytes([bits]) + blocks + b"\0"


def _gif_colors(count, factor):
    return bytes((i * factor + c * 40) % 256 for i in range(count) for c in range(3))


def _gif_frame(width, height, left=0, top=0, transparent=None, interlaced=False, colors=b"", bits=3, factor=3):
    indices = [(x * x * factor + x * y * 5 + y) % 251 % (1 << bits) for y in range(height) for x in range(width)]
    if interlaced:
        rows = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)]
        indices = [indices[y * width + x] for y in rows for x in range(width)]
    control = b"" if transparent is None else b"!\xf9\x04\x01\x00\x00" + bytes([transparent]) + b"\0"
    local = 0x80 | (len(colors) // 3).bit_length() - 2 if colors else 0
    place = struct.pack("<HHHHB", left, top, width, height, local | (0x40 if interlaced else 0))
    return control + b"," + place + colors + _lzw(indices, max(bits, 2))


def _gif(*parts, colors=_gif_colors(8, 29), version=b"GIF89a", screen=(9, 9), end=b";"):
    flags = 0x80 | (len(colors) // 3).bit_length() - 2 if colors else 0
    return version + struct.pack("<HHBBB", *screen, flags, 0, 0) + colors + b"".join(parts) + end


_GIF_NOTE = b"!\xfe\x05hello\x03abc\0"
_GIF_PIECE = _gif_frame(4, 3)
_GIFS = {
    "one": _gif(_gif_frame(5, 4)),
    "87a": _gif(_gif_frame(5, 4), version=b"GIF87a"),
    "odd_version": _gif(_gif_frame(5, 4), version=b"GIF00x"),
    "interlaced": _gif(_gif_frame(5, 19, interlaced=True)),
    "every_code": _gif(_gif_frame(90, 60, bits=8, factor=7), colors=_gif_colors(256, 11)),
    "two_colors": _gif(_gif_frame(7, 3, bits=1), colors=_gif_colors(2, 90)),
    "local_colors": _gif(_gif_frame(5, 4, colors=_gif_colors(16, 5)), _gif_frame(5, 4, factor=2), colors=_gif_colors(8, 29)),
    "no_colors": _gif(_gif_frame(5, 4), colors=b""),
    "few_colors": _gif(_gif_frame(5, 4), colors=_gif_colors(4, 29)),
    "few_colors_unseen": _gif(_gif_frame(3, 2, bits=3, factor=1), _gif_frame(2, 1, left=2, top=1), colors=_gif_colors(4, 29)),
    "frames": _gif(_gif_frame(6, 5), _gif_frame(3, 2, left=2, top=1, factor=5), _gif_frame(6, 5, transparent=2, factor=2)),
    "transparent_first": _gif(_gif_frame(6, 5, transparent=0), _gif_frame(2, 2, left=4, top=3, transparent=5)),
    "small_first": _gif(_gif_frame(2, 2, left=1, top=1), _gif_frame(6, 5), _gif_frame(4, 7)),
    "outside": _gif(_gif_frame(4, 4), _gif_frame(3, 3, left=2, top=3), _gif_frame(2, 2, left=9, top=9)),
    "outside_first": _gif(_gif_frame(3, 3, left=2, top=1)),
    "screen": _gif(_gif_frame(4, 3), screen=(60000, 50000)),
    "two_controls": _gif(b"!\xf9\x04\x01\x00\x00\x01\0", _gif_frame(5, 4, transparent=3)),
    "short_control": _gif(b"!\xf9\x03\x01\x00\x00\0", _gif_frame(5, 4, transparent=3)),
    "control_off": _gif(b"!\xf9\x04\x00\x00\x00\x01\0", _gif_frame(5, 4)),
    "control_of_the_next": _gif(b"!\xf9\x04\x01\x00\x00\x01\0", _gif_frame(5, 4), _gif_frame(5, 4, factor=2)),
    "notes": _gif(_GIF_NOTE, _gif_frame(5, 4), _GIF_NOTE, b"!\xff\0", _gif_frame(5, 4, factor=2), _GIF_NOTE),
    "no_end": _gif(_gif_frame(5, 4), _gif_frame(5, 4, factor=2), end=b""),
    "junk_behind": _gif(_gif_frame(5, 4), end=b";junk"),
    "junk_between": _gif(_gif_frame(5, 4), b"x", _gif_frame(5, 4, factor=2)),
    "cut_in_note": _gif(_gif_frame(5, 4), _GIF_NOTE[:6], end=b""),
    "cut_in_place": _gif(_gif_frame(5, 4), _gif_frame(5, 4)[:6], end=b""),
    "cut_in_first_place": _gif(_gif_frame(5, 4)[:6], end=b""),
    "cut_in_colors": _gif(_gif_frame(5, 4), _gif_frame(5, 4, colors=_gif_colors(8, 29))[:20], end=b""),
    "cut_before_pixels": _gif(_gif_frame(5, 4), _gif_frame(5, 4)[:10], end=b""),
    "wide_codes": _gif(_gif_frame(5, 4), _gif_frame(5, 4)[:10] + b"\x09\0"),
    "no_width": _gif(_gif_frame(5, 4), b"," + struct.pack("<HHHHB", 0, 0, 0, 4, 0) + _lzw([], 2)),
    "no_frame": _gif(_GIF_NOTE),
    "only_head": _gif(end=b"")[:10],
    "no_gif": b"GIV89a" + _gif(_GIF_PIECE)[6:],
    "letters": b"GIF",
    "nothing": b"",
}
CASES.update({f"decode_gif, {name}": (lambda t, file=file: _strings(t, file).map(t.io.decode_gif)) for name, file in _GIFS.items()})
CASES.update(
    {
        f"decode_image, gif {name}, {channels}": (
            lambda t, file=file, channels=channels: _strings(t, file).map(
                lambda x: t.io.decode_image(x, channels, expand_animations=False)
            )
        )
        for name, file in _GIFS.items()
        if name != "every_code"
        for channels in ((0, 1, 3, 4) if name == "small_first" else (0,))
    }
)


_WEBPS = {file.stem: file.read_bytes() for file in sorted((pathlib.Path(__file__).parent / "images").glob("*.webp"))}


def _riff_chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _riff_chunks(file):
    """The chunks of a WebP file, by name."""
    chunks, at = {}, 12
    while at < len(file):
        size = struct.unpack_from("<I", file, at + 4)[0]
        chunks[file[at : at + 4]] = file[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    return chunks


def _webp(*chunks, end=b""):
    data = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(data)) + data + end


def _u24(value):
    return struct.pack("<I", value)[:3]


def _webp_head(width=9, height=8, flags=0x12):
    """A VP8X chunk; 0x10 is alpha and 0x02 animation, and TensorFlow writes past its tensor where an animation has no alpha."""
    return _riff_chunk(b"VP8X", struct.pack("<I", flags) + _u24(width - 1) + _u24(height - 1))


def _webp_turns(background=0, loops=0):
    return _riff_chunk(b"ANIM", struct.pack("<IH", background, loops))


def _webp_frame(name, left=0, top=0, width=9, height=8, flags=0, extra=b""):
    """A frame of a stored image; flag 2 leaves what is below out of it, 1 clears its place behind it."""
    place = _u24(left // 2) + _u24(top // 2) + _u24(width - 1) + _u24(height - 1) + _u24(40) + bytes([flags])
    chunks = _riff_chunks(_WEBPS[name])
    data = b"".join(_riff_chunk(key, chunks[key]) for key in (b"ALPH", b"VP8 ", b"VP8L") if key in chunks)
    return _riff_chunk(b"ANMF", place + data + extra)


def _flipped(file, at, bit):
    return file[:at] + bytes([file[at] ^ 1 << bit]) + file[at + 1 :]


_PLAIN_CHUNKS, _ALPHA_CHUNKS = _riff_chunks(_WEBPS["lossy"]), _riff_chunks(_WEBPS["lossy_alpha"])
_WEBP_OF = {
    **{f"{name} file": file for name, file in _WEBPS.items()},
    "junk behind": _WEBPS["lossless"] + b"junk",
    "riff too long": b"RIFF" + struct.pack("<I", 10**6) + _WEBPS["lossless"][8:],
    "riff too short": b"RIFF" + struct.pack("<I", 60) + _WEBPS["lossy"][8:],
    "riff odd": b"RIFF" + struct.pack("<I", len(_WEBPS["lossy"]) - 9) + _WEBPS["lossy"][8:],
    "only bits": _WEBPS["lossy"][20:],
    "only chunk": _WEBPS["lossy"][12:],
    "another letter": b"RIFF" + _WEBPS["lossy"][4:8] + b"WEBR" + _WEBPS["lossy"][12:],
    "head": _WEBPS["lossy"][:12],
    "nothing": b"",
    "chunk before": _webp(_riff_chunk(b"note", b"abc"), _riff_chunk(b"VP8 ", _PLAIN_CHUNKS[b"VP8 "])),
    "canvas": _webp(_webp_head(flags=0), _riff_chunk(b"VP8 ", _PLAIN_CHUNKS[b"VP8 "])),
    "canvas, another size": _webp(_webp_head(width=10, flags=0), _riff_chunk(b"VP8 ", _PLAIN_CHUNKS[b"VP8 "])),
    "canvas, no image": _webp(_webp_head(flags=0)),
    "alpha without flag": _webp(_webp_head(flags=0), *(_riff_chunk(key, _ALPHA_CHUNKS[key]) for key in (b"ALPH", b"VP8 "))),
    "flag without alpha": _webp(_webp_head(flags=0x10), _riff_chunk(b"VP8 ", _PLAIN_CHUNKS[b"VP8 "])),
    "two alphas": _webp(_webp_head(flags=0x10), *(_riff_chunk(key, _ALPHA_CHUNKS[key]) for key in (b"ALPH", b"ALPH", b"VP8 "))),
    "alpha cut": _webp(
        _webp_head(flags=0x10), _riff_chunk(b"ALPH", _ALPHA_CHUNKS[b"ALPH"][:-6]), _riff_chunk(b"VP8 ", _ALPHA_CHUNKS[b"VP8 "])
    ),
    "frames": _webp(_webp_head(), _webp_turns(), _webp_frame("lossless_alpha"), _webp_frame("lossy_alpha"), _webp_frame("lossy")),
    "frames left out": _webp(
        _webp_head(), _webp_turns(), _webp_frame("lossy", flags=2), _webp_frame("lossy_alpha", flags=2), _webp_frame("lossless_alpha", flags=3),
        _webp_frame("lossy_alpha"), _webp_frame("lossless_alpha", flags=1), _webp_frame("lossless_alpha"),
    ),
    "frames in places": _webp(
        _webp_head(15, 12), _webp_turns(0xFF4080C0), _webp_frame("lossless_alpha", 2, 2, flags=1), _webp_frame("lossy_alpha", 6, 4),
        _webp_frame("lossless", 0, 0, flags=3), _webp_frame("lossy_alpha", 4, 0), _webp_frame("lossy_alpha", 4, 4),
    ),
    "frames by a background": _webp(_webp_head(), _webp_turns(0x80FF2010), _webp_frame("lossy_alpha", flags=1), _webp_frame("lossless_alpha")),
    "frames larger": _webp(
        _webp_head(61, 47), _webp_turns(), _webp_frame("lossy_alpha_large", width=61, height=47), _webp_frame("lossy_alpha", 50, 36)
    ),
    "one frame": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy")),
    "no frame": _webp(_webp_head(), _webp_turns()),
    "no turns": _webp(_webp_head(), _webp_frame("lossy")),
    "frames outside": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy", left=2)),
    "frames outside, the second": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy"), _webp_frame("lossy", top=2)),
    "frames of another size": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy", width=8)),
    "frames of nothing": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy"), _riff_chunk(b"ANMF", bytes(16))),
    "frames between": _webp(
        _webp_head(), _webp_turns(), _webp_frame("lossy"), _riff_chunk(b"note", b"abc"), _webp_frame("lossless", extra=_riff_chunk(b"more", b"x"))
    ),
    "frames cut": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy"), _webp_frame("lossless_alpha"))[:-7],
    "frames behind": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy"), end=_webp_frame("lossless_alpha")),
    "frames damaged": _webp(
        _webp_head(), _webp_turns(), _webp_frame("lossy"), _webp_frame("lossless")[:60] + bytes(40) + _webp_frame("lossless")[100:]
    ),
    "image beside frames": _webp(_webp_head(), _webp_turns(), _webp_frame("lossy"), _riff_chunk(b"VP8 ", _PLAIN_CHUNKS[b"VP8 "])),
}  # fmt: skip
for _name, _first in (("lossy", 30), ("lossless", 25), ("lossy_alpha", 46), ("lossless_alpha", 25)):
    _size = len(_WEBPS[_name])
    for _at in sorted({1, 11, 12, 13, 19, 21, 24, 25, 30, _size // 2, _size - 9, _size - 2, _size - 1}):
        _WEBP_OF[f"{_name} cut at {_at}"] = _WEBPS[_name][:_at]
    _dice = random.Random(_name)
    for _i in range(16):
        _at = _dice.randrange(_first, _size)
        _WEBP_OF[f"{_name} with another bit at {_at}, {_i % 8}"] = _flipped(_WEBPS[_name], _at, _i % 8)
for _name, _file in _WEBP_OF.items():
    for _channels in (0, 3, 4) if _name.split()[-1] in ("file", "frames") else (0,):
        CASES[f"decode_webp, {_name}, {_channels}"] = lambda t, file=_file, channels=_channels: _strings(t, file).map(
            lambda x: t.io.decode_webp(x, channels)
        )
    if "bit" in _name or _name.endswith(("large file", "coarse file")):
        continue
    for _channels in (0, 1, 3, 4) if _name in ("lossy file", "lossy_alpha file", "frames") else (0,):
        CASES[f"decode_image, webp {_name}, {_channels}"] = lambda t, file=_file, channels=_channels: _strings(t, file).map(
            lambda x: t.io.decode_image(x, channels, expand_animations=False)
        )


def _tensor_proto(code, dims, content=b"", lists=b""):
    """A TensorProto; `lists` are further fields as they are on the wire."""
    shape = b"".join(tfrecord_files._field(2, b"\x08" + tfrecord_files._varint(size)) for size in dims)
    proto = b"\x08" + tfrecord_files._varint(code) + tfrecord_files._field(2, shape)
    return proto + (tfrecord_files._field(4, content) if content else b"") + lists


TENSORS = {
    "float32": (_tensor_proto(1, [2, 2], bytes(range(16))), "float32", [2, 2]),
    "float32_any": (_tensor_proto(1, [2, 2], bytes(range(16))), "float32", [-1, 2]),
    "int64": (_tensor_proto(9, [2], bytes(range(16))), "int64", [-1]),
    "scalar": (_tensor_proto(3, [], b"\x01\x02\x03\x04"), "int32", []),
    "empty": (_tensor_proto(9, [0, 3]), "int64", [-1, 3]),
    "uint8": (_tensor_proto(4, [3], b"abc"), "uint8", [3]),
    "listed": (_tensor_proto(9, [3], lists=tfrecord_files._field(10, b"\x01\x02\x03")), "int64", [3]),
    "listed_few": (_tensor_proto(9, [4], lists=tfrecord_files._field(10, b"\x01\x02")), "int64", [4]),
    "listed_floats": (_tensor_proto(1, [2], lists=tfrecord_files._field(5, bytes(range(8)))), "float32", [2]),
    "listed_none": (_tensor_proto(1, [2]), "float32", [2]),
    "of_another_type": (_tensor_proto(1, [2], bytes(8)), "int32", [2]),
    "of_another_size": (_tensor_proto(1, [2], bytes(12)), "float32", [2]),
    "no_message": (b"\xff\xff\xff", "float32", [2]),
}
CASES.update(
    {
        f"parse_tensor, {name}": (
            lambda t, proto=proto, dtype=dtype, shape=shape: _strings(t, proto).map(
                lambda x: t.parse_tensor(x, getattr(t, dtype), shape)
            )
        )
        for name, (proto, dtype, shape) in TENSORS.items()
    }
)


def _steps(*lists):
    """A FeatureList of lists; an empty one is a Feature of no kind."""
    return b"".join(tfrecord_files._field(1, tfrecord_files._feature(values) if values else b"") for values in lists)


def _sequence(context, lists):
    """A SequenceExample."""
    def entries(pairs):
        return b"".join(
            tfrecord_files._field(1, tfrecord_files._field(1, key.encode()) + tfrecord_files._field(2, value))
            for key, value in pairs
        )

    context = entries((key, tfrecord_files._feature(value)) for key, value in context.items())
    return tfrecord_files._field(1, context) + tfrecord_files._field(2, entries(lists.items()))


_SEQUENCES = [
    _sequence({"id": 1, "tags": [b"a", b"b"]}, {"frames": _steps([1, 2], [3, 4]), "words": _steps([b"x"], [b"y", b"z"], [b"w"])}),
    _sequence({"id": 2}, {"frames": _steps([5, 6]), "words": _steps([b"long one"])}),
    _sequence({"id": 3, "tags": [b"c"]}, {"frames": _steps(), "words": _steps([b"q", b"r", b"s"], [b"t"])}),
]
SEQUENCES = {
    "dense": (lambda t: {"id": t.io.FixedLenFeature([], t.int64)}, lambda t: {"frames": t.io.FixedLenSequenceFeature([2], t.int64)}),
    "sparse": (lambda t: {"tags": t.io.VarLenFeature(t.string)}, lambda t: {"words": t.io.VarLenFeature(t.string)}),
    "ragged": (lambda t: {"id": t.io.FixedLenFeature([], t.int64)}, lambda t: {"words": t.io.RaggedFeature(t.string)}),
    "all": (
        lambda t: {"id": t.io.FixedLenFeature([], t.int64), "absent": t.io.FixedLenFeature([2], t.float32, [1.0, 2.0])},
        lambda t: {"frames": t.io.FixedLenSequenceFeature([2], t.int64), "words": t.io.VarLenFeature(t.string)},
    ),
    "missing_allowed": (
        lambda t: {"id": t.io.FixedLenFeature([], t.int64)},
        lambda t: {"none": t.io.FixedLenSequenceFeature([3], t.float32, allow_missing=True)},
    ),
    "missing": (lambda t: {"id": t.io.FixedLenFeature([], t.int64)}, lambda t: {"none": t.io.FixedLenSequenceFeature([], t.int64)}),
    "of_another_length": (lambda t: {"id": t.io.FixedLenFeature([], t.int64)}, lambda t: {"frames": t.io.FixedLenSequenceFeature([3], t.int64)}),
    "of_another_type": (lambda t: {"id": t.io.FixedLenFeature([], t.int64)}, lambda t: {"words": t.io.FixedLenSequenceFeature([], t.int64)}),
    "context_missing": (lambda t: {"no": t.io.FixedLenFeature([], t.int64)}, lambda t: {"frames": t.io.FixedLenSequenceFeature([2], t.int64)}),
}
_RAGGED_LISTS = [
    _sequence({"id": 1}, {
        "values": _steps([1, 2, 3], [], [4, 5, 6, 7]), "texts": _steps([b"a", b"", b"ccc"], [], [b"d", b"e", b"f", b"g"]),
        "lengths": _steps([2, 0, 1], [], [1, 3]), "splits": _steps([0, 2, 2, 3], [0], [0, 1, 4]), "starts": _steps([0, 2, 2], [], [0, 1]),
        "limits": _steps([2, 2, 3], [], [1, 4]), "rowids": _steps([0, 0, 2], [], [0, 1, 1, 1]),
        "outer": _steps([2, 1], [0], [2]), "pairs": _steps([1, 2, 3, 4], [], [5, 6]),
    }),
    _sequence({"id": 2}, {key: _steps() for key in ("values", "texts", "lengths", "splits", "starts", "limits", "rowids", "outer", "pairs")}),
    _sequence({"id": 3}, {}),
    _sequence({"id": 4}, {
        "values": _steps([8, 9]), "texts": _steps([b"h", b"i"]), "lengths": _steps([0, 2]), "splits": _steps([0, 0, 2]),
        "starts": _steps([0, 0]), "limits": _steps([0, 2]), "rowids": _steps([1, 1]), "outer": _steps([1, 0, 1]), "pairs": _steps([7, 8]),
    }),
]
_RAGGED_KINDS = {
    "row_lengths": lambda f, t: f(t.int64, "values", [f.RowLengths("lengths")]),
    "row_splits": lambda f, t: f(t.int64, "values", [f.RowSplits("splits")]),
    "row_starts": lambda f, t: f(t.int64, "values", [f.RowStarts("starts")]),
    "row_limits": lambda f, t: f(t.int64, "values", [f.RowLimits("limits")]),
    "value_rowids": lambda f, t: f(t.int64, "values", [f.ValueRowIds("rowids")]),
    "uniform": lambda f, t: f(t.int64, "pairs", [f.UniformRowLength(2)]),
    "strings": lambda f, t: f(t.string, "texts", [f.RowLengths("lengths")]),
}
for _name, _kind in _RAGGED_KINDS.items():
    CASES[f"sequence_example, ragged by {_name} single"] = lambda t, kind=_kind: _strings(t, *_RAGGED_LISTS).map(
        lambda r: t.io.parse_single_sequence_example(
            r, {"id": t.io.FixedLenFeature([], t.int64)}, {"r": kind(t.io.RaggedFeature, t)}
        )
    )
    if _name != "strings":
        CASES[f"sequence_example, ragged by {_name} batched"] = lambda t, kind=_kind: (
            _strings(t, *_RAGGED_LISTS).batch(3).map(
                lambda r: t.io.parse_sequence_example(
                    r, {"id": t.io.FixedLenFeature([], t.int64)}, {"r": kind(t.io.RaggedFeature, t)}
                )
            )
        )
CASES["sequence_example, ragged by two partitions"] = lambda t: _strings(t, *_RAGGED_LISTS).map(
    lambda r: t.io.parse_single_sequence_example(
        r, None,
        {"r": t.io.RaggedFeature(t.int64, "values", [t.io.RaggedFeature.RowLengths("outer"), t.io.RaggedFeature.RowSplits("splits")])},
    )
)  # fmt: skip
CASES["sequence_example, ragged by another number of steps"] = lambda t: _strings(
    t, _sequence({}, {"values": _steps([1], [2]), "lengths": _steps([1])})
).map(
    lambda r: t.io.parse_single_sequence_example(
        r, None, {"r": t.io.RaggedFeature(t.int64, "values", [t.io.RaggedFeature.RowLengths("lengths")])}
    )
)  # fmt: skip
CASES["sequence_example, ragged by lengths that do not fit"] = lambda t: _strings(
    t, _sequence({}, {"values": _steps([1], [2]), "lengths": _steps([1], [3])})
).map(
    lambda r: t.io.parse_single_sequence_example(
        r, None, {"r": t.io.RaggedFeature(t.int64, "values", [t.io.RaggedFeature.RowLengths("lengths")], validate=True)}
    )
)  # fmt: skip
for _name, (_context, _lists) in SEQUENCES.items():
    CASES[f"sequence_example, {_name} single"] = lambda t, context=_context, lists=_lists: _strings(t, *_SEQUENCES).map(
        lambda r: t.io.parse_single_sequence_example(r, context(t), lists(t))
    )
    CASES[f"sequence_example, {_name} batched"] = lambda t, context=_context, lists=_lists: (
        _strings(t, *_SEQUENCES).batch(2).map(lambda r: t.io.parse_sequence_example(r, context(t), lists(t)))
    )


# What tf.data.experimental has ready made.
_FILES = ("table-0.csv", "table-1.csv")


def _table(t, batch_size, **options):
    return _tables(t, _FILES, batch_size, **options)


def _tables(t, names, batch_size=2, **options):
    options = {"num_epochs": 1, "shuffle": False, **options}
    return t.make_csv_dataset([f"{t.folder}/{name}" for name in names], batch_size, **options)


CASES.update(
    {
        f"make_csv_dataset, {name}": case
        for name, case in {
            "plain": lambda t: _table(t, 2),
            "label": lambda t: _table(t, 3, label_name="y"),
            "select": lambda t: _table(t, 2, select_columns=["y", "name"]),
            "select_numbers": lambda t: _table(t, 2, select_columns=[1, 2], label_name="x"),
            "names": lambda t: _table(t, 2, column_names=["p", "q", "r", "s"]),
            "epochs": lambda t: _table(t, 4, num_epochs=2),
            "forever": lambda t: _table(t, 3, num_epochs=None).take(5),
            "strings": lambda t: _table(t, 4, column_defaults=["", "", "", ""]),
            "no_label": lambda t: _table(t, 2, label_name="z"),
            "no_column": lambda t: _table(t, 2, select_columns=["z"]),
            "other_order": lambda t: _tables(t, ["table-0.csv", "other-order.csv"]),
            "other_order, names": lambda t: _tables(t, ["table-0.csv", "other-order.csv"], column_names=["p", "q", "r", "s"]),
            "wider_later": lambda t: _tables(t, ["other-order.csv", "table-0.csv"], column_names=["p", "q", "r", "s"]),
            "narrower_sample": lambda t: _tables(t, ["table-0.csv"], num_rows_for_inference=1),
            "no_sample": lambda t: _tables(t, ["table-1.csv"], num_rows_for_inference=0),
            "no_table": lambda t: _tables(t, ["table-0.csv", "no-table.csv"]),
            "lines": lambda t: _tables(t, ["lines.csv"]),
            "lines, GZIP": lambda t: _tables(t, ["lines.csv.gz"], compression_type="GZIP"),
            "blank_line": lambda t: _tables(t, ["blank-line.csv"]),
            "later": lambda t: _tables(t, ["later.csv"]).take(2),
        }.items()
    }
)
CASES.update(
    {
        f"make_batched_features_dataset, {name}": case
        for name, case in {
            "plain": lambda t: t.make_batched_features_dataset(
                f"{t.folder}/parse-*.tfrecord", 4, FEATURES["var_lens"](t), num_epochs=1, shuffle=False
            ),
            "label": lambda t: t.make_batched_features_dataset(
                f"{t.folder}/parse-0.tfrecord", 3, FEATURES["var_lens"](t), label_key="label", num_epochs=2, shuffle=False
            ),
        }.items()
    }
)
