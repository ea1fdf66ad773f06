"""packaging/smaller.py: an archive's files are compressed by another compressor, and are the same."""

import pathlib
import runpy
import zipfile
import zlib

import pytest

smaller = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "packaging" / "smaller.py"))


def raw(data, level=9):
    compressor = zlib.compressobj(level, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "penstock-0.1.0-cp311-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        program = zipfile.ZipInfo("penstock.scripts/penstockd", (2026, 11, 29, 16, 44, 2))
        program.external_attr = 0o100755 << 16
        archive.writestr(program, b"\x7fELF" + bytes(range(256)) * 500, zipfile.ZIP_DEFLATED)
        archive.writestr("penstock/py.typed", b"")
        archive.writestr("penstock-0.1.0.dist-info/RECORD", "penstock/py.typed,,\n" * 400)
    return path


def looks(path):
    with zipfile.ZipFile(path) as archive:
        return [(info.filename, info.date_time, info.external_attr, archive.read(info)) for info in archive.infolist()]


def test_the_files_are_the_same_and_compressed_anew(wheel):
    before, bytes_before = looks(wheel), wheel.stat().st_size
    seen = []
    smaller["rewrite"](wheel, lambda data: seen.append(data) or raw(data))
    assert looks(wheel) == before
    assert seen == [data for *_, data in before]
    assert wheel.stat().st_size < bytes_before
    assert list(wheel.parent.iterdir()) == [wheel]


@pytest.mark.parametrize("broken", [lambda data: raw(data)[:-3], lambda data: raw(data[::-1]), lambda data: b"\xff" * 20])
def test_a_compressor_that_loses_something_changes_nothing(wheel, broken):
    before = wheel.read_bytes()
    with pytest.raises(ValueError):
        smaller["rewrite"](wheel, broken)
    assert wheel.read_bytes() == before
    assert list(wheel.parent.iterdir()) == [wheel]
