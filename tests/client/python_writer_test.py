"""penstock.io.TFRecordWriter and serialize_example: the bytes of TensorFlow and of `penstock write`, and what is refused."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import zlib

import numpy as np
import pytest

import penstock

GOLDENS = pathlib.Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(GOLDENS))

import record_cases  # noqa: E402

TENSORFLOW = json.loads((GOLDENS / "records.json").read_text())
PLAIN = bytes.fromhex(TENSORFLOW["plain"].replace("LAST", record_cases.RECORDS[-1].hex()))


def write(path, options=None):
    with penstock.TFRecordWriter(path, options) as writer:
        for record in record_cases.RECORDS:
            writer.write(record)
    return path.read_bytes()


def records(path, compression=None):
    return [element.item() for element in penstock.TFRecordDataset(path, compression)]


@pytest.mark.parametrize("features, golden", list(zip(record_cases.CASES, TENSORFLOW["examples"])), ids=str)
def test_examples_are_those_of_tensorflow(features, golden):
    assert penstock.io.serialize_example(features).hex() == golden


def test_files_are_those_of_tensorflow(tmp_path):
    assert len(TENSORFLOW["examples"]) == len(record_cases.CASES)
    assert write(tmp_path / "plain") == PLAIN
    # The compressed bytes are the affair of zlib's version.
    assert gzip.decompress(write(tmp_path / "gzip", "GZIP")) == PLAIN
    assert gzip.decompress(bytes.fromhex(TENSORFLOW["files"]["GZIP"])) == PLAIN
    assert zlib.decompress(write(tmp_path / "zlib", penstock.TFRecordOptions("ZLIB", compression_level=9))) == PLAIN
    assert zlib.decompress(bytes.fromhex(TENSORFLOW["files"]["ZLIB"])) == PLAIN


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_the_reader_takes_what_is_written(tmp_path, compression):
    write(tmp_path / "file", penstock.io.TFRecordOptions(compression_type=compression, mem_level=8))
    dataset = penstock.TFRecordDataset(tmp_path / "file", compression_type=compression)
    assert [element.item() for element in dataset] == record_cases.RECORDS


def test_records_are_those_of_penstock_write(tmp_path):
    rows = [
        {"ids": [3, -70, 2**62], "score": 0.1, "name": "grün", "tags": ["a", ""], "b": True, "a": 1, "ab": 2},
        {"ids": [-(2**63)], "score": -2.5, "name": "", "tags": ["c"], "many": list(range(-300, 70_000, 77))},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    program = pathlib.Path(os.environ["PENSTOCK_BIN"]) / "penstock"
    subprocess.run([program, "write", tmp_path / "native", "--jsonl", tmp_path / "rows.jsonl"], check=True, stdout=subprocess.DEVNULL)
    with penstock.io.TFRecordWriter(str(tmp_path / "python")) as writer:
        for row in rows:
            writer.write(penstock.io.serialize_example(row))
    assert (tmp_path / "python").read_bytes() == (tmp_path / "native").read_bytes()


def test_values_come_back(tmp_path):
    example = {"image": np.arange(12, dtype=np.uint8).reshape(2, 2, 3), "box": (0.5, np.float64(0.25)), "text": ["a", b"b"], "empty": []}
    with penstock.TFRecordWriter(tmp_path / "file") as writer:
        writer.write(penstock.io.serialize_example(example))
    features = {
        "image": penstock.io.FixedLenFeature([2, 2, 3], penstock.int64),
        "box": penstock.io.FixedLenFeature([2], penstock.float32),
        "text": penstock.io.FixedLenFeature([2], penstock.string),
        # Of a list without values nobody knows the type.
        "empty": penstock.io.FixedLenFeature([], penstock.string, default_value="none"),
    }
    (found,) = penstock.TFRecordDataset(tmp_path / "file").parse_example(features)
    assert found["image"].tolist() == example["image"].tolist()
    assert found["box"].tolist() == [0.5, 0.25]
    assert list(found["text"]) == [b"a", b"b"]
    assert found["empty"].item() == b"none"


def test_a_file_has_its_name_when_it_is_closed(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    writer = penstock.TFRecordWriter(path)
    writer.write(bytearray(record_cases.RECORDS[1]))
    writer.write(memoryview(b"0123456"))
    assert path.read_bytes() == b"before"
    writer.flush()
    assert records(f"{path}.partial") == [b"x", b"0123456"]
    writer.close()
    writer.close()
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(penstock.FailedPreconditionError, match="is closed"):
        writer.write(b"")
    with pytest.raises(penstock.FailedPreconditionError, match="is closed"):
        writer.flush()


def test_a_file_stays_in_the_folder_where_it_was_opened(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with penstock.TFRecordWriter("file") as writer:
        writer.write(b"one")
        monkeypatch.chdir(tmp_path / "other")
    assert records(tmp_path / "file") == [b"one"] and os.listdir(tmp_path / "other") == []


def test_an_exception_leaves_what_is_there_under_the_name_of_a_part(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with penstock.TFRecordWriter(tmp_path / "file") as writer:
            writer.write(b"one")
            1 / 0
    assert os.listdir(tmp_path) == ["file.partial"]
    assert records(tmp_path / "file.partial") == [b"one"]


def test_a_flush_of_a_compressed_file_can_be_read(tmp_path):
    with penstock.TFRecordWriter(tmp_path / "file", "ZLIB") as writer:
        writer.write(b"one")
        writer.flush()
        assert zlib.decompressobj().decompress((tmp_path / "file.partial").read_bytes())[12:15] == b"one"
        writer.write(b"two")
    assert records(tmp_path / "file", "ZLIB") == [b"one", b"two"]


def test_who_forgets_to_close_is_told(tmp_path):
    writer = penstock.TFRecordWriter(tmp_path / "file")
    writer.write(b"one")
    with pytest.warns(ResourceWarning, match="not closed"):
        del writer
    assert records(tmp_path / "file") == [b"one"]


def test_what_is_no_record(tmp_path):
    with penstock.TFRecordWriter(tmp_path / "file") as writer:
        with pytest.raises(TypeError, match="a record is bytes, not str: encode"):
            writer.write("text")
        with pytest.raises(TypeError, match="serialize_example"):
            writer.write({"x": 1})
        with pytest.raises(TypeError, match="not int"):
            writer.write(1)
        with pytest.raises(penstock.InvalidArgumentError, match="record longer than limit: 268435457 > 268435456 bytes .*record 0"):
            writer.write(bytes((256 << 20) + 1))
    with pytest.raises(ValueError, match="compression_type is None, GZIP or ZLIB: 'ZSTD'"):
        penstock.TFRecordWriter(tmp_path / "other", "ZSTD")
    with pytest.raises(FileNotFoundError):
        penstock.TFRecordWriter(tmp_path / "no" / "file")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "value, error, words",
    [
        (None, TypeError, "'x' is None: leave it out"),
        ({"y": 1}, TypeError, "'x' holds a dict"),
        ([{"y": 1}], TypeError, "'x' holds a dict"),
        ([1, None], TypeError, "'x' holds a NoneType"),
        (["a", 1], TypeError, "'x' holds strings and an int"),
        ([1, "a"], TypeError, "'x' holds strings and an int"),
        (["a", 1.5], TypeError, "'x' holds strings and a float"),
        ([[1], [2, 3]], TypeError, "lists of several lengths"),
        (1j, TypeError, "complex128"),
        (2**63, ValueError, "integer beyond int64: 9223372036854775808"),
        (2**64, ValueError, "integer beyond int64: 18446744073709551616"),
        ([0, -(2**63) - 1], ValueError, "integer beyond int64: -9223372036854775809"),
        ([1, 2**63], ValueError, "integer beyond int64: 9223372036854775808"),
        (1e39, ValueError, "number beyond float32"),
        ([2**130, 1.5], ValueError, "number beyond float32"),
        ([-(10**400), 1.5], ValueError, "number beyond float32: -1000"),
        ([np.uint64(2**63), -1], ValueError, "integer beyond int64: 9223372036854775808"),
        ([[np.uint64(1)], [2**70]], ValueError, "integer beyond int64: 1180591620717411303424"),
        (np.array([1, 2**70], object), ValueError, "integer beyond int64: 1180591620717411303424"),
        (np.array([1, 2**63], np.uint64), ValueError, "integer beyond int64"),
    ],
)
def test_what_an_example_cannot_hold(value, error, words):
    with pytest.raises(error, match=words):
        penstock.io.serialize_example({"x": value})


@pytest.mark.parametrize(
    "value, same",
    [
        ([np.uint64(5), -1], [5, -1]),
        ([np.uint64(2**63 - 1), np.int8(-1)], [2**63 - 1, -1]),
        ([[np.uint64(5)], [-1]], [5, -1]),
        ((np.array([5, 6], np.uint64), np.array([-1, True])), [5, 6, -1, 1]),
        (np.array([5, np.uint64(6), True], object), [5, 6, 1]),
        ([2**70, 1.5], [2.0**70, 1.5]),
        ([np.uint64(5), 0.5, -1], [5.0, 0.5, -1.0]),
    ],
)
def test_integers_of_several_types_stay_integers_and_floats_make_floats_of_them(value, same):
    assert penstock.io.serialize_example({"x": value}) == penstock.io.serialize_example({"x": same})


def test_names_are_texts():
    with pytest.raises(TypeError, match="name is a str, not 1"):
        penstock.io.serialize_example({1: 2})
    with pytest.raises(TypeError, match="features are a dict"):
        penstock.io.serialize_example([1])


def test_strings_in_nested_lists_keep_their_zeros():
    flat = penstock.io.serialize_example({"x": [b"a\0", b"\0", b"long\0\0", "t\0"]})
    assert penstock.io.serialize_example({"x": [[b"a\0", b"\0"], [b"long\0\0", "t\0"]]}) == flat
    assert penstock.io.serialize_example({"x": (["a\0", "\0"], ["long\0\0", "t\0"])}) == flat
    for wrong in ([["a", 1]], [[1, "a"]]):
        with pytest.raises(TypeError, match="holds strings and an int"):
            penstock.io.serialize_example({"x": wrong})


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_a_forked_child_that_drops_a_writer_leaves_the_file_to_its_parent(tmp_path, compression):
    path = tmp_path / "forked"
    script = f"""
