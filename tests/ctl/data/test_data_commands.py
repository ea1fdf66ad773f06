"""`penstock make-sample` and `penstock write` as a user types them: exit codes, messages, files."""

import gzip
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
from programs import on_a_terminal  # noqa: E402

PENSTOCK = pathlib.Path(os.environ.get("PENSTOCK_BIN", "build/release/bin")).resolve() / "penstock"
GOLDEN = pathlib.Path(__file__).parents[2] / "golden"


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


@pytest.mark.parametrize("name", ["chess", "flowers", "segmentation"])
def test_the_spec_of_a_sample_reads_its_files(tmp_path, name):
    """Without a photograph: flowers are drawn."""
    out = 'a "b"' if name == "chess" else f"made/{name}"
    done = penstock(tmp_path, "make-sample", name, "--records", "5", "--shards", "2", "--out", out, "--spec", "its.textproto")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"wrote 5 records in 2 shards to {out}\nwrote their pipeline's spec to its.textproto\n"
    done = penstock(tmp_path, "validate", "its.textproto")
    assert done.returncode == 0, done.stderr
    done = penstock(tmp_path, "run", "its.textproto", "--steps", "1")
    assert done.returncode == 0 or (name == "chess" and "drop_remainder" in done.stderr), done.stderr


def test_a_spec_that_cannot_be_written(tmp_path):
    done = penstock(tmp_path, "make-sample", "chess", "--records", "1", "--out", "x", "--spec", "no/folder/its.textproto")
    assert done.returncode == 1 and "no/folder/its.textproto" in done.stderr and not done.stdout


def test_json_lines_are_packed(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"name": "opera", "year": 1858}\n')
    done = penstock(tmp_path, "write", "out.tfrecord", "--jsonl", "in.jsonl")
    assert done.returncode == 0, done.stderr
    (record,) = records(tmp_path / "out.tfrecord")
    assert b"\x04name" in record and b"opera" in record and b"\x04year" in record and b"\xc2\x0e" in record


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "18446744073709551615"])
def test_integers_beyond_int64_are_no_fractions(tmp_path, number):
    (tmp_path / "in.jsonl").write_text(f'{{"x": 1}}\n{{"x": {number}}}\n')
    done = penstock(tmp_path, "write", "out.tfrecord", "--jsonl", "in.jsonl")
    assert done.returncode == 1
    assert f"integer beyond int64: {number} (in.jsonl, line 2" in done.stderr


def test_lines_of_any_length_are_read_up_to_a_limit(tmp_path):
    # 65,535 bytes are what is read at a time.
    for size in (0, 65_533, 65_534, 65_535, 65_536, 200_000):
        text = "x" * size
        for end in ("", "\n", "\n\n"):
            (tmp_path / "in.jsonl").write_text(f'{{"x": "{text}"}}\n{{"x": "{text}b"}}{end}')
            done = penstock(tmp_path, "write", "out.tfrecord", "--jsonl", "in.jsonl")
            assert done.returncode == 0, done.stderr
            first, second = records(tmp_path / "out.tfrecord")
            assert text.encode() in first and text.encode() + b"b" in second and len(first) < len(second)
    with open(tmp_path / "in.jsonl", "wb") as file:
        file.write(b'{"x": 1}\n')
        file.truncate((257 << 20) + 9)
    done = penstock(tmp_path, "write", "out.tfrecord", "--jsonl", "in.jsonl")
    assert done.returncode == 1 and "a line longer than the limit of 268435456 bytes (in.jsonl, line 2)" in done.stderr


def test_lists_in_lists_are_refused_however_deep(tmp_path):
    depth = 300_000
    (tmp_path / "in.jsonl").write_text('{"x": ' + "[" * depth + "]" * depth + "}\n")
    done = penstock(tmp_path, "write", "out.tfrecord", "--jsonl", "in.jsonl")
    assert done.returncode == 1
    assert "a list in a list" in done.stderr


def test_what_is_written_goes_through_links_and_pipes(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"x": 1}\n')
    (tmp_path / "real.tfrecord").write_bytes(b"before")
    (tmp_path / "link.tfrecord").symlink_to("real.tfrecord")
    assert penstock(tmp_path, "write", "link.tfrecord", "--jsonl", "in.jsonl").returncode == 0
    assert (tmp_path / "link.tfrecord").is_symlink()
    assert len(records(tmp_path / "real.tfrecord")) == 1
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opened for both, so that neither end waits for the other.
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        assert penstock(tmp_path, "write", "pipe", "--jsonl", "in.jsonl").returncode == 0
        assert stat.S_ISFIFO(os.stat(pipe).st_mode)
        assert os.read(end, 4096) == (tmp_path / "real.tfrecord").read_bytes()
    finally:
        os.close(end)
    assert sorted(path.name for path in tmp_path.iterdir() if ".partial" in path.name) == []


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"x": 1}\n')
    for name in ("d1.tfrecord", "d[1].tfrecord"):
        assert penstock(tmp_path, "write", name, "--jsonl", "in.jsonl").returncode == 0
    (tmp_path / "d[1].tfrecord").write_bytes(b"damaged")
    done = penstock(tmp_path, "verify", "d[1].tfrecord")
    assert done.returncode == 1 and "d[1].tfrecord" in done.stdout + done.stderr


