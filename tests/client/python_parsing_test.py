"""penstock.io's features and sparse_batch: results against tf.data's, of single Examples and of batches.

Among the cases are GIF files (fault 21a), WebP files (fault 21b), BMP files and texts that are no numbers (fault 21c), sound and damaged.
"""

import json
import pathlib
import sys
import types
import zlib

import numpy as np
import pytest

import penstock
from penstock._running import _daemon

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import parsing_cases  # noqa: E402
import tfrecord_files  # noqa: E402

RESULTS = json.loads((GOLDEN / "parsing.json").read_text())["cases"]


@pytest.fixture(scope="module")
def namespace(tmp_path_factory):
    """What parsing_cases.py takes."""
    folder = tmp_path_factory.mktemp("cases")
    parsing_cases.write_files(folder)
    names = {name: getattr(penstock, name) for name in penstock.__all__}
    names.update({name: getattr(np, name) for name in parsing_cases.DTYPES if name != "string"})
    return types.SimpleNamespace(
        **names,
        np=np,
        folder=str(folder),
        make_csv_dataset=penstock.experimental.make_csv_dataset,
        make_batched_features_dataset=penstock.experimental.make_batched_features_dataset,
        required=lambda dtype: dtype,
        to_number=penstock.io.string_to_number,
        parse_tensor=lambda x, dtype, shape: penstock.io.parse_tensor(x, dtype, shape=shape),
    )


def same_values(found, expected, where):
    assert list(found.shape) == expected["shape"], where
    if expected["dtype"] == "string":
        assert [value.hex() for value in found.ravel().tolist()] == expected["values"], where
    else:
        assert found.dtype.name == expected["dtype"], where
        np.testing.assert_array_equal(found.ravel(), expected["values"], where)


def compare(found, expected, where):
    if "dict" in expected:
        assert type(found) is dict and set(found) == set(expected["dict"]), where
        for key, value in expected["dict"].items():
            compare(found[key], value, f"{where}[{key!r}]")
    elif "tuple" in expected:
        assert type(found) is tuple and len(found) == len(expected["tuple"]), where
        for i, value in enumerate(expected["tuple"]):
            compare(found[i], value, f"{where}[{i}]")
    elif "sparse" in expected:
        assert type(found) is penstock.SparseTensor, where
        assert found.indices.dtype == found.dense_shape.dtype == np.int64, where
        sparse = expected["sparse"]
        assert found.indices.tolist() == sparse["indices"], where
        assert found.dense_shape.tolist() == sparse["dense_shape"], where
        same_values(found.values, sparse["values"], where)
    elif "ragged" in expected:
        assert type(found) is penstock.RaggedTensor, where
        assert [splits.tolist() for splits in found.nested_row_splits] == expected["ragged"]["splits"], where
        assert {splits.dtype.name for splits in found.nested_row_splits} == {expected["ragged"]["dtype"]}, where
        same_values(found.flat_values, expected["ragged"]["values"], where)
    else:
        same_values(np.asarray(found), expected, where)


def fits(spec, found):
    """Whether an element is what element_spec says."""
    if isinstance(spec, tuple):
        assert len(spec) == len(found)
        for part, own in zip(spec, found):
            fits(part, own)
        return
    if isinstance(spec, dict):
        assert list(spec) == list(found)
        for key in spec:
            fits(spec[key], found[key])
        return
    kinds = {penstock.SparseTensor: "sparse", penstock.RaggedTensor: "ragged"}
    found = found if type(found) in kinds else np.asarray(found)
    kind = kinds.get(type(found), "string" if found.dtype == object else "dense")
    assert spec.kind == kind
    assert spec.row_splits_dtype == (found.row_splits.dtype if kind == "ragged" else None)
    assert len(spec.shape) == len(found.shape)
    assert all(size in (None, own) for size, own in zip(spec.shape, found.shape) if own is not None)


