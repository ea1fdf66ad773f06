"""Parquet files: which there are, and their footers."""

import hashlib
import os
import zlib

from penstock import _errors

MAGIC = b"PAR1"
# The footer's length and the magic number.
TAIL_BYTES = 8
# Footers that are read at a time.
_READERS = 8


def pyarrow():
    """The package, with its modules for Parquet.

    Raises:
      ImportError: it is not there; says how it comes.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('Dataset.parquet reads by the package pyarrow: pip install pyarrow (or "penstock[parquet]")') from error
    return pyarrow


class BadFile(Exception):
    """A file is not what it was to be, as the text says."""


def filesystem_of(paths, filesystem):
    """The pyarrow FileSystem that the paths are of, and the paths in it."""
    fs = pyarrow().fs
    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            # fsspec's.
            filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        return filesystem, paths
    remote = [path for path in paths if "://" in path]
    if not remote:
        return fs.LocalFileSystem(), paths
    if len(remote) < len(paths):
        raise ValueError(f"paths are all local or all addresses: {remote[0]!r} beside {next(path for path in paths if '://' not in path)!r}")
    found, inner = zip(*map(fs.FileSystem.from_uri, paths))
    if any(other != found[0] for other in found):
        raise ValueError("addresses of one dataset are of one store: give another one's a dataset of its own, and concatenate them")
    return found[0], list(inner)


def matching(paths, filesystem):
    """The paths of an argument, in its order; those of one glob in the byte order of their names.

    Args:
      paths: a path, a glob, or a list of them.
      filesystem: as the user has given it, or None.
    """
    single = isinstance(paths, (str, bytes, os.PathLike))
    names = [os.fsdecode(path) for path in ([paths] if single else paths)]
    if not names:
        raise ValueError("paths are a path, a glob, or a list of them; the list is empty")
    is_local = filesystem is None and not any("://" in name for name in names)
    find = getattr(filesystem, "glob", None)
    found = []
    for name in names:
        if is_local:
            found += _local(os.path.abspath(name))
        elif find is not None and any(letter in name for letter in "*?["):
            found += _some(name, find(name))
        else:
            found.append(name)
    return found


def _local(name):
    import glob

    if os.path.isdir(name):
        raise _errors.InvalidArgumentError(f"{name} is a folder: give a glob of its files, such as {os.path.join(name, '*.parquet')}")
    # A path that is there is one, as the daemon takes it.
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    return _some(name, [path for path in glob.glob(name, recursive=True) if not os.path.isdir(path)])


def _some(name, found):
    if not found:
        raise _errors.NotFoundError(f"no file matches {name}")
    return sorted(found, key=os.fsencode)


class Identity:
    """What tells whether a file is the one that was looked at: its size, and a hash of its footer; for the daemon CRC-32 of it."""

    __slots__ = ("digest", "size", "sum")

    def __init__(self, size, digest, sum):
        self.size = size
        self.digest = digest
        self.sum = sum

    def __eq__(self, other):
        return (self.size, self.digest) == (other.size, other.digest)


def identity_of(file, path):
    """The Identity of an open pyarrow NativeFile.

    Raises:
      BadFile: it is no whole Parquet file.
    """
    size = file.size()
    if size < len(MAGIC) + TAIL_BYTES:
        found = "it is empty" if size == 0 else f"it has {size} bytes"
        raise BadFile(f"{path} is no Parquet file: {found}, and one has at least {len(MAGIC) + TAIL_BYTES}")
    head, tail = file.read_at(len(MAGIC), 0), file.read_at(TAIL_BYTES, size - TAIL_BYTES)
    if head != MAGIC or tail[4:] != MAGIC:
        if b"PARE" in (head, tail[4:]):
            raise BadFile(f"{path} is encrypted, which is not supported: write it without encryption")
        what = "it was cut, or is still being written" if head == MAGIC else "it is of another format"
        raise BadFile(f"{path} is no Parquet file: expected PAR1 at both ends, found {head!r} and {tail[4:]!r}; {what}")
    length = int.from_bytes(tail[:4], "little")
    if length > size - len(MAGIC) - TAIL_BYTES:
        raise BadFile(f"{path} is damaged: a footer of {length} bytes in a file of {size}")
    footer = file.read_at(length, size - TAIL_BYTES - length)
    return Identity(size, hashlib.blake2b(footer, digest_size=8).hexdigest(), zlib.crc32(footer))


class Footer:
    """What the end of a file tells of it.

    Attributes:
      path, identity, metadata (pyarrow's), schema (Arrow's).
    """

    def __init__(self, filesystem, path):
        pa = pyarrow()
        self.path = path
        try:
            with filesystem.open_input_file(path) as file:
                self.identity = identity_of(file, path)
                parquet = pa.parquet.ParquetFile(file)
                self.metadata, self.schema = parquet.metadata, parquet.schema_arrow
        except BadFile as error:
            raise _errors.DataLossError(str(error)) from None
        except FileNotFoundError:
            raise _errors.NotFoundError(f"there is no file {path}") from None
        except PermissionError as error:
            raise _errors.PermissionDeniedError(f"{path}: {error}") from None
        except (pa.ArrowException, OSError) as error:
            raise _errors.DataLossError(f"{path}: the footer is damaged, or of a kind that pyarrow {pa.__version__} does not read: {error}") from None


def footers(filesystem, paths):
    """The Footer of each path, in order. Threads read them, as they may be far away."""
    from concurrent.futures import ThreadPoolExecutor

    if len(paths) == 1:
        return [Footer(filesystem, paths[0])]
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(lambda path: Footer(filesystem, path), paths))
