"""What the fuzz targets begin with is what its script makes, of the formats that are written today."""

import pathlib
import re
import struct
import sys

TREE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(TREE / "tests" / "fuzz"))

import make_corpus  # noqa: E402


def test_indices_are_of_the_present_format_and_some_are_of_older_ones():
    source = (TREE / "io" / "record" / "index_file.cc").read_text()
    present, plain, first = (int(re.search(rf"{name} = (\d+);", source)[1]) for name in ("kVersion", "kPlainVersion", "kFirstVersion"))
    seeds = dict(make_corpus.index_file())
    folder = make_corpus.CORPUS / "index_file"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == seeds
    versions = {name: struct.unpack_from("<I", data, 8)[0] for name, data in seeds.items()}
    assert {name for name, version in versions.items() if version == present} == {"lines", "wide"}
    assert versions.pop("version_1") == first
    assert set(versions.values()) == {present, plain}