import os, penstock
writer = penstock.TFRecordWriter({str(path)!r}, {compression!r})
writer.write(b"one")
child = os.fork()
if child == 0:
    del writer
    os._exit(os.path.exists({str(path)!r}))
assert os.waitpid(child, 0)[1] == 0
writer.write(b"two")
writer.close()
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert records(path, compression) == [b"one", b"two"]


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("leaves", ["sys.exit(0)", "1 / 0", "pass", "writer.close()"])
def test_a_forked_child_that_leaves_a_with_leaves_the_file_to_its_parent(tmp_path, compression, leaves):
    path = tmp_path / "forked"
    script = f"""
import os, sys, penstock
with penstock.TFRecordWriter({str(path)!r}, {compression!r}) as writer:
    writer.write(b"one")
    child = os.fork()
    if child == 0:
        for use in (lambda: writer.write(b"lost"), writer.flush):
            try:
                use()
            except penstock.FailedPreconditionError as error:
                print(str(error).partition(" belongs to process ")[2].partition(", ")[2], flush=True)
        {leaves}
    else:
        os.waitpid(child, 0)
        assert not os.path.exists({str(path)!r})
        writer.write(b"two")
"""
    printed = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    assert printed == 2 * "which forked this one: each process writes a file of its own\n"
    assert records(path, compression) == [b"one", b"two"] and os.listdir(tmp_path) == ["forked"]


