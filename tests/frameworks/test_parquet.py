"""Dataset.parquet: types, order, resume, predicates, nulls, and files that are not what they were to be. pyarrow, which reads and writes the files, is the oracle.

With a Python that has pyarrow, the package and its programs on their paths: python -m pytest tests/frameworks/test_parquet.py
"""

import datetime
import decimal
import operator
import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import penstock
from penstock._dataset import _parquet
from penstock._parquet import _predicates
from penstock._parquet._row_groups import RowGroups

ROWS = 1000
START = datetime.datetime(2020, 1, 1)


class Logging(RowGroups):
    """Writes the numbers of row groups as they are decoded."""

    log = None

    def __getstate__(self):
        return {**super().__getstate__(), "log": Logging.log}

    def _table(self, number):
        with open(self.log, "a") as file:
            file.write(f"{number}\n")
        return super()._table(number)


def table(rows=ROWS):
    random = np.random.default_rng(1)
    return pa.table(
        {
            "number": np.arange(rows),
            "float": random.normal(size=rows).astype(np.float32),
            "half": random.normal(size=rows).astype(np.float16),
            "small": (np.arange(rows) % 200).astype(np.uint8),
            "flag": random.random(rows) < 0.5,
            "text": [f"text {i}" for i in range(rows)],
            "bytes": pa.array([bytes([i % 256]) * (i % 7) for i in range(rows)], pa.binary()),
            "large": pa.array([f"{i}" for i in range(rows)], pa.large_string()),
            "fixed": pa.array([f"{i:4}".encode() for i in range(rows)], pa.binary(4)),
            "choice": pa.array([f"k{i % 3}" for i in range(rows)]).dictionary_encode(),
            "price": pa.array([decimal.Decimal(i) / 100 for i in range(rows)], pa.decimal128(10, 2)),
            "at": pa.array([START + datetime.timedelta(seconds=i) for i in range(rows)], pa.timestamp("us")),
            "day": pa.array([START.date() + datetime.timedelta(days=i) for i in range(rows)]),
            "clock": pa.array([datetime.time(1, 2, i % 60) for i in range(rows)], pa.time32("ms")),
            "list": pa.array([list(range(i % 5)) for i in range(rows)], pa.list_(pa.int32())),
            "flags": pa.array([[True, False, True][: i % 4] for i in range(rows)], pa.list_(pa.bool_())),
            "halves": pa.array([[np.float16(1.5)] * (i % 3) for i in range(rows)], pa.list_(pa.float16())),
            "point": pa.array([[i, i + 1, i + 2] for i in range(rows)], pa.list_(pa.float32(), 3)),
            "pairs": pa.array([[[j, j + 1] for j in range(i % 4)] for i in range(rows)], pa.list_(pa.list_(pa.int16(), 2))),
            "names": pa.array([[f"a{i}", "bb"] for i in range(rows)], pa.list_(pa.string(), 2)),
            "struct": pa.array([{"x": i, "y": {"z": f"z{i}", "w": [i] * (i % 2)}} for i in range(rows)]),
            "boxes": pa.array([[{"x": j, "area": float(j)} for j in range(i % 3)] for i in range(rows)]),
            "nested": pa.array([[list(range(j)) for j in range(i % 4)] for i in range(rows)], pa.list_(pa.list_(pa.int64()))),
            "map": pa.array([[(j, j * 2.5) for j in range(i % 3)] for i in range(rows)], pa.map_(pa.int64(), pa.float64())),
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    made = table()
    pq.write_table(made, folder / "a.parquet", row_group_size=128, compression="zstd")
    pq.write_table(made.slice(0, 300), folder / "b.parquet", row_group_size=100, compression="snappy")
    return folder


def plain(value):
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return np.asarray(value).tolist()


def expected(row):
    """pyarrow's row as this has it."""
    made = dict(row)
    for name in ("text", "large", "choice"):
        made[name] = row[name].encode()
    made["names"] = [name.encode() for name in row["names"]]
    made["price"] = float(row["price"])
    made["at"] = (row["at"] - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    made["day"] = (row["day"] - datetime.date(1970, 1, 1)).days
    made["clock"] = 1000 * (3600 * row["clock"].hour + 60 * row["clock"].minute + row["clock"].second)
    made["struct"] = {"x": row["struct"]["x"], "y": {"z": row["struct"]["y"]["z"].encode(), "w": row["struct"]["y"]["w"]}}
    made["boxes"] = {name: [box[name] for box in row["boxes"]] for name in ("x", "area")}
    made["map"] = {"key": [key for key, _ in row["map"]], "value": [value for _, value in row["map"]]}
    splits = np.cumsum([0, *map(len, row["nested"])]).tolist()
    made["nested"] = {"values": [value for inner in row["nested"] for value in inner], "row_splits": splits}
    return made


def numbers(dataset):
    return [int(row["number"]) for row in dataset]


def test_every_type_is_what_pyarrow_reads(files):
    dataset = penstock.Dataset.parquet([files / "a.parquet", files / "b.parquet"])
    rows = [expected(row) for row in table().to_pylist()]
    assert [plain(row) for row in dataset] == rows + rows[:300]
    assert len(dataset) == 1300 and len(dataset.batch(64)) == 21
    spec = dataset.element_spec
    assert list(spec) == table().column_names
    assert spec["point"] == penstock.TensorSpec((3,), np.float32) and spec["list"] == penstock.TensorSpec((None,), np.int32)
    assert spec["pairs"] == penstock.TensorSpec((None, 2), np.int16) and spec["price"].dtype == np.float64 and spec["half"].dtype == np.float16


def test_codecs_and_encodings(tmp_path):
    made = table(200).select(["number", "text", "list", "choice"])
    wanted = [{name: expected(row)[name] for name in made.column_names} for row in table(200).to_pylist()]
    kinds = [(codec, version, codec != "zstd") for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd") for version in ("1.0", "2.0")]
    for number, (codec, version, has_dictionary) in enumerate(kinds):
        path = tmp_path / f"{number:02}.parquet"
        pq.write_table(made, path, compression=codec, data_page_version=version, use_dictionary=has_dictionary, row_group_size=60)
    found = [plain(row) for row in penstock.Dataset.parquet(str(tmp_path / "*.parquet"))]
    for number, kind in enumerate(kinds):
        assert found[200 * number : 200 * (number + 1)] == wanted, kind


def test_columns_globs_and_order(files, tmp_path):
    assert list(next(iter(penstock.Dataset.parquet(str(files / "*.parquet"), columns=["text", "number"])))) == ["text", "number"]
    assert numbers(penstock.Dataset.parquet(str(files / "*.parquet"), columns="number")) == [*range(1000), *range(300)]
    assert numbers(penstock.Dataset.parquet([files / "b.parquet", files / "a.parquet"], columns="number")) == [*range(300), *range(1000)]
    empty = table(3).slice(0, 0)
    pq.write_table(empty, tmp_path / "empty.parquet")
    dataset = penstock.Dataset.parquet([tmp_path / "empty.parquet", files / "b.parquet"], columns="number")
    assert numbers(dataset) == [*range(300)] and len(dataset) == 300
    nothing = penstock.Dataset.parquet(tmp_path / "empty.parquet")
    assert list(nothing) == [] and len(nothing) == 0 and list(nothing.element_spec) == empty.column_names
    with pytest.raises(penstock.NotFoundError, match="no file matches"):
        penstock.Dataset.parquet(str(files / "*.none"))
    with pytest.raises(penstock.NotFoundError, match="there is no file .*c.parquet"):
        penstock.Dataset.parquet(files / "c.parquet")
    with pytest.raises(penstock.InvalidArgumentError, match=r"is a folder: give a glob of its files, such as .*\*.parquet"):
        penstock.Dataset.parquet(files)
    with pytest.raises(ValueError, match="there is no column 'none' in .*a.parquet; there are number, float"):
        penstock.Dataset.parquet(files / "a.parquet", columns=["none"])


def test_batches_are_whole_columns(files):
    batches = list(penstock.Dataset.parquet(files / "a.parquet", columns=["number", "point", "text"]).batch(300))
    assert [batch["number"].shape[0] for batch in batches] == [300, 300, 300, 100]
    assert np.concatenate([batch["point"] for batch in batches]).tolist() == [[i, i + 1, i + 2] for i in range(ROWS)]
    ragged = list(penstock.Dataset.parquet(files / "a.parquet", columns=["list"]).ragged_batch(500))
    assert ragged[1]["list"].to_list()[3] == list(range(503 % 5))


# --- who decodes --------------------------------------------------------------------------------


FLAT = ["number", "float", "half", "small", "flag", "text", "bytes", "large", "fixed", "choice", "at", "day", "clock"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd"])
def test_the_daemon_reads_what_pyarrow_reads(tmp_path, codec, version):
    # Types that Arrow does not store as they are.
    others = pa.table({"wide": pa.array([0, 86_400_000], pa.date64()), "span": pa.array([1, 2], pa.duration("s")), "second": pa.array([1, 2], pa.timestamp("s")),
                       "unsigned": pa.array([0, 1], pa.uint32())})
    pq.write_table(others, tmp_path / "others.parquet", compression=codec, data_page_version=version, version="1.0")
    found = [[plain(row) for row in penstock.Dataset.parquet(tmp_path / "others.parquet", reader=reader)] for reader in ("daemon", "pyarrow")]
    assert found[0] == found[1]
    os.remove(tmp_path / "others.parquet")
    made = table(500).select(FLAT)
    holes = pa.table({name: pa.concat_arrays([column.slice(0, 7), pa.nulls(5, column.type), column.slice(12)]) for name, column in
                      ((name, made[name].combine_chunks()) for name in FLAT if name != "choice")})
    for number, options in enumerate(({"use_dictionary": False}, {"data_page_size": 500, "write_batch_size": 50}, {"row_group_size": 90, "write_page_checksum": True})):
        pq.write_table(holes, tmp_path / f"{number}.parquet", compression=codec, data_page_version=version, **options)
    pq.write_table(made.select(holes.column_names), tmp_path / "3.parquet", compression=codec, data_page_version=version, row_group_size=200)
    defaults = {"number": -5, "float": 0.5, "half": 1.5, "small": 9, "flag": True, "text": "none", "bytes": b"no", "large": "", "fixed": b"none",
                "at": START, "day": START.date(), "clock": datetime.time(1)}
    datasets = [penstock.Dataset.parquet(str(tmp_path / "*.parquet"), defaults=defaults, reader=reader) for reader in ("daemon", "pyarrow")]
    assert datasets[0].element_spec == datasets[1].element_spec and len(datasets[0]) == len(datasets[1]) == 2000
    assert [plain(row) for row in datasets[0]] == [plain(row) for row in datasets[1]]
    batches = [[plain(batch) for batch in dataset.batch(64)] for dataset in datasets]
    assert batches[0] == batches[1]


def test_repr_says_who_decodes(files, tmp_path):
    def said(*args, **options):
        return repr(penstock.Dataset.parquet(*args, **options))

    path = files / "a.parquet"
    assert "read by the daemon" in said(path, columns=FLAT)
    assert "read by pyarrow, as column 'list' is nested" in said(path, columns=["number", "list"])
    assert "read by pyarrow, as column 'struct' is nested" in said(path, columns=["struct"])
    assert "read by pyarrow, as column 'price' is decimal" in said(path)
    assert "read by pyarrow, as workers= is about worker processes" in said(path, columns="number", workers=2)
    assert "read by pyarrow, as filters= has to look at rows" in said(path, columns="number", filters=[("number", "<", 100)])
    assert "read by the daemon" in said(path, columns="number", filters=[("number", "<", 128)])
    assert "read by pyarrow, as reader='pyarrow' says so" in said(path, columns="number", reader="pyarrow")
    assert "read by pyarrow, as the files are not on this machine" in said(["b.parquet"], columns="number", filesystem=pa.fs.SubTreeFileSystem(str(files), pa.fs.LocalFileSystem()))
    pq.write_table(table(5).select(["number"]), tmp_path / "x.parquet", compression="brotli")
    assert "read by pyarrow, as column 'number' is compressed by BROTLI" in said(tmp_path / "x.parquet")
    pq.write_table(table(5).select(["text"]), tmp_path / "x.parquet", use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    assert "read by pyarrow, as column 'text' is encoded by DELTA_BYTE_ARRAY" in said(tmp_path / "x.parquet")
    pq.write_table(pa.table({"x": pa.array([None, 1], pa.uint64())}), tmp_path / "x.parquet")
    assert "read by pyarrow, as the default of column 'x' is more than 2^63 - 1" in said(tmp_path / "x.parquet", defaults={"x": 1 << 63})
    with pytest.raises(ValueError, match="reader='daemon': pyarrow has to read these files, as column 'list' is nested"):
        penstock.Dataset.parquet(path, columns=["list"], reader="daemon")
    with pytest.raises(ValueError, match="reader is one of auto, daemon, pyarrow, not 'none'"):
        penstock.Dataset.parquet(path, reader="none")


def test_the_daemon_reads_shards_and_what_filters_leave(files):
    for options in ({"num_shards": 3, "shard_index": 1}, {"filters": [("number", ">=", 896)]}, {"filters": [("number", "<", 0)]},
                    {"filters": [[("number", "<", 256)], [("number", ">=", 640)]], "num_shards": 2, "shard_index": 0}):
        found = [numbers(penstock.Dataset.parquet(str(files / "*.parquet"), columns="number", reader=reader, **options)) for reader in ("daemon", "pyarrow")]
        assert found[0] == found[1], options


def test_a_name_of_any_letters(tmp_path):
    made = pa.table({"a.b": [1, 2], "c\\d": [3.0, 4.0], "é '\"": ["x", "y"]})
    pq.write_table(made, tmp_path / "x.parquet")
    found = [plain(row) for row in penstock.Dataset.parquet(tmp_path / "x.parquet", reader="daemon")]
    assert found == [{"a.b": 1, "c\\d": 3.0, "é '\"": b"x"}, {"a.b": 2, "c\\d": 4.0, "é '\"": b"y"}]


def test_a_pass_of_the_daemon_resumes_at_each_row(files):
    def dataset():
        return penstock.Dataset.parquet([files / "a.parquet", files / "b.parquet"], columns=["number", "text"], reader="daemon").repeat(2).batch(7)

    whole = [plain(batch) for batch in dataset()]
    for at in (1, 37, 141, 370):
        iterator = iter(dataset())
        for _ in range(at):
            next(iterator)
        later = iter(dataset())
        later.load_state_dict(iterator.state_dict())
        assert [plain(batch) for batch in later] == whole[at:]


# --- order and resume ---------------------------------------------------------------------------


def test_a_shuffle_is_of_row_groups_and_of_rows_in_a_window(files):
    dataset = penstock.Dataset.parquet(files / "a.parquet", columns="number").global_shuffle(seed=3, row_groups=2)
    assert len(dataset) == ROWS
    first, second = numbers(dataset), numbers(dataset)
    assert sorted(first) == sorted(second) == list(range(ROWS)) and first != second
    # The first rows are of two row groups, well mixed.
    assert len({number // 128 for number in first[:200]}) == 2 and first[:200] != sorted(first[:200])
    again = penstock.Dataset.parquet(files / "a.parquet", columns="number").global_shuffle(seed=3, row_groups=2)
    assert numbers(again) == first
    assert numbers(penstock.Dataset.parquet(files / "a.parquet", columns="number").global_shuffle(seed=4, row_groups=2)) != first
    repeated = numbers(again.repeat(2))
    assert repeated[:ROWS] != repeated[ROWS:] and sorted(repeated[ROWS:]) == list(range(ROWS))


def test_one_row_group_is_shuffled_anew_in_each_epoch(tmp_path):
    pq.write_table(table(50), tmp_path / "x.parquet")
    found = numbers(penstock.Dataset.parquet(tmp_path / "x.parquet", columns="number").global_shuffle(seed=1).repeat(2))
    assert sorted(found[:50]) == sorted(found[50:]) == list(range(50)) and found[:50] != found[50:] and found[:50] != list(range(50))


def test_a_shuffle_may_stay_the_same(files):
    dataset = penstock.Dataset.parquet(files / "a.parquet", columns="number").global_shuffle(seed=3, reshuffle_each_iteration=False)
    found = numbers(dataset.repeat(2))
    assert found[:ROWS] == found[ROWS:] != list(range(ROWS)) and numbers(dataset) == found[:ROWS]


def test_order_does_not_depend_on_workers(files):
    def rows(workers):
        dataset = penstock.Dataset.parquet(str(files / "*.parquet"), columns=["number", "text"], workers=workers)
        return [plain(row) for row in dataset.global_shuffle(seed=5, row_groups=3).batch(7)]

    assert rows(1) == rows(3)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("at", [1, 37, 141, 370])
def test_a_resume_is_exact_to_the_row(files, shuffled, at):
    def dataset():
        made = penstock.Dataset.parquet([files / "a.parquet", files / "b.parquet"], columns=["number", "list"])
        made = made.global_shuffle(seed=5, row_groups=3) if shuffled else made
        return made.repeat(2).padded_batch(7)

    whole = [plain(batch) for batch in dataset()]
    iterator = iter(dataset())
    for _ in range(at):
        next(iterator)
    state = iterator.state_dict()
    later = iter(dataset())
    later.load_state_dict(state)
    assert [plain(batch) for batch in later] == whole[at:]


def test_a_resume_decodes_one_row_group_again(files, tmp_path, monkeypatch):
    monkeypatch.setattr(_parquet, "RowGroups", Logging)
    Logging.log = str(tmp_path / "log")

    def dataset():
        made = penstock.Dataset.parquet(files / "a.parquet", columns="number", workers=1).batch(10)
        options = penstock.Options()
        options.threading.private_threadpool_size = 1
        return made.with_options(options)

    iterator = iter(dataset())
    for _ in range(45):
        batch = next(iterator)
    assert batch["number"].tolist() == list(range(440, 450))
    state = iterator.state_dict()
    iterator.close()
    os.remove(Logging.log)
    later = iter(dataset())
    later.load_state_dict(state)
    assert next(later)["number"].tolist() == list(range(450, 460))
    assert sum(1 for _ in later) == 54
    # Rows 384 to 511 are in number 3, and none comes twice.
    with open(Logging.log) as file:
        # In front of these may stand what the pass that was left was decoding.
        assert [int(line) for line in file][-5:] == [3, 4, 5, 6, 7]


def test_a_cursor_is_of_its_files(files, tmp_path):
    pq.write_table(table(100), tmp_path / "x.parquet")
    iterator = iter(penstock.Dataset.parquet(tmp_path / "x.parquet", columns="number").batch(10))
    next(iterator)
    state = iterator.state_dict()
    pq.write_table(table(101), tmp_path / "x.parquet")
    later = iter(penstock.Dataset.parquet(tmp_path / "x.parquet", columns="number").batch(10))
    with pytest.raises(penstock.FailedPreconditionError):
        later.load_state_dict(state)
        next(later)


def test_shards_are_of_row_groups(files):
    parts = [penstock.Dataset.parquet(files / "a.parquet", columns="number", num_shards=3, shard_index=i) for i in range(3)]
    found = [numbers(part) for part in parts]
    assert [len(part) for part in parts] == [len(part) for part in found] and sorted(sum(found, [])) == list(range(ROWS))
    assert found[1] == [*range(128, 256), *range(512, 640), *range(896, 1000)]
    assert sorted(numbers(parts[1].global_shuffle(seed=1))) == found[1]
    with pytest.raises(TypeError, match="num_shards and shard_index stand together"):
        penstock.Dataset.parquet(files / "a.parquet", num_shards=3)
    with pytest.raises(ValueError, match="shard_index is from 0 to num_shards - 1: 3 of 3"):
        penstock.Dataset.parquet(files / "a.parquet", num_shards=3, shard_index=3)


# --- predicates ---------------------------------------------------------------------------------


CASES = [
    ([("number", ">=", 512)], True),
    ([("number", ">=", 500)], False),
    ([("number", "<", 128)], True),
    ([("number", "<=", 128)], False),
    ([("number", ">", 895)], True),
    ([("number", "=", 77)], False),
    ([("number", "==", -1)], True),
    ([("number", "!=", 2000)], True),
    ([("number", "!=", 5)], False),
    ([("number", "in", [1, 999])], False),
    ([("number", "in", [-1, 5000])], True),
    ([("number", "not in", [-1, 5000])], True),
    ([("number", "not in", [1])], False),
    ([("number", "<", 600), ("number", ">=", 384)], False),
    ([[("number", "<", 128)], [("number", ">=", 896)]], True),
    ([("float", ">", -100.0)], False),  # NaN lies within no bounds
    ([("text", "=", "text 5")], False),
    ([("choice", "in", ["k1"])], False),
    ([("at", ">=", START + datetime.timedelta(seconds=900))], False),
    ([("flag", "=", True)], False),
]


@pytest.mark.parametrize("filters, is_known", CASES, ids=lambda value: repr(value)[:60])
def test_a_predicate_is_exact(files, filters, is_known):
    dataset = penstock.Dataset.parquet(files / "a.parquet", columns="number", filters=filters)
    wanted = table().filter(pq.filters_to_expression(filters))["number"].to_pylist()
    assert numbers(dataset) == wanted
    if is_known:
        assert len(dataset) == len(wanted)
    else:
        with pytest.raises(TypeError, match="length is unknown: .*only the elements tell"):
            len(dataset)


def test_a_predicate_in_a_shuffle(files):
    dataset = penstock.Dataset.parquet(files / "a.parquet", columns="number", filters=[("number", "<", 600), ("number", ">=", 200)])
    assert sorted(numbers(dataset.global_shuffle(seed=1, row_groups=3))) == list(range(200, 600))


def test_row_groups_are_left_out_by_their_statistics(files, tmp_path, monkeypatch):
    monkeypatch.setattr(_parquet, "RowGroups", Logging)
    Logging.log = str(tmp_path / "log")
    dataset = penstock.Dataset.parquet(files / "a.parquet", columns="text", filters=[("number", ">=", 700)], workers=1)
    assert len(list(dataset)) == 300
    assert dataset._shuffled.reader.groups.tolist() == [[0, 5, 1], [0, 6, 0], [0, 7, 0]]


def test_nan_and_null_in_statistics(tmp_path):
    made = pa.table({"x": [1.0, float("nan"), 3.0, None], "n": pa.array([1, 2, None, 4])})
    pq.write_table(made, tmp_path / "x.parquet")
    for filters in ([("x", "<", 10.0)], [("x", "!=", 10.0)], [("n", "<", 10)], [("n", "!=", 10)], [("x", "=", 5.0)]):
        wanted = made.filter(pq.filters_to_expression(filters))
        dataset = penstock.Dataset.parquet(tmp_path / "x.parquet", filters=filters, defaults={"x": -1.0, "n": -1})
        assert np.array([row["n"] for row in dataset]).tolist() == [-1 if n is None else n for n in wanted["n"].to_pylist()]


OF_TYPES = {
    "float": (pa.array([0.1, 0.2, 0.3], pa.float32()), [0.1, np.float32(0.1), 0.25]),
    "double": (pa.array([0.1, 0.2, 0.3]), [0.1, np.float32(0.1)]),
    "decimal": (pa.array([decimal.Decimal(i) / 10 for i in (1, 2, 3)], pa.decimal128(9, 2)), [0.1, 0.3, decimal.Decimal("0.2")]),
    "unsigned": (pa.array([0, 1 << 62, (1 << 63) - 1], pa.uint64()), [0, 5]),
    "binary": (pa.array([b"", b"a", b"\xff"]), [b"a", b"\x80"]),
    "day": (pa.array([0, 1, 2], pa.date32()), [datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 2)]),
    "nanoseconds": (pa.array([1, 2, 3], pa.timestamp("ns")), [np.datetime64(2, "ns"), datetime.datetime(1970, 1, 1)]),
    "zone": (pa.array([0, 1_000_000, 2_000_000], pa.timestamp("us", "America/New_York")), [datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)]),
    "clock": (pa.array([1, 2000, 3001], pa.time64("ns")), [datetime.time(0, 0, 0, 2)]),
    "span": (pa.array([1, 2, 3], pa.duration("us")), [datetime.timedelta(microseconds=2)]),
}


@pytest.mark.parametrize("kind", OF_TYPES)
def test_statistics_say_what_the_rows_say(tmp_path, kind):
    column, values = OF_TYPES[kind]
    made = pa.table({"x": pa.concat_arrays([column, pa.nulls(2, column.type)]), "n": np.arange(5)})
    pq.write_table(made, tmp_path / "x.parquet", row_group_size=1)
    left_out = 0
    for op in ("=", "!=", "<", "<=", ">", ">=", "in", "not in"):
        for value in values:
            filters = [("x", op, [value] if "in" in op else value)]
            reader = penstock.Dataset.parquet(tmp_path / "x.parquet", columns="n", filters=filters)._shuffled.reader
            wanted = [i for i in made.filter(pq.filters_to_expression(filters))["n"].to_pylist() if i < 3]
            kept = reader.groups[:, 1].tolist()
            assert set(wanted) <= set(kept) <= {0, 1, 2}, filters
            assert {place for _, place, looks in reader.groups.tolist() if not looks} <= set(wanted), filters
            left_out += 3 - len(kept)
    assert left_out > 0


OF_OPS = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda value, values: value in values, "not in": lambda value, values: value not in values,
}  # fmt: skip


UINT64 = [0, 5, (1 << 63) - 1, 1 << 63, None, (1 << 63) + 1, (1 << 64) - 1, 7]


@pytest.mark.parametrize("group_rows", [1, 3])
def test_numbers_of_64_bits_without_a_sign_are_compared_as_they_are(tmp_path, group_rows):
    """Python is the oracle: Arrow takes 2**63 and more for out of range beside any integer of Python's."""
    made = pa.table({"x": pa.array(UINT64, pa.uint64()), "n": np.arange(len(UINT64))})
    pq.write_table(made, tmp_path / "x.parquet", row_group_size=group_rows)
    values = [-(1 << 70), -1, 0, 5, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 1, 1 << 64, np.uint64(1 << 63), np.int8(-1), pa.scalar(5)]
    lists = [[-1], [5, 1 << 63], [-1, (1 << 64) - 1, 1 << 64], [0, 5, 7], list(range(1, 100)), [np.uint64(1 << 63)]]
    for op, meets in OF_OPS.items():
        for value in lists if "in" in op else values:
            plain_value = [int(one) for one in value] if "in" in op else int(value.as_py() if isinstance(value, pa.Scalar) else value)
            wanted = [place for place, number in enumerate(UINT64) if number is not None and meets(number, plain_value)]
            reader = penstock.Dataset.parquet(tmp_path / "x.parquet", columns="n", filters=[("x", op, value)])._shuffled.reader
            # What a worker process filters by.
            assert made.filter(_predicates.expression(reader.filters))["n"].to_pylist() == wanted, (op, value)
            assert {place // group_rows for place in wanted} <= set(reader.groups[:, 1].tolist()), (op, value)
            if group_rows == 1:
                # Statistics of one row say what it is.
                assert reader.groups[:, 1].tolist() == wanted and not reader.groups[:, 2].any(), (op, value)


def test_a_filter_of_64_bits_without_a_sign_in_worker_processes(tmp_path):
    pq.write_table(pa.table({"x": pa.array(UINT64, pa.uint64()), "n": np.arange(len(UINT64))}), tmp_path / "x.parquet")
    for filters, wanted in [([("x", ">", 5), ("x", "not in", [7, 1 << 63])], [2, 5, 6]), ([("x", ">=", -1)], [0, 1, 2, 3, 5, 6, 7])]:
        assert [int(row["n"]) for row in penstock.Dataset.parquet(tmp_path / "x.parquet", columns="n", filters=filters)] == wanted


def test_null_meets_no_predicate(tmp_path):
    made = pa.table({"x": pa.array([None, 1, None, None, 2, 3]), "n": np.arange(6)})
    pq.write_table(made, tmp_path / "x.parquet", row_group_size=2)
    for filters, wanted in [([("x", "not in", [1])], [4, 5]), ([("x", "!=", 1)], [4, 5]), ([("x", "not in", [7])], [1, 4, 5])]:
        found = penstock.Dataset.parquet(tmp_path / "x.parquet", filters=filters)
        assert [int(row["n"]) for row in found] == wanted


def test_a_filter_in_files_that_differ(files, tmp_path):
    made = table(10)
    pq.write_table(made.drop_columns(["at"]), tmp_path / "less.parquet")
    pq.write_table(made.set_column(made.column_names.index("at"), "at", made["at"].cast(pa.timestamp("ms"))).select(["at", "small"]), tmp_path / "other.parquet")
    filters = [("at", ">=", START)]
    with pytest.raises(penstock.DataLossError, match="a.parquet has 'at', and .*less.parquet has none; choose others by filters="):
        penstock.Dataset.parquet([files / "a.parquet", tmp_path / "less.parquet"], columns="small", filters=filters)
    with pytest.raises(penstock.DataLossError, match=r"'at' is timestamp\[us\] in .* and timestamp\[ms\] in .*other.parquet"):
        penstock.Dataset.parquet([files / "a.parquet", tmp_path / "other.parquet"], columns="small", filters=filters)


def test_a_set_in_a_filter_is_the_same_stream_in_each_process(files):
    made = f"penstock.Dataset.parquet({str(files / 'b.parquet')!r}, 'number', [('text', 'in', {{'text 1', 'text 2', 'text 3'}})])"
    code = f"import penstock; print({made}._shuffled.version)"
    versions = {subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout for seed in "123"}
    assert len(versions) == 1


@pytest.mark.parametrize(
    "filters, error, text",
    [
        ([], ValueError, "filters is an empty list"),
        ("number > 5", TypeError, "filters are a list of"),
        ([("none", "=", 1)], ValueError, "there is no column 'none'"),
        ([("number", "~", 1)], ValueError, "the op of column 'number' is one of"),
        ([("number", "in", 1)], TypeError, "takes a list of values"),
        ([("number", "=", None)], ValueError, "compared with None"),
        ([("number", "=", "x")], (TypeError, penstock.InvalidArgumentError), "filters"),
        ([("number", "in", [1, None])], ValueError, "has a None"),
        ([("number", ">=", 1 << 63)], TypeError, "types do not take"),
        ([("number", "in", [1 << 63])], TypeError, "types do not take"),
        ([("small", "=", 1 << 64)], TypeError, "types do not take"),
        ([("at", ">", datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc))], TypeError, "types do not take"),
        ([("list", "=", 1)], TypeError, "predicates are about numbers, times and strings"),
        ([[("number", "=")]], TypeError, "expected \\(column, op, value\\)"),
    ],
)
def test_predicates_that_are_none(files, filters, error, text):
    with pytest.raises(error, match=text):
        penstock.Dataset.parquet(files / "a.parquet", filters=filters)


# --- nulls --------------------------------------------------------------------------------------


def nulls():
    return pa.table(
        {
            "n": pa.array([1, None, 3]),
            "s": pa.array(["a", "b", None]),
            "flag": pa.array([None, True, False]),
            "l": pa.array([[1], None, [2, None]], pa.list_(pa.int32())),
            "f": pa.array([[1.0, None], None, [2.0, 3.0]], pa.list_(pa.float32(), 2)),
            "st": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
            "ll": pa.array([[[1], None], None, [[None, 2]]], pa.list_(pa.list_(pa.int64()))),
            "ls": pa.array([[{"a": 1}, {"a": None}], None, []], pa.list_(pa.struct([("a", pa.int64())]))),
        }
    )


def test_nulls_have_defaults(tmp_path):
    pq.write_table(nulls(), tmp_path / "x.parquet")
    defaults = {"n": -1, "s": "none", "flag": True, "l": 7, "f": 0.5, "st": {"x": 9}, "ll": 8, "ls": {"a": 6}}
    rows = [plain(row) for row in penstock.Dataset.parquet(tmp_path / "x.parquet", defaults=defaults)]
    assert [row["n"] for row in rows] == [1, -1, 3] and [row["s"] for row in rows] == [b"a", b"b", b"none"]
    assert [row["flag"] for row in rows] == [True, True, False]
    assert [row["l"] for row in rows] == [[1], [], [2, 7]]
    assert [row["f"] for row in rows] == [[1.0, 0.5], [0.5, 0.5], [2.0, 3.0]]
    assert [row["st"]["x"] for row in rows] == [1, 9, 9]
    assert [row["ll"] for row in rows] == [
        {"values": [1], "row_splits": [0, 1, 1]},
        {"values": [], "row_splits": [0]},
        {"values": [8, 2], "row_splits": [0, 2]},
    ]
    assert [row["ls"]["a"] for row in rows] == [[1, 6], [], []]


@pytest.mark.parametrize("column, path, row", [("n", "n", 1), ("s", "s", 2), ("flag", "flag", 0), ("l", "l", 1), ("f", "f", 1), ("st", "st.x", 1), ("ll", "ll", 1)])
def test_a_null_without_a_default_has_an_address(tmp_path, column, path, row):
    pq.write_table(pa.concat_tables([nulls().slice(0, 0), nulls()]), tmp_path / "x.parquet")
    with pytest.raises(penstock.DataLossError, match=rf"column '{path}' is null in row {row} of row group 0 of .*x.parquet: say what stands for null"):
        list(penstock.Dataset.parquet(tmp_path / "x.parquet", columns=[column], reader="pyarrow"))
    if column in ("n", "s", "flag"):
        with pytest.raises(penstock.DataLossError, match=rf'"{column}": the value is null, and has no default.*x.parquet, row {row} of the file, row {row} of row group 0'):
            list(penstock.Dataset.parquet(tmp_path / "x.parquet", columns=[column], reader="daemon"))


def test_a_row_group_that_fails_may_be_left_out(tmp_path):
    made = pa.table({"number": pa.array([None if i == 25 else i for i in range(40)], pa.int64())})
    pq.write_table(made, tmp_path / "x.parquet", row_group_size=10)
    for reader, wanted in (("pyarrow", [*range(20), *range(30, 40)]), ("daemon", [*range(25), *range(26, 40)])):
        with pytest.warns(Warning, match="left out"):
            found = numbers(penstock.Dataset.parquet(tmp_path / "x.parquet", reader=reader).ignore_errors())
        assert found == wanted


def test_defaults_that_are_none(tmp_path):
    pq.write_table(nulls(), tmp_path / "x.parquet")
    with pytest.raises(TypeError, match="the default of column 'n', int64, cannot be 'x'"):
        penstock.Dataset.parquet(tmp_path / "x.parquet", defaults={"n": "x"})
    with pytest.raises(TypeError, match="the default of 'st' is a dict"):
        penstock.Dataset.parquet(tmp_path / "x.parquet", defaults={"st": 1})
    with pytest.raises(ValueError, match="there is no column 'none' among those that are read"):
        penstock.Dataset.parquet(tmp_path / "x.parquet", defaults={"none": 1})


def test_decimals_as_they_are_stored(tmp_path):
    values = [decimal.Decimal("-1.25"), decimal.Decimal("92233720368547758.07")]
    pq.write_table(pa.table({"d": pa.array(values, pa.decimal128(30, 2))}), tmp_path / "x.parquet")
    found = [int(row["d"]) for row in penstock.Dataset.parquet(tmp_path / "x.parquet", decimals="int64")]
    assert found == [-125, 9223372036854775807]
    pq.write_table(pa.table({"d": pa.array([decimal.Decimal("92233720368547758.08")], pa.decimal128(30, 2))}), tmp_path / "y.parquet")
    with pytest.raises(penstock.DataLossError, match="more digits than an int64"):
        list(penstock.Dataset.parquet(tmp_path / "y.parquet", decimals="int64"))
    with pytest.raises(ValueError, match="decimals become one of"):
        penstock.Dataset.parquet(tmp_path / "x.parquet", decimals="float32")


# --- files --------------------------------------------------------------------------------------


def test_files_that_are_none(files, tmp_path):
    whole = (files / "b.parquet").read_bytes()
    for content, text in [
        (b"", "it is empty"),
        (b"PAR1", "it has 4 bytes"),
        (whole[:-1000], "found b'PAR1' and .*it was cut, or is still being written"),
        (b"hello world, a text", "it is of another format"),
        (b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", "a footer of 2147483647 bytes"),
        (b"PARE" + bytes(20) + b"PARE", "is encrypted"),
        (b"PAR1" + bytes(50) + (50).to_bytes(4, "little") + b"PAR1", "the footer is damaged"),
    ]:
        (tmp_path / "x.parquet").write_bytes(content)
        with pytest.raises(penstock.DataLossError, match=text):
            penstock.Dataset.parquet(tmp_path / "x.parquet")


def test_damaged_pages_are_an_error_of_their_row_group(files, tmp_path):
    whole = bytearray((files / "a.parquet").read_bytes())
    column = pq.read_metadata(files / "a.parquet").row_group(3).column(0)
    place = column.dictionary_page_offset or column.data_page_offset
    whole[place : place + column.total_compressed_size] = bytes(column.total_compressed_size)
    (tmp_path / "x.parquet").write_bytes(whole)
    for reader, text in (("pyarrow", "row group 3 of .*x.parquet is damaged"), ("daemon", f'"number": the header of a page is not sound.*x.parquet, offset {place}')):
        with pytest.raises(penstock.DataLossError, match=text):
            list(penstock.Dataset.parquet(tmp_path / "x.parquet", columns="number", reader=reader))
        with pytest.warns(Warning, match="left out"):
            assert len(list(penstock.Dataset.parquet(tmp_path / "x.parquet", columns="number", reader=reader).ignore_errors())) == ROWS - 128


def test_flipped_bits_crash_nothing(files, tmp_path):
    whole = (files / "b.parquet").read_bytes()
    random = np.random.default_rng(7)
    ends = 0
    for _ in range(8):
        content = bytearray(whole)
        for place in random.integers(4, len(whole) - 8, 3):
            content[place] ^= 1 << random.integers(8)
        (tmp_path / "x.parquet").write_bytes(content)
        try:
            ends += len(list(penstock.Dataset.parquet(tmp_path / "x.parquet", columns=["number", "text", "list"]))) == 300
        except (penstock.DataLossError, TypeError, ValueError):
            pass
    # The daemon lives, and reads the file that is whole.
    assert len(list(penstock.Dataset.parquet(files / "b.parquet", columns="number"))) == 300


def test_files_of_different_columns(files, tmp_path):
    made = table(10)
    pq.write_table(made.set_column(0, "number", made["number"].cast(pa.int32())), tmp_path / "narrow.parquet")
    pq.write_table(made.drop_columns(["text"]), tmp_path / "less.parquet")
    with pytest.raises(penstock.DataLossError, match="'number' is int64 in .*a.parquet and int32 in .*narrow.parquet"):
        penstock.Dataset.parquet([files / "a.parquet", tmp_path / "narrow.parquet"])
    with pytest.raises(penstock.DataLossError, match="a.parquet has 'text', and .*less.parquet has none; choose others by columns="):
        penstock.Dataset.parquet([files / "a.parquet", tmp_path / "less.parquet"])
    assert len(penstock.Dataset.parquet([files / "a.parquet", tmp_path / "less.parquet"], columns=["number"])) == 1010


def test_strings_of_other_types_in_a_window(tmp_path):
    for number, kind in enumerate((pa.string(), pa.large_string(), pa.binary(), pa.binary(1))):
        pq.write_table(pa.table({"s": pa.array([f"{number}"], pa.string()).cast(pa.binary()).cast(kind)}), tmp_path / f"{number}.parquet")
    dataset = penstock.Dataset.parquet(str(tmp_path / "*.parquet"))
    assert [bytes(row["s"]) for row in dataset] == [b"0", b"1", b"2", b"3"]
    assert sorted(bytes(row["s"]) for row in dataset.global_shuffle(seed=1)) == [b"0", b"1", b"2", b"3"]


def test_two_columns_of_a_name_in_a_later_file(files, tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["number", "number"]), tmp_path / "x.parquet")
    with pytest.raises(penstock.DataLossError, match="x.parquet has two columns 'number'"):
        penstock.Dataset.parquet([files / "b.parquet", tmp_path / "x.parquet"], columns="number")


def test_a_column_of_which_no_tensor_is_made(tmp_path):
    pq.write_table(pa.table({"x": pa.array([["a"], []]), "y": [1, 2]}), tmp_path / "x.parquet")
    with pytest.raises(TypeError, match="column 'x' is list<.*string.*, of which no tensor is made: leave it out by columns="):
        penstock.Dataset.parquet(tmp_path / "x.parquet")
    assert len(list(penstock.Dataset.parquet(tmp_path / "x.parquet", columns="y"))) == 2


def test_a_file_that_has_changed(files, tmp_path):
    shutil.copy(files / "a.parquet", tmp_path / "x.parquet")
    by_pyarrow, by_daemon = (penstock.Dataset.parquet(tmp_path / "x.parquet", columns="number", reader=reader) for reader in ("pyarrow", "daemon"))
    shutil.copy(files / "b.parquet", tmp_path / "x.parquet")
    with pytest.raises(penstock.DataLossError, match="x.parquet has changed since the dataset was made: it had .* bytes"):
        list(by_pyarrow)
    with pytest.raises(penstock.DataLossError, match="the file has changed since the dataset was made: it has another footer.*x.parquet"):
        list(by_daemon)
    os.remove(tmp_path / "x.parquet")
    with pytest.raises(penstock.DataLossError, match="x.parquet was there when the dataset was made, and is gone"):
        list(by_pyarrow.skip(0))
    with pytest.raises(penstock.NotFoundError, match="x.parquet"):
        list(by_daemon.skip(0))


def test_filesystems(files):
    local = pa.fs.SubTreeFileSystem(str(files), pa.fs.LocalFileSystem())
    assert numbers(penstock.Dataset.parquet(["b.parquet"], columns="number", filesystem=local)) == list(range(300))
    assert numbers(penstock.Dataset.parquet([f"file://{files}/b.parquet"], columns="number")) == list(range(300))
    with pytest.raises(ValueError, match="paths are all local or all addresses"):
        penstock.Dataset.parquet([f"file://{files}/b.parquet", str(files / "a.parquet")])


def test_files_of_fsspec(files):
    fsspec = pytest.importorskip("fsspec")
    local = fsspec.filesystem("file")
    assert numbers(penstock.Dataset.parquet(f"{files}/*.parquet", columns="number", filesystem=local)) == [*range(1000), *range(300)]


def test_what_else_is_refused(files):
    dataset = penstock.Dataset.parquet(files / "a.parquet", columns="number")
    with pytest.raises(ValueError, match="of Parquet files row_groups says how many"):
        dataset.global_shuffle(block_size=3)
    with pytest.raises(ValueError, match="row_groups is for global_shuffle directly behind Dataset.parquet"):
        penstock.Dataset.range(5).global_shuffle(row_groups=2)
    with pytest.raises(ValueError, match="row_groups"):
        dataset.global_shuffle(row_groups=0)
    # A copy, and one with options, shuffle as well.
    assert sorted(numbers(dataset.with_options(penstock.Options()).global_shuffle(seed=1))) == list(range(ROWS))
