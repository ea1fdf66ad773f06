"""Every bad input gives one clear error, exit code 1, and nothing half-delivered."""

import re
import struct

import numpy
import pytest

import tfrecord_files
from tfrecord_files import example, framed


CHESS_LIKE = """
name: "bad"
stage { tfrecord { files: "data.tfrecord" } }
stage { parse_example { feature { key: "d" bytes { length: 194 } } feature { key: "s" int64 {} } } }
stage { map { out: "bits = unpack_bits(d)" out: "score = float32(s)" } }
stage { batch { batch_size: 2 } }
"""

PHOTOS = """
name: "bad"
stage { tfrecord { files: "data.tfrecord" } }
stage { parse_example { feature { key: "image/encoded" bytes {} } } }
stage { map { out: "image = resize(decode_jpeg(feature('image/encoded'), channels=3), [8, 8])" } }
stage { batch { batch_size: 2 } }
""".replace("'", '\\"')


def record(**changes):
    return example(**{"d": bytes(194), "s": 7, **changes})


def sound(count=5):
    """Records whose `s` counts."""
    return b"".join(framed(record(s=n)) for n in range(count))


def damaged(position, count=5):
    data = bytearray(sound(count))
    data[position] ^= 0x10
    return bytes(data)


FRAME = len(framed(record()))

# What the file holds; the code; what the message says; the batches before it. Each names the file, the record and its offset.
BAD_DATA = {
    "not a TFRecord": (b"PK\x03\x04 this is an archive, not a TFRecord file", "DATA_LOSS",
                       ["checksum", "TFRecord", "record 0", "offset 0"], 0),
    "tail cut in the header": (sound() + framed(record())[:7], "DATA_LOSS", ["record 5", f"offset {5 * FRAME}"], 2),
    "tail cut in the payload": (sound()[:-30], "DATA_LOSS", ["record 4", f"offset {4 * FRAME}"], 2),
    "tail cut in the footer": (sound()[:-2], "DATA_LOSS", ["record 4", f"offset {4 * FRAME}"], 2),
    "wrong length checksum": (damaged(FRAME + 9), "DATA_LOSS", ["length checksum", "record 1", f"offset {FRAME}"], 0),
    "wrong data checksum": (damaged(2 * FRAME + 20), "DATA_LOSS", ["data checksum", "record 2", f"offset {2 * FRAME}"], 1),
    "a length of 2^40": (sound(1) + framed(record(), length=1 << 40), "DATA_LOSS",
                         ["1099511627776", "record 1", f"offset {FRAME}"], 0),
    "a length of 2^64 - 1": (sound(2) + framed(record(), length=(1 << 64) - 1), "DATA_LOSS",
                             ["18446744073709551615", "record 2", f"offset {2 * FRAME}"], 1),
    "wrong feature type": (sound(3) + framed(record(s=1.5)), "DATA_LOSS",
                           ['"s"', "int64", "float", "record 3", f"offset {3 * FRAME}"], 1),
    "missing feature": (sound(2) + framed(example(s=1)), "DATA_LOSS",
                        ['"d"', 'there: "s"', "record 2", f"offset {2 * FRAME}"], 1),
    "d of 193 bytes": (sound(1) + framed(record(d=bytes(193))), "DATA_LOSS",
                       ['"d"', "194", "193", "record 1", f"offset {FRAME}"], 0),
    "two values for a scalar": (framed(record(s=[1, 2])), "DATA_LOSS", ['"s"', "1", "2", "record 0", "offset 0"], 0),
    "no Example": (sound(4) + framed(b"\xff\xff\xff"), "DATA_LOSS", ["record 4", f"offset {4 * FRAME}"], 2),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_faults_3_4_6_16_and_17_bad_data(penstock_command, tmp_path, case):
    data, code, words, batches = BAD_DATA[case]
    (tmp_path / "data.tfrecord").write_bytes(data)
    (tmp_path / "bad.textproto").write_text(CHESS_LIKE)
    result = penstock_command("run", "bad.textproto", "--out", "out")
    check(result, code, [*words, "data.tfrecord", "stage "])
    for step, arrays in enumerate(written(tmp_path / "out", batches)):
        assert arrays["score"].tolist() == [2 * step, 2 * step + 1]
        assert arrays["bits"].shape == (2, 8 * 194) and not arrays["bits"].any()


def small_jpeg():
    """A baseline JPEG of 8x8 grey pixels, built from its parts."""
    quantization = b"\xff\xdb\x00\x43\x00" + bytes([16] * 64)
    frame = b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 8, 8) + b"\x01\x01\x11\x00"
    # One code in each table: the end of the block and a difference of nothing.
    tables = b"".join(b"\xff\xc4\x00\x14" + bytes([kind, 1] + [0] * 15 + [0]) for kind in (0x00, 0x10))
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\x3f"
    return b"\xff\xd8" + quantization + frame + tables + scan + b"\xff\xd9"


