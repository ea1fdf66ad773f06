"""Writes parquet/*.parquet, small Parquet files, and parquet.json: what pyarrow reads of them.

Run by hand, with a Python that has pyarrow:  python tests/golden/make_parquet_goldens.py

parquet.json has tables, files and blocks. A column of a table has its dtype, its bytes as hexadecimal digits (zeros where it is null) or, of strings, a list of them,
and the rows that are null. Of long tables the bytes are a hash: FNV-1a of the numbers, or of the size (u32) and the bytes of each string. A file has the name
of its table, or says why it is not read ("outside"). A block is packed by the codec (base64), and its plain bytes are pieces, each so many times.
"""

import base64
import decimal
import json
import pathlib
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent
FILES = FOLDER / "parquet"
ROWS = 60
LONG_ROWS = 3000
TABLES, CASES = {}, []


def numbers(dtype, rows=ROWS):
    if dtype == "bool":
        return np.array([i % 3 == 0 for i in range(rows)])
    if dtype.startswith("float"):
        return np.array([0, -1.5, 3.25, *np.linspace(-9, 9, rows - 3)], dtype)
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, *((i * i) % 120 for i in range(rows - 2))], dtype)


def with_nulls(values, kind):
    return pa.array([None if i % 7 in (2, 3) or 20 < i < 33 else values[i] for i in range(len(values))], kind)


def all_types():
    """Columns of each type: required ("_r"), optional ("_o") and with nulls ("_n")."""
    fields, columns = [], []

    def add(name, kind, values, forms="n"):
        for form in forms:
            fields.append(pa.field(f"{name}_{form}", kind, nullable=form != "r"))
            columns.append(with_nulls(values, kind) if form == "n" else pa.array(values, kind))

    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"):
        forms = "ron" if dtype in ("bool", "int8", "int64", "float32") else "n"
        kind = pa.from_numpy_dtype(np.dtype(dtype))
        add(dtype, kind, list(numbers(dtype)), forms)
    whole = [i * 1000 - 7 for i in range(ROWS)]
    for name, kind in {"date32": pa.date32(), "time32": pa.time32("ms"), "time64": pa.time64("us"), "time64_ns": pa.time64("ns"), "timestamp": pa.timestamp("us", "UTC"),
                       "timestamp_ms": pa.timestamp("ms"), "timestamp_ns": pa.timestamp("ns")}.items():
        stored = pa.int32() if kind.bit_width == 32 else pa.int64()
        fields.append(pa.field(f"{name}_n", kind))
        columns.append(with_nulls([abs(value) for value in whole], stored).cast(kind))
    texts = ["", "a", "ab" * 20, *(f"word {i % 11}" for i in range(ROWS - 3))]
    add("string", pa.string(), texts, "ron")
    add("binary", pa.binary(), [text.encode() + b"\0\xff" for text in texts])
    add("fixed", pa.binary(5), [f"{i * 7919:05d}".encode()[:5] for i in range(ROWS)], "rn")
    fields.append(pa.field("no_number", pa.int32()))
    columns.append(pa.nulls(ROWS, pa.int32()))
    fields.append(pa.field("no_string", pa.string()))
    columns.append(pa.nulls(ROWS, pa.string()))
    return pa.table(columns, schema=pa.schema(fields))


