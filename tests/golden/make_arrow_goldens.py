"""Writes arrow/*.arrow, small Arrow IPC files and streams, and arrow.json: what pyarrow reads of them.

Run by hand, with a Python that has pyarrow:  python tests/golden/make_arrow_goldens.py

A case of arrow.json names a file, the features that are asked for of it (none: all columns), as penstock.ArrowFeature takes them, and the rows. Strings
are hexadecimal digits of their bytes. A case with an error instead of rows is refused.
"""

import decimal
import json
import pathlib
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.feather

FOLDER = pathlib.Path(__file__).parent
FILES = FOLDER / "arrow"
CASES = []


def write(name, batches, stream=False, **options):
    """`batches`: RecordBatches of one schema, in that order."""
    path = FILES / f"{name}.arrow"
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        for batch in batches:
            out.write_batch(batch)
    return f"{name}.arrow"


def plain(value):
    """A value of pyarrow's to_pylist() for JSON."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def column(table, path):
    """The values of a column, or of a field in a struct; fields of structs in lists are lists."""
    def step(value, names):
        if value is None or not names:
            return value
        if isinstance(value, list):
            return [step(item, names) for item in value]
        return step(value[names[0]], names[1:])

    names = path.split(".")
    found = table.column(names[0])
    if pa.types.is_dictionary(found.type):
        found = pa.chunked_array([chunk.dictionary_decode() for chunk in found.chunks])
    if names[1:] == [] and pa.types.is_temporal(found.type):
        found = found.cast(pa.int32() if found.type.bit_width == 32 else pa.int64())
    return [plain(step(value, names[1:])) for value in found.to_pylist()]


def case(name, file, features=None, table=None, error=None, rows=None):
    """`features`: {name: {"column": …, …}}; what stands for a null is filled in as it asks."""
    entry = {"name": name, "file": file}
    if features is not None:
        entry["features"] = features
    if error is not None:
        entry["error"] = error
    elif rows is not None:
        entry["rows"] = rows
    else:
        wanted = features if features is not None else {key: {} for key in table.column_names}
        columns = {}
        for key, feature in wanted.items():
            values = column(table, feature.get("column", key))
            if feature.get("is_null"):
                columns[key] = [value is None for value in values]
            else:
                columns[key] = [filled(value, feature, feature.get("shape", [])) for value in values]
        entry["rows"] = [dict(zip(columns, row)) for row in zip(*columns.values())]
    CASES.append(entry)


def filled(value, feature, shape):
    if value is None and shape and shape[0] == -1 and feature.get("allow_missing"):
        return []
    if value is None and "default" in feature:
        default = plain(feature["default"])
        for size in reversed(shape):
            default = [default] * size
        return default
    if isinstance(value, list):
        return [filled(item, feature, shape[1:]) for item in value]
    return value


def cut(columns, *lengths):
    """RecordBatches of columns, of these lengths one after another."""
    table = pa.table(columns)
    batches, at = [], 0
    for length in lengths:
        batches.append(pa.record_batch([table.column(i).slice(at, length).combine_chunks() for i in range(table.num_columns)], schema=table.schema))
        at += length
    assert at == table.num_rows
    return batches, table


def numbers():
    columns = {}
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        info = np.iinfo(name)
        columns[name] = pa.array([info.min, info.max, *range(1, 9)], getattr(pa, name)())
    for name in ("float16", "float32", "float64"):
        columns[name] = pa.array(np.array([0, -1.5, 3.25, *np.linspace(-9, 9, 7)], name))
    columns["bool"] = pa.array([i % 3 == 0 for i in range(10)])
    for name, kind in {"date32": pa.date32(), "date64": pa.date64(), "time32": pa.time32("s"), "time64": pa.time64("us"),
                       "timestamp": pa.timestamp("us", "UTC"), "duration": pa.duration("ms")}.items():
        values = [i * 86_400_000 if name == "date64" else i for i in range(10)]
        columns[name] = pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    batches, table = cut(columns, 4, 0, 5, 1)
    case("numbers", write("numbers", batches), table=table)
    case("numbers, a stream", write("numbers_stream", batches, stream=True), table=table)
    case("some of them, in another order", "numbers.arrow", {"b": {"column": "bool"}, "int64": {"dtype": "int64"}, "x": {"column": "float32"}}, table)
    case("numbers, metadata of version 4", write("numbers_v4", batches, metadata_version=pa.ipc.MetadataVersion.V4), table=table)
    case("numbers, before Arrow 0.15", write("numbers_old", batches, stream=True, metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True), table=table)
    small, table = cut({"x": pa.array(range(300), pa.int32()), "y": pa.array(np.arange(300) / 8)}, 120, 180)
    case("numbers, zstd", write("numbers_zstd", small, compression="zstd"), table=table)
    few, table = cut({"x": pa.array(range(3), pa.int32())}, 3)
    case("numbers, lz4", write("numbers_lz4", few, compression="lz4"), table=table)
    case("no rows", write("no_rows", cut({"x": pa.array([], pa.int32())}, 0)[0], stream=True), rows=[])


def rows():
    """The numbers of rows, as an index mapping has them."""
    write("rows", cut({"indices": pa.array([5, 299, 0, 7, 7], pa.uint64())}, 3, 2)[0], stream=True)


def texts():
    words = ["", "a", "two words", "ü", "x" * 300, "last"]
    columns = {"utf8": pa.array(words), "large_utf8": pa.array(words, pa.large_utf8()), "binary": pa.array([w.encode() + b"\0\xff" for w in words]),
               "large_binary": pa.array([w.encode() for w in words], pa.large_binary()), "fixed": pa.array([w.encode()[:3].ljust(3, b".") for w in words], pa.binary(3))}
    batches, table = cut(columns, 2, 4)
    case("texts", write("texts", batches), table=table)
    case("texts, zstd", write("texts_zstd", batches, stream=True, compression="zstd"), table=table)
    case("texts, lz4", write("texts_lz4", batches, compression="lz4"), table=table)


def nulls():
    columns = {"i": pa.array([1, None, 3, None, 5]), "f": pa.array([None, 0.5, None, 1.5, 2.5], pa.float32()), "b": pa.array([True, None, False, True, None]),
               "s": pa.array(["a", None, "c", "", None]), "x": pa.array([b"ab", None, b"cd", None, b"ef"], pa.binary(2)), "whole": pa.array(range(5))}
    batches, table = cut(columns, 3, 2)
    file = write("nulls", batches)
    wanted = {"i": {"default": -7}, "f": {"default": 0.25}, "b": {"default": True}, "s": {"default": "none"}, "x": {"default": "--"}, "whole": {},
              "no_i": {"column": "i", "is_null": True}, "no_whole": {"column": "whole", "is_null": True}}
    case("nulls by default", file, wanted, table)
    case("a null without a default", file, {"s": {}}, error="it is null, and there is no default_value")


def lists():
    ints = [[1, 2], [], [3], [4, 5, 6], [7]]
    columns = {
        "ints": pa.array(ints, pa.list_(pa.int32())),
        "large": pa.array([[float(i) / 4 for i in row] for row in ints], pa.large_list(pa.float32())),
        "words": pa.array([["a" * i for i in row] for row in ints], pa.list_(pa.utf8())),
        "bools": pa.array([[i % 2 == 0 for i in row] for row in ints], pa.list_(pa.bool_())),
        "fixed": pa.array([[i, i + 0.5, i + 1] for i in range(5)], pa.list_(pa.float32(), 3)),
        "matrix": pa.array([[[i, 1], [2, 3], [4, i]] for i in range(5)], pa.list_(pa.list_(pa.int16(), 2), 3)),
        "nested": pa.array([[row, [9]] for row in ints], pa.list_(pa.list_(pa.int64()))),
        "pairs": pa.array([[[i, -i] for i in row] for row in ints], pa.list_(pa.list_(pa.int8(), 2))),
        "nested_words": pa.array([[["b" * i] * 2 for i in row] for row in ints], pa.list_(pa.list_(pa.utf8()))),
        "square": pa.array([[[i, 2], [3, 4]] for i in range(5)], pa.list_(pa.list_(pa.float64()))),
        "texts": pa.array([[b"x", b"yy"] for _ in range(5)], pa.list_(pa.binary(), 2)),
        "deep": pa.array([[[[1], [2, 3]], []] if row else [] for row in ints], pa.list_(pa.list_(pa.list_(pa.int32())))),
    }
    batches, table = cut(columns, 2, 3)
    file = write("lists", batches)
    case("lists", file, table=table)
    case("lists, a stream by zstd", write("lists_zstd", batches, stream=True, compression="zstd"), table=table)
    case("lists of a declared shape", file, {"square": {"shape": [2, 2]}, "matrix": {"shape": [3, 2]}, "nested": {"shape": [-1, -1]}, "pairs": {"shape": [-1, 2]}}, table)
    case("a list of another size", file, {"ints": {"shape": [2]}}, error="a list of 0 elements, expected 2")
    # Of slices, whose offsets begin elsewhere.
    sliced = [batch.slice(1) for batch in batches]
    case("slices of lists", write("lists_sliced", sliced), table=pa.Table.from_batches(sliced))
    holes = {"l": pa.array([[1, None, 3], None, [], [4]]), "f": pa.array([[1.0, None], None, [2.0, 3.0], [None, None]], pa.list_(pa.float64(), 2)),
             "n": pa.array([[[1], None], None, [], [[None, 2]]], pa.list_(pa.list_(pa.int32()))), "s": pa.array([["a", None], None, [], ["b"]])}
    batches, table = cut(holes, 3, 1)
    case("nulls in lists", write("lists_nulls", batches),
         {"l": {"default": 0, "allow_missing": True, "shape": [-1]}, "f": {"default": -1.0, "shape": [2]}, "n": {"default": 7, "allow_missing": True, "shape": [-1, -1]},
          "s": {"default": "?", "allow_missing": True, "shape": [-1]}, "no_l": {"column": "l", "is_null": True}}, table)
    case("a null list", "lists_nulls.arrow", {"l": {"default": 0}}, error="it is null, and allow_missing is not set")


def structs():
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.utf8()), ("inner", pa.struct([("x", pa.float32()), ("n", pa.int64())]))])
    values = [{"bytes": b"%d" % i, "path": f"p{i}", "inner": {"x": i / 2, "n": i}} for i in range(5)]
    people = pa.struct([("name", pa.utf8()), ("age", pa.int32())])
    columns = {"id": pa.array(range(5)), "image": pa.array(values, kind), "people": pa.array([[{"name": "n" * i, "age": i}] * i for i in range(5)], pa.list_(people)), "last": pa.array(range(5, 10))}
    batches, table = cut(columns, 3, 2)
    file = write("structs", batches)
    wanted = {"image.bytes": {}, "n": {"column": "image.inner.n"}, "people.name": {}, "ages": {"column": "people.age"}, "last": {}}
    case("fields of structs", file, wanted, table)
    everything = {path: {} for path in ("id", "image.bytes", "image.path", "image.inner.x", "image.inner.n", "people.name", "people.age", "last")}
    case("all fields", file, everything, table)
    CASES[-1].pop("features")
    holes = [values[0], None, {"bytes": None, "path": None, "inner": None}, {"bytes": b"b", "path": "p", "inner": {"x": None, "n": 1}}, values[4]]
    batches, table = cut({"image": pa.array(holes, kind)}, 3, 2)
    case("nulls around values", write("structs_nulls", batches, stream=True),
         {"image.bytes": {"default": "-"}, "x": {"column": "image.inner.x", "default": 0.5}, "none": {"column": "image", "is_null": True},
          "no_inner": {"column": "image.inner", "is_null": True}, "n": {"column": "image.inner.n", "default": -1}}, table)


def dictionaries():
    words = pa.array(["red", "green", "red", "blue", "red"]).dictionary_encode()
    numbers = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 1, 0], pa.int8()), pa.array([10, 20, 30], pa.int64()))
    holes = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0, None], pa.uint16()), pa.array(["a", "b"]))
    batches, table = cut({"words": words, "numbers": numbers, "holes": holes}, 3, 2)
    wanted = {"words": {}, "numbers": {}, "holes": {"default": "none"}}
    case("dictionaries", write("dictionaries", batches), wanted, table)
    case("dictionaries, zstd", write("dictionaries_zstd", batches, compression="zstd"), wanted, table)
    # A null among the values of a dictionary is one where it is used.
    batches, table = cut({"d": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 1], pa.int8()), pa.array(["a", None, "c"])),
                          "n": pa.DictionaryArray.from_arrays(pa.array([1, 1, 0, None, 0], pa.uint16()), pa.array([None, 7], pa.int32()))}, 3, 2)
    case("nulls in dictionaries", write("dictionaries_nulls", batches),
         {"d": {"default": "none"}, "n": {"default": -1}, "no_d": {"column": "d", "is_null": True}, "no_n": {"column": "n", "is_null": True}}, table)
    # Each batch has a dictionary of its own: a stream replaces it, or goes on with it.
    kind = pa.schema([("w", pa.dictionary(pa.int32(), pa.utf8()))])
    other = [pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(texts))], schema=kind)
             for places, texts in (([0, 1, 0], ["a", "b"]), ([1, 0], ["c", "d"]), ([2, 2], ["e", "f", "g"]))]
    case("a dictionary that is replaced", write("dictionaries_replaced", other, stream=True), table=pa.Table.from_batches(other))
    more = [pa.record_batch([pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(texts))], schema=kind)
            for places, texts in (([0, 1], ["a", "b"]), ([2, 1], ["a", "b", "c"]), ([4, 0, 2], ["a", "b", "c", "d", "e"]))]
    case("a dictionary that grows", write("dictionaries_delta", more, stream=True, emit_dictionary_deltas=True), table=pa.Table.from_batches(more))
    case("a dictionary that grows, in a file", write("dictionaries_delta_file", more, emit_dictionary_deltas=True), table=pa.Table.from_batches(more))


def others():
    """Columns that cannot be read, around one that can."""
    union = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
    dense = pa.UnionArray.from_dense(pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 2]), pa.array(["a"])])
    columns = {
        "union": union, "dense": dense, "none": pa.nulls(3), "decimal": pa.array([decimal.Decimal("1.5")] * 3), "map": pa.array([[("k", 1)], [], [("l", 2)]], pa.map_(pa.utf8(), pa.int32())),
        "view": pa.array(["short", "a text of more than twelve bytes", "x" * 50], pa.string_view()), "month": pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([5, 6])), "list_view": pa.array([[1], [2, 3], []], pa.list_view(pa.int32())),
        "binary_view": pa.array([b"y" * 40, b"z", b"w" * 70], pa.binary_view()), "good": pa.array([7, 8, 9], pa.int16()), "text": pa.array(["a", "b", "c"]),
    }
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    file = write("others", [batch])
    rows = [{"good": 7 + i, "text": "abc"[i].encode().hex()} for i in range(3)]
    case("behind columns that cannot be read", file, {"good": {}, "text": {}}, rows=rows)
    for name, kind in {"union": "union", "none": "null", "decimal": "decimal", "map": "map", "view": "utf8_view", "month": "interval", "runs": "run_end_encoded",
                       "list_view": "list_view"}.items():
        case(f"a column of type {kind}", file, {name: {}}, error=f"it is of type {kind}, which cannot be read")
    case("all of them", file, error="no feature is listed, so that every column is one")


def feather():
    table = pa.table({"x": pa.array(range(6), pa.int64()), "s": pa.array(list("abcdef"))})
    for name, options in {"feather": {"compression": "uncompressed", "chunksize": 4}, "feather_zstd": {"compression": "zstd"}, "feather_lz4": {}}.items():
        pa.feather.write_feather(table, FILES / f"{name}.arrow", version=2, **options)
        case(name, f"{name}.arrow", table=table)


def main():
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    for make in (numbers, rows, texts, nulls, lists, structs, dictionaries, others, feather):
        make()
    lines = ",\n".join(json.dumps(entry) for entry in CASES)
    (FOLDER / "arrow.json").write_text(f'{{"pyarrow": "{pa.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
