"""Compresses the files of a wheel again, by libdeflate's slowest level: 4 % less than zlib's, in seconds.

    python smaller.py WHEEL...

Names, contents, dates and modes of the files stay as they are; so does RECORD, which knows nothing of how a file is compressed. Needs the PyPI
package `deflate`.
"""

import os
import pathlib
import sys
import unittest.mock
import zipfile
import zlib

_SLOWEST = 12


class _Whole:
    """What zipfile asks of a compressor; all of a file is compressed at once."""

    def __init__(self, compress):
        self._compress = compress
        self._parts = []

    def compress(self, data):
        self._parts.append(bytes(data))
        return b""

    def flush(self):
        return bytes(self._compress(b"".join(self._parts)))


def contents(path):
    """[(ZipInfo, bytes)], in the archive's order. Each file's checksum has been seen to hold."""
    with zipfile.ZipFile(path) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def rewrite(path, compress):
    """Puts an archive in the place of `path` whose files `compress` has compressed: bytes to bytes of DEFLATE, without a head.

    Errors: ValueError, with the archive as it was, where another archive would hold something else.
    """
    files = contents(path)
    made = path.with_suffix(".smaller")
    # zipfile takes no compressor of others by its interface.
    with unittest.mock.patch.object(zipfile, "_get_compressor", lambda *_: _Whole(compress)), zipfile.ZipFile(made, "w") as archive:
        for info, data in files:
            copy = zipfile.ZipInfo(info.filename, info.date_time)
            copy.external_attr, copy.create_system, copy.compress_type = info.external_attr, info.create_system, zipfile.ZIP_DEFLATED
            archive.writestr(copy, data)
    try:
        again = contents(made)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        made.unlink()
        raise ValueError(f"{path}: what was compressed cannot be read: {error}") from error
    same = [(info.filename, info.date_time, info.external_attr, data) for info, data in files]
    if [(info.filename, info.date_time, info.external_attr, data) for info, data in again] != same:
        made.unlink()
        raise ValueError(f"{path}: another archive holds something else")
    os.replace(made, path)


def main(*wheels):
    import deflate

    for wheel in map(pathlib.Path, wheels):
        before = wheel.stat().st_size
        rewrite(wheel, lambda data: deflate.deflate_compress(data, _SLOWEST))
        print(f"{wheel.name}: {before} bytes, and {wheel.stat().st_size} by libdeflate")


if __name__ == "__main__":
    main(*sys.argv[1:])