def test_writers_of_one_path_have_parts_of_their_own(tmp_path):
    path = tmp_path / "file"
    first, second = penstock.TFRecordWriter(path), penstock.TFRecordWriter(path)
    first.write(b"a" * 10)
    first.flush()
    second.write(b"b")
    assert sorted(os.listdir(tmp_path)) == ["file.partial", "file.partial-2"]
    second.close()
    assert records(path) == [b"b"]
    first.write(b"c")
    first.close()
    assert records(path) == [b"a" * 10, b"c"] and os.listdir(tmp_path) == ["file"]
    # What nobody writes any more is in nobody's way.
    (tmp_path / "file.partial").write_bytes(b"x" * 1000)
    write(path)
    assert records(path) == record_cases.RECORDS and os.listdir(tmp_path) == ["file"]


def test_what_is_no_file_stays(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("fifo")
    for name, kind in ("fifo", "a FIFO"), ("folder", "a folder"), ("link", "a FIFO"):
        with pytest.raises(penstock.InvalidArgumentError, match=f"takes the place of what is there: .*/{name} is {kind}"):
            penstock.TFRecordWriter(tmp_path / name)
    writer = penstock.TFRecordWriter(tmp_path / "later")
    os.mkfifo(tmp_path / "later")
    with pytest.raises(penstock.InvalidArgumentError, match="later is a FIFO"):
        writer.close()
    assert sorted(os.listdir(tmp_path)) == ["fifo", "folder", "later", "later.partial", "link"]


@pytest.mark.parametrize("exists", [False, True])
def test_what_a_link_points_to_is_written(tmp_path, exists):
    (tmp_path / "folder").mkdir()
    if exists:
        (tmp_path / "folder" / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("folder/file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and records(tmp_path / "folder" / "file") == record_cases.RECORDS
    assert sorted(os.listdir(tmp_path)) == ["folder", "link"] and os.listdir(tmp_path / "folder") == ["file"]