BAD_PHOTOS = {
    "not a JPEG": b"\x89PNG\r\n\x1a\n and so on",
    "empty": b"",
    "cut in its header": small_jpeg()[:30],
    "cut in its data": small_jpeg()[:-3],
}


@pytest.mark.parametrize("case", BAD_PHOTOS)
def test_bad_photos(penstock_command, tmp_path, case):
    good, bad = example(image__encoded=small_jpeg()), example(image__encoded=BAD_PHOTOS[case])
    (tmp_path / "bad.textproto").write_text(PHOTOS)
    tfrecord_files.write(tmp_path / "data.tfrecord", [good])
    fine = penstock_command("run", "bad.textproto")
    assert fine.code == 0, fine
    tfrecord_files.write(tmp_path / "data.tfrecord", [good, good, good, bad])
    result = penstock_command("run", "bad.textproto", "--out", "out")
    check(result, "DATA_LOSS", ["JPEG", "data.tfrecord", "record 3", f"offset {3 * len(framed(good))}", "stage map"])
    (batch,) = written(tmp_path / "out", 1)
    assert batch["image"].shape == (2, 8, 8, 3)


def written(folder, batches):
    """The arrays of each batch that a run wrote, of which there are so many and nothing besides."""
    paths = sorted(folder.iterdir()) if folder.exists() else []
    assert [path.name for path in paths] == [f"step-{step:06d}.npz" for step in range(batches)]
    return [dict(numpy.load(path)) for path in paths]


def check(result, code, words):
    assert result.code == 1, result
    errors = [line for line in result.err.splitlines() if line]
    assert len(errors) == 1, result
    assert f"penstock run: {code}: " in errors[0], result
    for word in words:
        assert word in errors[0], (word, result)


def edit(before, after):
    def change(spec):
        assert before in spec
        return spec.replace(before, after, 1)

    return change