# What TensorFlow calls an invalid argument is here one of the spec (InvalidArgumentError) or of the data (DataLossError).
ERRORS = (penstock.DataLossError, penstock.InvalidArgumentError, ValueError)


@pytest.mark.parametrize("name", parsing_cases.CASES)
@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_what_is_parsed_is_what_tf_data_makes(namespace, name):
    expected = RESULTS[name]
    if isinstance(expected, dict):
        assert expected["error"] in ("InvalidArgumentError", "DataLossError", "ValueError")
        with pytest.raises(ERRORS):
            list(parsing_cases.CASES[name](namespace))
        return
    dataset = parsing_cases.CASES[name](namespace)
    found = list(dataset)
    assert len(found) == len(expected)
    for i, (element, wanted) in enumerate(zip(found, expected)):
        compare(element, wanted, f"{name}, element {i}")
    fits(dataset.element_spec, found[0])


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_columns_of_csv_files_are_inferred_from_compressed_ones(tmp_path):
    lines = b"x,y\n" + b"1,a\n" * 3000
    (tmp_path / "table").write_bytes(zlib.compress(lines[:5000]) + zlib.compress(lines[5000:]))
    options = {"num_epochs": 1, "shuffle": False, "num_rows_for_inference": None}
    make = penstock.experimental.make_csv_dataset
    batches = list(make(str(tmp_path / "table"), 1000, compression_type="ZLIB", **options))
    assert [batch["x"].tolist() for batch in batches] == [[1] * 1000] * 3
    assert [batch["y"].tolist() for batch in batches] == [[b"a"] * 1000] * 3
    with pytest.raises(ValueError, match="needed where files are compressed by ZSTD"):
        make(str(tmp_path / "table"), 1000, compression_type="ZSTD", **options)
    given = make(str(tmp_path / "table"), 1000, ["x", "y"], [0, ""], compression_type="ZSTD", **options)
    with pytest.raises(penstock.DataLossError, match="declared ZSTD"):
        list(given)


RAGGED = {
    "rows": penstock.io.RaggedFeature(penstock.int64, partitions=[penstock.io.RaggedFeature.RowLengths("lengths")]),
    "long": penstock.io.RaggedFeature(
        penstock.string, value_key="words", partitions=[penstock.io.RaggedFeature.RowLengths("lengths")], row_splits_dtype=np.int64
    ),
    "places": penstock.io.SparseFeature("rows", "rows", penstock.int64, 9),
}


