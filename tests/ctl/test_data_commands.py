"""`penstock make-sample` and `penstock write` as a user types them: exit codes, messages, files."""

import os
import pathlib
import struct
import subprocess

import pytest

PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve() / "penstock"


def penstock(folder, *arguments):
    return subprocess.run([PENSTOCK, *arguments], cwd=folder, capture_output=True, text=True)


def records(path):
    data = pathlib.Path(path).read_bytes()
    offset, found = 0, []
    while offset < len(data):
        (length,) = struct.unpack_from("<Q", data, offset)
        found.append(data[offset + 12 : offset + 12 + length])
        offset += length + 16
    return found


def test_chess_is_dealt_to_shards_by_turns(tmp_path):
    done = penstock(tmp_path, "make-sample", "chess", "--records", "11", "--shards", "4", "--out", "a/b")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "wrote 11 records in 4 shards to a/b\n"
    shards = sorted((tmp_path / "a/b").iterdir())
    assert [shard.name for shard in shards] == [f"chess-0000{i}-of-00004.tfrecord" for i in range(4)]
    assert [len(records(shard)) for shard in shards] == [3, 3, 3, 2]


def test_json_lines_are_packed(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"name": "opera", "year": 1858}\n')
    done = penstock(tmp_path, "write", "out.tfrecord", "--jsonl", "in.jsonl")
    assert done.returncode == 0, done.stderr
    (record,) = records(tmp_path / "out.tfrecord")
    assert b"\x04name" in record and b"opera" in record and b"\x04year" in record and b"\xc2\x0e" in record


def test_files_are_packed(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text("this is " + name)
    done = penstock(tmp_path, "write", "out.tfrecord", "--files", "*.txt")
    assert done.returncode == 0, done.stderr
    first, second = records(tmp_path / "out.tfrecord")
    assert b"this is a.txt" in first and b"this is b.txt" in second


@pytest.mark.parametrize("arguments, code, message", [
    (["write", "out", "--files", "*.none"], 1, 'no file matches "*.none"'),
    (["write", "out", "--jsonl", "none.jsonl"], 1, "cannot open none.jsonl"),
    (["write", "/nowhere/out", "--files", "*"], 1, "cannot create /nowhere/out.partial"),
    (["make-sample", "flowers", "--out", "x", "--photos", "present.txt"], 1, "(present.txt)"),
    (["write", "out"], 2, ""),
    (["write", "out", "--files", "x", "--jsonl", "y"], 2, ""),
    (["make-sample", "chess"], 2, "--out"),
    (["make-sample", "chess", "--out", "x", "--records", "0"], 2, "--records"),
    (["make-sample", "checkers", "--out", "x"], 2, ""),
])
def test_errors_say_what_is_wrong(tmp_path, arguments, code, message):
    (tmp_path / "present.txt").write_text("no photograph")
    done = penstock(tmp_path, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