def test_files_are_packed(tmp_path):
    for name in ("b.txt", "a.txt"):
        (tmp_path / name).write_text("this is " + name)
    done = penstock(tmp_path, "write", "out.tfrecord", "--files", "*.txt")
    assert done.returncode == 0, done.stderr
    first, second = records(tmp_path / "out.tfrecord")
    assert b"this is a.txt" in first and b"this is b.txt" in second


def make_chess(tmp_path):
    assert penstock(tmp_path, "make-sample", "chess", "--records", "100", "--shards", "2", "--out", "data").returncode == 0
    return tmp_path / "data/chess-00000-of-00002.tfrecord", tmp_path / "data/chess-00001-of-00002.tfrecord"


def test_sound_files_are_verified(tmp_path):
    make_chess(tmp_path)
    done = penstock(tmp_path, "verify", "data/*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("verified 100 records of 2 files, ")
    assert done.stdout.endswith(": all is well\n")
    assert done.stderr == ""  # no progress bar where there is no terminal


def make_photo(path, width=640, height=480):
    """A JPEG that says to be large; what it lacks is grey."""
    data = bytearray((GOLDEN / "images" / "rgb_photo.jpg").read_bytes())
    frame = data.index(b"\xff\xc0")  # SOF0: length, precision, height, width
    struct.pack_into(">HH", data, frame + 5, height, width)
    path.write_bytes(data)


@pytest.mark.parametrize("words, named", [
    (["verify", "data/*"], "data/chess-0000"),
    (["index", "data/*"], "data/chess-0000"),
    (["make-sample", "chess", "--records", "10", "--out", "chess"], "chess"),
    (["make-sample", "flowers", "--records", "10", "--photos", "photo.jpg", "--out", "flowers"], "flowers"),
    (["make-sample", "segmentation", "--records", "5", "--photos", "photo.jpg", "--out", "pieces"], "pieces"),
], ids=["verify", "index", "chess", "flowers", "segmentation"])
def test_on_a_terminal_a_bar_shows_how_far_it_is_and_goes(tmp_path, words, named):
    make_chess(tmp_path)
    make_photo(tmp_path / "photo.jpg")
    done = on_a_terminal([PENSTOCK, *words], cwd=tmp_path)
    drawn = done.stderr
    assert done.returncode == 0, drawn
    assert re.search(rf"\r\[#*\.*\] +\d+ %  {named}", drawn), drawn
    assert drawn.endswith("\r\x1b[K")
    assert "%" not in done.stdout
    # Where there is no terminal, there is no bar.
    piped = penstock(tmp_path, *words)
    assert piped.returncode == 0
    assert piped.stderr == ""


@pytest.mark.parametrize("name", ["flowers", "segmentation"])
def test_pieces_of_photographs_are_dealt_to_shards_by_turns(tmp_path, name):
    make_photo(tmp_path / "photo.jpg")
    for folder, shards in (("one", "1"), ("three", "3")):
        done = penstock(tmp_path, "make-sample", name, "--records", "7", "--shards", shards, "--photos", "photo.jpg", "--out", folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"wrote 7 records in {shards} shards to {folder}\n"
    (one,) = (tmp_path / "one").glob("*.tfrecord")
    three = [records(path) for path in sorted((tmp_path / "three").glob("*.tfrecord"))]
    assert [len(shard) for shard in three] == [3, 2, 2]
    # A record depends on its ordinal alone, not on its shard or the thread that makes it.
    assert records(one) == [three[i % 3][i // 3] for i in range(7)]
    if name == "segmentation":
        images = sorted((tmp_path / "three" / "images").iterdir())
        assert [path.name for path in images] == [f"{i:06d}.png" for i in range(7)]
        assert all(path.read_bytes() in record for path, record in zip(images, records(one)))


def test_a_photograph_in_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    """Some thread's first error ends all."""
    make_photo(tmp_path / "photo.jpg")
    for i in range(5):
        (tmp_path / "out" / "labels" / f"{i:06d}.png").mkdir(parents=True)
    done = penstock(tmp_path, "make-sample", "segmentation", "--records", "5", "--photos", "photo.jpg", "--out", "out")
    assert done.returncode == 1
    assert re.search(r"cannot write out/labels/00000\d.png: Is a directory", done.stderr), done.stderr
    assert not list((tmp_path / "out").glob("*.tfrecord"))


def test_damage_is_listed_with_its_place(tmp_path):
    first, second = make_chess(tmp_path)
    data = bytearray(first.read_bytes())
    (length,) = struct.unpack_from("<Q", data, 0)
    data[length + 16 + 30] ^= 1
    (next_length,) = struct.unpack_from("<Q", data, length + 16)
    first.write_bytes(data)
    second.write_bytes(second.read_bytes()[:-1])
    done = penstock(tmp_path, "verify", "data/*")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == (f"data/{first.name}: offset {length + 16}, length {next_length + 16}: "
                        "data checksum mismatch")
    assert lines[1].startswith(f"data/{second.name}: offset ") and lines[1].endswith(": record is cut")
    assert lines[2].startswith("verified 98 records of 2 files, ") and lines[2].endswith(": 2 damaged places")


def test_compressed_files_are_verified(tmp_path):
    first, second = make_chess(tmp_path)
    for path in (first, second):
        path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    done = penstock(tmp_path, "verify", "data/*.gz", "--compression", "GZIP")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("verified 100 records")
    cut = first.with_suffix(".gz")
    cut.write_bytes(cut.read_bytes()[:-9])
    done = penstock(tmp_path, "verify", "data/*.gz", "--compression", "GZIP")
    assert done.returncode == 1
    assert "length to the end: bad compressed data" in done.stdout
    wrong = penstock(tmp_path, "verify", "data/*.tfrecord", "--compression", "ZSTD")
    assert wrong.returncode == 1
    assert "declared ZSTD but does not begin as such a file does: it looks like plain TFRecord" in wrong.stderr


def test_indices_are_built_once(tmp_path):
    first, _ = make_chess(tmp_path)
    done = penstock(tmp_path, "index", "data/*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == f"data/{first.name}: 50 records, wrote data/.{first.name}.penstock-index"
    assert done.stdout.splitlines()[-1] == "100 records in 2 files"
    again = penstock(tmp_path, "index", "data/*")
    assert f"data/{first.name}: 50 records, has data/.{first.name}.penstock-index" in again.stdout
    assert again.stdout.splitlines()[-1] == "100 records in 2 files"


def test_an_index_of_damaged_data(tmp_path):
    first, _ = make_chess(tmp_path)
    data = bytearray(first.read_bytes())
    data[30] ^= 1
    first.write_bytes(data)
    assert penstock(tmp_path, "index", str(first)).returncode == 0  # headers alone are looked at
    verified = penstock(tmp_path, "index", str(first), "--verify")
    assert verified.returncode == 1
    assert "data checksum mismatch" in verified.stderr and f"({first}, record 0, offset 0)" in verified.stderr
    skipped = penstock(tmp_path, "index", str(first), "--skip-damage")
    assert skipped.returncode == 0
    assert "49 records, 1 damaged places left out, wrote " in skipped.stdout


@pytest.mark.parametrize("arguments, code, message", [
    (["verify"], 2, "files"),
    (["verify", "none*"], 1, 'no file matches "none*"'),
    (["verify", "present.txt", "--compression", "LZ4"], 2, 'NONE, GZIP, ZLIB or ZSTD, found "LZ4"'),
    (["index"], 2, "files"),
    (["index", "present.txt"], 1, "not a TFRecord file? (present.txt, record 0, offset 0)"),
    (["write", "out", "--files", "*.none"], 1, 'no file matches "*.none"'),
    (["write", "out", "--jsonl", "none.jsonl"], 1, "cannot open none.jsonl"),
    (["write", "/nowhere/out", "--files", "*"], 1, "cannot create /nowhere/out.partial"),
    (["make-sample", "flowers", "--out", "x", "--photos", "present.txt"], 1, "(present.txt)"),
    (["make-sample", "segmentation", "--out", "x", "--photos", "present.txt"], 1, "(present.txt)"),
    (["make-sample", "flowers", "--out", "x", "--photos", "."], 1, '"." is a folder: "./*" names the files in it'),
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


def test_indices_are_passed_over_where_a_shell_names_them(tmp_path):
    make_chess(tmp_path)
    assert penstock(tmp_path, "index", "data/*").returncode == 0
    named = sorted(str(path) for path in (tmp_path / "data").iterdir())
    assert len(named) == 4
    for command in ("index", "verify"):
        done = penstock(tmp_path, command, *named)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "2 files" in done.stdout


@pytest.mark.parametrize("command", ["index", "verify"])
def test_folders_and_dangling_links_are_errors(tmp_path, command):
    make_chess(tmp_path)
    (tmp_path / "data/folder").mkdir()
    (tmp_path / "data/link").symlink_to("nowhere")
    done = penstock(tmp_path, command, "data/*")
    assert done.returncode == 1
    assert "no regular file: data/folder\n" in done.stderr and "no regular file: data/link\n" in done.stderr
    assert "100 records" in done.stdout and "all is well" not in done.stdout


@pytest.mark.parametrize("action", ["list", "verify", "clear"])
def test_a_cache_that_is_not_there(tmp_path, action):
    done = penstock(tmp_path, "cache", action, "nope")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "penstock cache: NOT_FOUND: no such folder: nope\n"


needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


def openssl(folder, *words):
    return subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True)


@needs_openssl
def test_certificates_are_signed_by_the_authority_of_their_folder(tmp_path):
    done = penstock(tmp_path, "certificates", "made", "10.0.0.7", "::1", "helper.train", "--days", "30")
    assert done.returncode == 0, done.stderr
    names = ["authority", "10.0.0.7", "::1", "helper.train"]
    assert done.stdout.splitlines() == [f"wrote made/{name}.pem" for name in names]
    made = tmp_path / "made"
    assert sorted(path.name for path in made.iterdir()) == sorted(f"{name}.{end}" for name in names for end in ("key", "pem"))
    for name in names:
        assert stat.S_IMODE((made / f"{name}.key").stat().st_mode) == 0o600
        assert openssl(made, "x509", "-in", f"{name}.pem", "-noout", "-checkend", "2500000").returncode == 0
        assert openssl(made, "x509", "-in", f"{name}.pem", "-noout", "-checkend", "2700000").returncode == 1
    verify = ["verify", "-x509_strict", "-CAfile", "authority.pem"]
    for name, other in (("10.0.0.7", "10.0.0.8"), ("::1", "::2"), ("helper.train", "other.train")):
        option = "-verify_hostname" if name == "helper.train" else "-verify_ip"
        for purpose in ("sslserver", "sslclient"):
            assert openssl(made, *verify, "-purpose", purpose, option, name, f"{name}.pem").returncode == 0
            assert openssl(made, *verify, "-purpose", purpose, option, other, f"{name}.pem").returncode != 0
    # Nobody can sign by what a host has.
    assert "CA:FALSE" in openssl(made, "x509", "-in", "::1.pem", "-noout", "-text").stdout
    # The same authority again, and new certificates.
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    done = penstock(tmp_path, "certificates", "made", "10.0.0.7", "10.0.0.9")
    assert done.returncode == 0 and done.stdout == "wrote made/10.0.0.7.pem\nwrote made/10.0.0.9.pem\n", done
    after = {path.name: path.read_bytes() for path in made.iterdir()}
    assert {name for name in before if after[name] != before[name]} == {"10.0.0.7.pem", "10.0.0.7.key"}
    assert openssl(made, *verify, "-verify_ip", "10.0.0.9", "10.0.0.9.pem").returncode == 0
    assert not list(made.glob("*.partial"))


def test_certificates_of_no_host_and_of_no_authority_are_refused(tmp_path):
    for wrong in ("", "a,DNS:b", "../a", "a/b", ".a", "a:1", "authority", "a b", "x" * 65):
        done = penstock(tmp_path, "certificates", "made", "good", wrong)
        assert done.returncode == 2 and "expected the name or number of a host" in done.stderr, (wrong, done)
        assert not (tmp_path / "made").exists()
    assert penstock(tmp_path, "certificates", "made", "--days", "0").returncode == 2
    (tmp_path / "file").write_text("")
    done = penstock(tmp_path, "certificates", "file/made", "a")
    assert done.returncode == 1 and "cannot make file/made" in done.stderr, done
    assert penstock(tmp_path, "certificates", "made").returncode == 0
    key = tmp_path / "made/authority.key"
    whole = key.read_bytes()
    for damaged in (b"", whole[:-40], b"nothing"):
        key.write_bytes(damaged)
        done = penstock(tmp_path, "certificates", "made", "a")
        assert done.returncode == 1 and "not an authority and its key: made/authority.pem" in done.stderr, done
    key.unlink()
    done = penstock(tmp_path, "certificates", "made", "a")
    # Another authority in its place would surprise whoever has the first one's certificate.
    assert done.returncode == 1 and "cannot read made/authority.key" in done.stderr, done
    assert not (tmp_path / "made/a.pem").exists()