def long_runs():
    """Places of 1, 4, 10 and 12 bits, runs, and nulls in runs."""
    dice = np.random.default_rng(1)
    row = np.arange(LONG_ROWS)
    columns = {
        "few": pa.array(dice.integers(0, 2, LONG_ROWS)),
        "some": pa.array(dice.integers(0, 13, LONG_ROWS), pa.int32()),
        "many": pa.array(dice.integers(0, 1000, LONG_ROWS)),
        "all": pa.array(dice.permutation(LONG_ROWS), pa.int64()),
        "runs": pa.array(row // 500, pa.int16()),
        "mixed": pa.array(np.where(row % 600 < 300, 7, dice.integers(0, 50, LONG_ROWS)), pa.uint8()),
        "gaps": pa.array([None if i % 1000 < 400 else int(i) for i in row], pa.int64()),
        "holes": pa.array([None if dice.random() < 0.3 else float(i) for i in row], pa.float64()),
        "words": pa.array([None if i % 50 == 3 else f"word {i * i % 700}" for i in row]),
        "flags": pa.array(row % 900 < 500),
        "steps": pa.array(np.cumsum(dice.integers(-(1 << 40), 1 << 40, LONG_ROWS)), pa.int64()),
    }
    return pa.table(columns)


def dtype_of(kind):
    if pa.types.is_temporal(kind):
        return "int32" if kind.bit_width == 32 else "int64"
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "string"
    return np.dtype(kind.to_pandas_dtype()).name


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def said(table, is_long):
    """What parquet.json says of a table's columns."""
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        kind = column.type
        dtype = dtype_of(kind)
        nulls = [i for i, value in enumerate(column.is_null().to_pylist()) if value]
        if pa.types.is_temporal(kind):
            column = column.cast(getattr(pa, dtype)())
        entry = {"dtype": dtype, "nulls": nulls}
        if dtype == "string":
            values = [b"" if value is None else value.encode() if isinstance(value, str) else value for value in column.to_pylist()]
            if is_long:
                entry["fnv"] = fnv(b"".join(len(value).to_bytes(4, "little") + value for value in values))
            else:
                entry["values"] = [value.hex() for value in values]
        else:
            data = np.array([0 if value is None else value for value in column.to_pylist()], dtype).tobytes()
            entry.update({"fnv": fnv(data)} if is_long else {"hex": data.hex()})
        columns[name] = entry
    return columns


def write(name, table, of, schema=None, **options):
    path = FILES / f"{name}.parquet"
    pq.write_table(table, path, **options)
    footer = pq.ParquetFile(path).metadata
    found = pq.read_table(path)
    assert found.num_rows == table.num_rows
    TABLES.setdefault(of, said(found, of == "long"))
    assert TABLES[of] == said(found, of == "long"), name
    CASES.append({"file": f"{name}.parquet", "table": of, "rows": table.num_rows, "row_groups": footer.num_row_groups})


def outside(name, table, why, **options):
    pq.write_table(table, FILES / f"{name}.parquet", **options)
    CASES.append({"file": f"{name}.parquet", "outside": why})


def blocks():
    """Of pyarrow's compressors, which are those of its pages."""
    noise = np.random.default_rng(2).integers(0, 256, 300, np.uint8).tobytes()
    plains = {"nothing": [], "a byte": [(b"a", 1)], "noise": [(noise, 1)], "one byte": [(b"x", 100_000)], "a pattern of 7": [(b"pattern", 3000)],
              "words": [(b"the quick brown fox jumps over the lazy dog; ", 5), (b"and the lazy dog sleeps. ", 40), (noise[:70], 1), (b"the quick brown fox", 9)],
              "far": [(noise, 1), (b"0123456789" * 30, 300), (noise, 1)]}
    for name, pieces in plains.items():
        plain = b"".join(text * count for text, count in pieces)
        for codec in ("snappy", "lz4_raw", "gzip", "zstd"):
            packed = pa.compress(plain, codec=codec, asbytes=True)
            yield {"name": name, "codec": codec, "packed": base64.b64encode(packed).decode(), "plain": [[base64.b64encode(text).decode(), count] for text, count in pieces]}


def main():
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir()
    types = all_types()
    small = {"store_schema": False, "data_page_size": 100, "write_batch_size": 16}
    for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
        for version in ("1.0", "2.0"):
            of = f"{codec}_v{version[0]}"
            if codec in ("none", "zstd") or version == "1.0":
                write(f"plain_{of}", types, "types", compression=codec, data_page_version=version, use_dictionary=False, store_schema=False, write_statistics=False)
            write(f"dictionary_{of}", types, "types", compression=codec, data_page_version=version, store_schema=False, write_statistics=False)
    for version in ("1.0", "2.0"):
        of = f"v{version[0]}"
        encodings = {}
        for field in types.schema:
            dtype = dtype_of(field.type)
            if dtype == "string":
                encodings[field.name] = "BYTE_STREAM_SPLIT" if field.type == pa.binary(5) else "DELTA_LENGTH_BYTE_ARRAY"
            elif dtype == "bool":
                encodings[field.name] = "RLE"
            else:
                encodings[field.name] = "BYTE_STREAM_SPLIT" if dtype.startswith("float") else "DELTA_BINARY_PACKED"
        for name in types.column_names:
            if name.startswith("fixed"):
                encodings[name] = "PLAIN"
        write(f"deltas_{of}", types, "types", compression="none", data_page_version=version, use_dictionary=False, column_encoding=encodings, store_schema=False,
              write_statistics=False)
        write(f"pages_{of}", types, "types", compression="zstd", data_page_version=version, row_group_size=25, write_page_checksum=True, use_dictionary=["int64_n", "string_n"],
              **small)
        runs = long_runs()
        write(f"long_{of}", runs, "long", compression="zstd", data_page_version=version, row_group_size=2000, data_page_size=1000, write_batch_size=100, store_schema=False)
        steps = {name: "DELTA_BINARY_PACKED" for name in runs.column_names if pa.types.is_integer(runs.schema.field(name).type)}
        steps.update(holes="BYTE_STREAM_SPLIT", words="DELTA_LENGTH_BYTE_ARRAY")
        write(f"long_deltas_{of}", runs, "long", compression="zstd", data_page_version=version, use_dictionary=False, column_encoding=steps, data_page_size=4000,
              write_batch_size=100, store_schema=False)
    split = {name: "BYTE_STREAM_SPLIT" for name in runs.column_names if not (pa.types.is_string(runs.schema.field(name).type) or name == "flags")}
    write("long_split", runs, "long", compression="snappy", use_dictionary=False, column_encoding=split, data_page_size=4000, store_schema=False)
    # A dictionary that becomes too large: the pages behind it are plain.
    write("long_fallback", runs, "long", compression="snappy", dictionary_pagesize_limit=500, data_page_size=1000, write_batch_size=100, store_schema=False)
    # Small ones, for tests that change each byte.
    few = pa.table({"x": with_nulls([i * i for i in range(20)], pa.int64()), "s": pa.array([f"w{i % 3}" for i in range(20)]), "b": pa.array([i % 3 == 0 for i in range(20)])},
                   schema=pa.schema([pa.field("x", pa.int64()), pa.field("s", pa.string(), nullable=False), pa.field("b", pa.bool_(), nullable=False)]))
    for codec, version in (("none", "1.0"), ("none", "2.0"), ("snappy", "2.0"), ("lz4", "1.0"), ("gzip", "1.0"), ("zstd", "2.0")):
        write(f"few_{codec}_v{version[0]}", few, "few", compression=codec, data_page_version=version, use_dictionary=["s"], write_statistics=False, store_schema=False,
              row_group_size=12, column_encoding={"x": "DELTA_BINARY_PACKED"} if codec == "snappy" else None)
    # With the bounds of long values in the headers, an index of pages, and pyarrow's own schema.
    whole = pa.table({"x": pa.array(["a" * 3000, "b" * 5000, None])})
    write("bounds", whole, "bounds", compression="none", write_page_index=True, use_dictionary=False)
    write("no_rows", types.slice(0, 0), "empty")

    one = pa.array([1, None, 3])
    outside("list", pa.table({"x": pa.array([[1], [], [2, 3]])}), "nested columns (a list)")
    outside("struct", pa.table({"x": pa.array([{"y": 1}, None, {"y": 2}])}), "nested columns (a struct)")
    outside("decimal", pa.table({"x": pa.array([decimal.Decimal("1.25")])}), "decimals")
    outside("int96", pa.table({"x": pa.array([1, 2], pa.timestamp("ns"))}), "INT96", use_deprecated_int96_timestamps=True)
    outside("brotli", pa.table({"x": one}), "pages of codec BROTLI", compression="brotli")
    outside("nulls", pa.table({"x": pa.nulls(3)}), "columns of nulls alone")
    outside("delta_texts", pa.table({"x": pa.array(["abc", "abd"])}), "values of encoding DELTA_BYTE_ARRAY", use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")

    with open(FOLDER / "parquet.json", "w") as file:
        file.write(f'{{"pyarrow": "{pa.__version__}", "tables": {{\n')
        file.write(",\n".join(f"{json.dumps(name)}: {json.dumps(columns)}" for name, columns in TABLES.items()))
        file.write('\n}, "files": [\n' + ",\n".join(json.dumps(one) for one in CASES))
        file.write('\n], "blocks": [\n' + ",\n".join(json.dumps(one) for one in blocks()) + "\n]}\n")


if __name__ == "__main__":
    main()