# A change of a sound spec; the code; what the message says.
BAD_SPECS = {
    "missing file": (edit("data.tfrecord", "none.tfrecord"), "NOT_FOUND", ["stage tfrecord", "none.tfrecord"]),
    "empty glob": (edit("data.tfrecord", "none-*.tfrecord"), "NOT_FOUND", ["stage tfrecord", "none-*.tfrecord"]),
    # Fault 55.
    "a folder": (edit("data.tfrecord", "tmp"), "INVALID_ARGUMENT", ["stage tfrecord", "not a regular file but a folder", "tmp/*"]),
    "no files": (edit('files: "data.tfrecord"', ""), "INVALID_ARGUMENT", ["stage tfrecord", "files"]),
    "unknown op": (edit("map {", "mapp {"), "INVALID_ARGUMENT",
                   ["bad.textproto:5:", 'unknown field "mapp" in Stage, did you mean "map"?']),
    "unknown field": (edit("batch_size", "batchsize"), "INVALID_ARGUMENT",
                      ["bad.textproto:6:", 'unknown field "batchsize" in Batch, did you mean "batch_size"?']),
    "bad text": (edit("batch_size: 2", "batch_size: two"), "INVALID_ARGUMENT", ["bad.textproto:6:"]),
    "unknown function": (edit("unpack_bits(d)", "unpack_bit(d)"), "INVALID_ARGUMENT",
                         ['stage "map"', "unpack_bit", "unpack_bits"]),
    "unknown feature": (edit("unpack_bits(d)", "unpack_bits(dd)"), "INVALID_ARGUMENT", ['stage "map"', "dd"]),
    "bad syntax": (edit("unpack_bits(d)", "unpack_bits(d"), "INVALID_ARGUMENT", ['stage "map"']),
    "wrong dtype": (edit("unpack_bits(d)", "unpack_bits(float32(s))"), "INVALID_ARGUMENT",
                    ['stage "map"', "unpack_bits", "float32"]),
    "wrong shape": (edit("unpack_bits(d)", "reshape(d, [3, 5])"), "INVALID_ARGUMENT", ['stage "map"', "194", "[3, 5]"]),
    "shapes that do not match": (edit("unpack_bits(d)", "unpack_bits(d) + d"), "INVALID_ARGUMENT",
                                 ['stage "map"', "1552", "194"]),
    "zero batch size": (edit("batch_size: 2", "batch_size: 0"), "INVALID_ARGUMENT", ["stage batch", "batch_size", "0"]),
    "negative batch size": (edit("batch_size: 2", "batch_size: -3"), "INVALID_ARGUMENT",
                            ["stage batch", "batch_size", "-3"]),
    "no stage": (lambda spec: 'name: "bad"', "INVALID_ARGUMENT", ["no stage"]),
    "no source": (edit('stage { tfrecord { files: "data.tfrecord" } }', ""), "INVALID_ARGUMENT", ["source"]),
    "a stage without an op": (edit("stage { map", "stage { } stage { map"), "INVALID_ARGUMENT", ["stage"]),
    "a bad name": (edit('name: "bad"', 'name: "a/b"'), "INVALID_ARGUMENT", ["a/b"]),
    "no such constant": (edit("", ""), "INVALID_ARGUMENT", ['no constant "Q"'], "--set", "Q=1"),
    "too many workers": (edit('name: "bad"', 'name: "bad" workers: 5000'), "INVALID_ARGUMENT", ["workers", "5000"]),
    "too few slots": (edit('name: "bad"', 'name: "bad" ring { slots: 1 }'), "INVALID_ARGUMENT", ["ring.slots", "1"]),
    "strings to the trainer": (edit("bytes { length: 194 }", "bytes {}"), "INVALID_ARGUMENT", ['stage "map"']),
}


@pytest.mark.parametrize("case", BAD_SPECS)
@pytest.mark.parametrize("command", ["validate", "run"])
def test_fault_54_bad_specs(penstock_command, tmp_path, case, command):
    change, code, words, *more = BAD_SPECS[case]
    (tmp_path / "data.tfrecord").write_bytes(sound())
    (tmp_path / "bad.textproto").write_text(change(CHESS_LIKE))
    if command == "run" and case == "a bad name":
        more = ["--steps", "1"]  # run chooses a name of its own
        assert penstock_command(command, "bad.textproto", *more).code == 0
        return
    result = penstock_command(command, "bad.textproto", *more)
    assert result.code == 1, result
    errors = [line for line in result.err.splitlines() if line]
    assert len(errors) == 1, result
    assert errors[0].startswith(f"penstock {command}: {code}: "), result
    for word in words:
        assert word in errors[0], (word, result)
    assert result.out == ""


def test_fault_34_a_ring_larger_than_memory(remote, tmp_path):
    (tmp_path / "data.tfrecord").write_bytes(sound())
    spec = CHESS_LIKE.replace("batch_size: 2", "batch_size: 16000000").replace("unpack_bits(d)", "float64(unpack_bits(d))")
    (tmp_path / "bad.textproto").write_text(spec + "ring { slots: 64 }")
    for command in ("validate", "create"):
        result = remote(command, "bad.textproto")
        assert result.code == 1
        assert "RESOURCE_EXHAUSTED: a ring of 64 slots" in result.err
        # What it needs, and what there is.
        assert len(re.findall(r"\d+\.\d GiB", result.err)) >= 3, result
    assert remote("list").code == 0


def test_a_daemon_lives_on_after_all_of_it(remote, tmp_path, counter):
    for number, (data, *_) in enumerate(BAD_DATA.values()):
        (tmp_path / "data.tfrecord").write_bytes(data)
        (tmp_path / "bad.textproto").write_text(CHESS_LIKE)
        assert remote("run", "bad.textproto", "--out", f"out-{number}").code == 1
    assert remote("run", counter(), "--steps", "3").code == 0