def ragged_examples(tmp_path):
    examples = [
        tfrecord_files.example(rows=list(range(i)), words=[b"w%d" % j for j in range(i)], lengths=[i // 2, i - i // 2])
        for i in range(1, 7)
    ]
    tfrecord_files.write(tmp_path / "ragged.tfrecord", examples)
    return penstock.TFRecordDataset(tmp_path / "ragged.tfrecord").parse_example(RAGGED)


def plain(element):
    parts = {key: element[key].nested_row_splits for key in ("rows", "long")}
    assert {key: {splits.dtype.name for splits in value} for key, value in parts.items()} == {"rows": {"int32"}, "long": {"int64"}}
    return [
        [[splits.tolist() for splits in value] for value in parts.values()],
        [element[key].flat_values.tolist() for key in parts],
        [part.tolist() for part in element["places"]],
    ]


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_a_table_may_have_a_thousand_features(tmp_path):
    columns = [f"feature_{i}" for i in range(1000)]
    values = np.random.default_rng(3).standard_normal((21, len(columns))).astype(np.float32)
    path = str(tmp_path / "wide.tfrecord")
    with penstock.io.TFRecordWriter(path) as writer:
        for row in values:
            writer.write(penstock.io.serialize_example({name: [float(value)] for name, value in zip(columns, row)}))
    features = {name: penstock.io.FixedLenFeature([], penstock.float32) for name in columns}
    dataset = penstock.TFRecordDataset(path).parse_example(features).map(lambda x: {name: x[name] * 2 for name in x})
    batches = list(dataset.batch(8))
    assert [list(batch) for batch in batches] == [columns] * 3
    found = np.concatenate([np.stack(list(batch.values()), axis=1) for batch in batches])
    np.testing.assert_array_equal(found, values * 2)


def test_row_splits_of_int32_travel_with_the_signature(tmp_path):
    rows = ragged_examples(tmp_path)
    batches = rows.batch(2)
    wanted = [plain(element) for element in batches]
    singles = [plain(element) for element in rows]
    assert rows.element_spec["rows"].row_splits_dtype == batches.element_spec["rows"].row_splits_dtype == np.int32
    through = {
        "window": rows.window(2).flat_map(lambda w: penstock.Dataset.zip({key: w[key] for key in w})).batch(2),
        "map": rows.map(lambda e: dict(e)).batch(2),
        "shuffle": rows.shuffle(1).batch(2),
        "repeat": rows.repeat(1).batch(2),
        "choose": penstock.Dataset.choose_from_datasets([rows], penstock.Dataset.range(1).repeat()).batch(2),
        "cache": rows.cache().batch(2),
        "zip": penstock.Dataset.zip((rows, rows)).map(lambda a, b: b).batch(2),
        "skip nothing": rows.skip(0).batch(2),
    }
    for name, dataset in through.items():
        assert [plain(element) for element in dataset] == wanted, name
        spec = dataset.element_spec
        assert (spec["rows"].row_splits_dtype, spec["long"].row_splits_dtype) == (np.int32, np.int64), name
    # Those who only know the pipeline's name.
    with batches.loader(_daemon.private_socket(), name="ragged") as owner:
        assert plain(next(owner)) == wanted[0]
        with penstock.attach("ragged", _daemon.private_socket()) as loader:
            found = [plain(batch) for batch in loader]
            assert found and found == wanted[-len(found) :]
    # Files keep such rows, compressed or not, and a cache finds them again.
    for compression in (None, "GZIP"):
        rows.save(tmp_path / "saved", compression=compression)
        loaded = penstock.Dataset.load(tmp_path / "saved")
        assert loaded.element_spec == rows.element_spec
        assert [plain(element) for element in loaded] == singles
        assert [plain(element) for element in loaded.batch(2)] == wanted
    for _ in range(2):
        assert [plain(element) for element in rows.cache(tmp_path / "kept").batch(2)] == wanted
    assert len(list((tmp_path / "kept").iterdir())) == 1


@pytest.mark.filterwarnings("ignore:this trainer holds")
def test_datasets_of_other_row_splits_are_not_joined(tmp_path):
    rows = ragged_examples(tmp_path)
    wide = rows.map(lambda e: {"r": e["long"]})
    narrow = rows.map(lambda e: {"r": e["rows"]})
    assert wide.concatenate(wide).element_spec["r"].row_splits_dtype == np.int64
    lists = penstock.Dataset.from_tensor_slices(np.arange(4)).map(lambda x: {"r": x}).batch(2)
    with pytest.raises(penstock.InvalidArgumentError, match="row splits of int32"):
        narrow.concatenate(lists).element_spec
    same = rows.concatenate(rows)
    assert [spec.row_splits_dtype for spec in (same.element_spec["rows"], same.element_spec["long"])] == [np.int32, np.int64]
    with pytest.raises(ValueError, match="row splits are int32 or int64, not float32"):
        rows.parse_example({"x": penstock.io.RaggedFeature(penstock.int64, row_splits_dtype=np.float32)})


def test_a_list_of_a_record_is_made_dense(tmp_path):
    rows = [[1], [2, 3, 4], []]
    with penstock.TFRecordWriter(tmp_path / "lists") as writer:
        for row in rows:
            writer.write(penstock.io.serialize_example({"ids": np.array(row, np.int64)}))
    lists = penstock.TFRecordDataset(tmp_path / "lists").parse_example({"ids": penstock.io.VarLenFeature(penstock.int64)})
    dense = lists.map(lambda x: x["ids"].to_dense())
    assert [row.tolist() for row in dense] == rows
    assert next(iter(dense.padded_batch(3))).tolist() == [[1, 0, 0], [2, 3, 4], [0, 0, 0]]
    assert [int(i) for i in dense.unbatch()] == [1, 2, 3, 4]
    bare = lists.map(lambda x: x["ids"])
    hint = r"sparse int64 \(\?,\); in a map before it, x\[:\] makes a dense list of such a feature x"
    for refused in (bare.padded_batch(2), bare.unbatch(), bare.bucket_by_sequence_length(lambda x: np.shape(x)[0], [2], [1, 1])):
        with pytest.raises(penstock.InvalidArgumentError, match=hint):
            refused.element_spec
    with pytest.raises(penstock.TraceError, match="to_dense of a value of more than one axis"):
        lists.batch(2).map(lambda x: x["ids"].to_dense())


def test_tensors_of_nothing_have_no_axes_beyond_all_bounds(tmp_path):
    """Some bytes of a record may say so, and all that goes through the axes would never end."""
    dims = b"".join(b"\x12" + bytes([len(dim)]) + dim for dim in (b"\x08\x00", b"\x08" + b"\x80" * 8 + b"\x10"))  # 0, 2^60
    with penstock.TFRecordWriter(tmp_path / "tensors") as writer:
        writer.write(b"\x08\x01\x12" + bytes([len(dims)]) + dims)
    tensors = penstock.TFRecordDataset(tmp_path / "tensors").map(lambda r: penstock.io.parse_tensor(r, penstock.float32, shape=[None, None]))
    message = r"larger than limit: \(0, 1152921504606846976\) > 268435456 elements"
    for dataset in (tensors, tensors.map(lambda x: np.sort(x, axis=0)), tensors.map(lambda x: np.sum(x, axis=0)), tensors.unbatch()):
        with pytest.raises(penstock.DataLossError, match=message):
            list(dataset)
    nothing = np.zeros((2**32 + 3, 0), np.float32)
    with pytest.raises(penstock.DataLossError, match="expected first axes of at most 268435456, found .* with 4294967299"):
        list(penstock.Dataset.from_tensors(nothing).unbatch())
    with pytest.raises(penstock.InvalidArgumentError, match=r"expected at most 268435456 elements in a row .* found float32 \(4294967299, 0\)"):
        penstock.Dataset.from_tensors(nothing).map(lambda x: np.sort(x, axis=0)).element_spec


def test_what_can_only_be_handed_on_is_named():
    """Not as the bytes that a program sees of it."""
    lists = penstock.Dataset.range(6).map(lambda n: {"n": n, "r": (n + np.arange(9))[:n], "s": penstock.strings.as_string((n + np.arange(9))[:n])})
    batches = lists.ragged_batch(2).shuffle(1)
    handed_on = batches.map(lambda x: {"other": x["r"], "s": x["s"], "n": x["n"] + 1})
    assert next(iter(handed_on))["n"].tolist() == [1, 2]
    functions = (
        lambda x: np.sum(x["r"]), lambda x: x["r"] + 1, lambda x: x["r"][0], lambda x: {"n": x["n"], "y": x["r"] < 3},
        lambda x: x["s"] == "3", lambda x: penstock.strings.length(x["s"]),
    )  # fmt: skip
    for function in functions:
        kind = "string" if function in functions[4:6] else "int64"
        with pytest.raises(penstock.Error, match=rf"found ragged {kind} \(\?, \?\)"):
            batches.map(function).element_spec
    with pytest.raises(penstock.InvalidArgumentError, match=r"expected dense values, found ragged int64 \(\?, \?\), which can only be handed on as it is"):
        batches.map(lambda x: np.sum(x["r"])).element_spec
    with pytest.raises(penstock.InvalidArgumentError, match=r"expected dense values, found ragged string \(\?, \?\), which can only"):
        batches.filter(lambda x: x["s"] == "3").element_spec


@pytest.mark.parametrize("count, expected", [
    (None, [0, 10, 11, 12, 20, 21]),
    (1, [0, 10, 11, 12, 20, 21]),
    (penstock.AUTOTUNE, [0, 10, 11, 12, 20, 21]),
    # TensorFlow's own orders of these files.
    (2, [0, 10, 11, 20, 12, 21]),
    (3, [0, 10, 20, 11, 21, 12]),
])  # fmt: skip
def test_rows_of_several_csv_files_come_by_turns(tmp_path, count, expected):
    for i, rows in enumerate((1, 3, 2)):
        (tmp_path / f"{i}.csv").write_text("a,b\n" + "".join(f"{10 * i + j},x\n" for j in range(rows)))
    make = penstock.experimental.make_csv_dataset
    (batch,) = make(str(tmp_path / "*.csv"), 10, num_epochs=1, shuffle=False, num_parallel_reads=count)
    assert batch["a"].tolist() == expected


def test_decode_csv_has_the_order_of_tensorflows_parameters():
    rows = penstock.Dataset.from_tensors("1,a,3").map(lambda r: penstock.io.decode_csv(r, [0, 0], ",", True, "", [0, 2], "name"))
    assert [tuple(map(int, row)) for row in rows] == [(1, 3)]


@pytest.mark.parametrize("partition", ["RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds"])
def test_values_that_no_row_of_a_ragged_feature_has_are_an_error(tmp_path, partition):
    """TensorFlow drops them with RowStarts and refuses them with the others."""
    feature = penstock.io.RaggedFeature(penstock.int64, "v", [getattr(penstock.io.RaggedFeature, partition)("p")])
    for name, keys in (("empty", {"v": np.array([1, 2, 3]), "p": np.array([], np.int64)}), ("missing", {"v": np.array([1, 2, 3])})):
        with penstock.TFRecordWriter(tmp_path / name) as writer:
            writer.write(penstock.io.serialize_example(keys))
        rows = penstock.TFRecordDataset(tmp_path / name).parse_example({"x": feature})
        with pytest.raises(penstock.DataLossError, match="partition 0, of 0 numbers, does not fit"):
            list(rows)
    with penstock.TFRecordWriter(tmp_path / "none") as writer:
        writer.write(penstock.io.serialize_example({"v": np.array([], np.int64)}))
    (element,) = penstock.TFRecordDataset(tmp_path / "none").parse_example({"x": feature})
    assert element["x"].to_list() == []


def test_a_byte_order_mark_is_no_part_of_a_header(tmp_path):
    path = str(tmp_path / "marked.csv")
    make = penstock.experimental.make_csv_dataset
    for header in ('"name",n', 'name,n', '"name","n"'):
        (tmp_path / "marked.csv").write_bytes(b"\xef\xbb\xbf" + header.encode() + b'\n"a",1\nb,2\n')
        (batch,) = make(path, 2, num_epochs=1, shuffle=False)
        assert {key: values.tolist() for key, values in batch.items()} == {"name": [b"a", b"b"], "n": [1, 2]}
        (batch,) = make(path, 2, select_columns=["name"], num_epochs=1, shuffle=False)
        assert batch["name"].tolist() == [b"a", b"b"]
    # A quoted name of two lines is found by the daemon as well.
    (tmp_path / "marked.csv").write_bytes(b'\xef\xbb\xbf"name\nof it",n\na,1\n')
    (batch,) = make(path, 2, num_epochs=1, shuffle=False)
    assert {key: values.tolist() for key, values in batch.items()} == {"name\nof it": [b"a"], "n": [1]}
