"""penstock.TarDataset beside libarchive: archives that it writes in each of its tar formats, and what it reads of them."""

import collections
import os

import libarchive
import pytest

import penstock

pytestmark = pytest.mark.filterwarnings("ignore:this trainer holds")

LONG = "folder/" + "n" * 120 + "/" + "k" * 130
MEMBERS = [
    *((f"{i:04}.{extension}", bytes([i]) * size) for i in range(40) for extension, size in (("bin", i * 97 % 1500), ("cls", 3))),
    (f"{LONG}.bin", b"long"), (f"{LONG}.cls", b"1"),
    ("übung/ü.bin", b"u"), ("übung/ü.cls", b"2"),
    ("none", b"no extension"), ("a.b/none", b"none"), ("__meta__/info.json", b"{}"),
    ("big.bin", os.urandom(300_000)), ("big.cls", b"9"),
]  # fmt: skip


def write(path, format, members):
    with libarchive.file_writer(str(path), format) as archive:
        for name, data in members:
            archive.add_file_from_memory(name, len(data), data)


def samples(path):
    """WebDataset's samples of what libarchive reads."""
    found = collections.OrderedDict()
    with libarchive.file_reader(str(path), "tar") as archive:
        for entry in archive:
            folder, _, name = entry.pathname.rpartition("/")
            stem, dot, extension = name.partition(".")
            if not entry.isfile or not dot or not stem or entry.pathname.startswith("__meta__/"):
                continue
            key = f"{folder}/{stem}" if folder else stem
            found.setdefault(key, {})[extension] = b"".join(entry.get_blocks())
    return [(key.encode(), members["bin"], members["cls"]) for key, members in found.items()]


def read(path):
    dataset = penstock.TarDataset(path, ["__key__", "bin", "cls"])
    return [tuple(sample[name].item() for name in ("__key__", "bin", "cls")) for sample in dataset]


@pytest.mark.parametrize("format", ["ustar", "gnutar", "pax", "pax_restricted"])
def test_samples_are_those_that_libarchive_reads(tmp_path, format):
    members = [(name, data) for name, data in MEMBERS if format != "ustar" or "k" * 130 not in name]
    write(tmp_path / "a.tar", format, members)
    expected = samples(tmp_path / "a.tar")
    assert len(expected) == (42 if format == "ustar" else 43)
    assert read(tmp_path / "a.tar") == expected
    shuffled = penstock.TarDataset(tmp_path / "a.tar", ["__key__"]).global_shuffle(seed=1)
    assert sorted(sample["__key__"].item() for sample in shuffled) == sorted(key for key, _, _ in expected)
