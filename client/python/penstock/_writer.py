"""penstock.io.TFRecordWriter: TFRecord files from Python."""

import os
import stat

from penstock import _core, _errors

# What readers take: kMaxRecordBytes of io/record/record_chunk.h.
_MAX_RECORD_BYTES = 256 << 20
_COMPRESSIONS = {None: "", "": "", "NONE": "", "GZIP": "GZIP", "ZLIB": "ZLIB"}


_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
# Writers of one file at a time.
_MAX_PARTS = 1000


def _refuse_what_is_no_file(path):
    """A device or a FIFO, whose place a file would take."""
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError:
        return
    if kind != stat.S_IFREG:
        kind = _KINDS.get(kind, "no file")
        raise _errors.InvalidArgumentError(f"a TFRecordWriter writes a file, which takes the place of what is there: {path} is {kind}")


def _open_part(path):
    """PATH.partial, empty, as a file of this writer alone, and its name: with a number where another writer has that one.

    Who writes one holds a lock of it, which ends with the process; what a lost one has left is written over.
    """
    import errno
    import fcntl

    for number in range(_MAX_PARTS):
        name = f"{path}.partial" if number == 0 else f"{path}.partial-{number + 1}"
        fd = os.open(name, os.O_RDWR + os.O_CREAT, 0o666)
        try:
            _refuse_what_is_no_file(name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX + fcntl.LOCK_NB)
            except OSError as error:
                # A file system without locks has one writer for each file.
                if error.errno not in (errno.EWOULDBLOCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOLCK):
                    raise
                is_taken = error.errno == errno.EWOULDBLOCK
            else:
                # Whoever had it may have given it its name meanwhile.
                is_taken = not _is_file(fd, name)
            if not is_taken:
                os.ftruncate(fd, 0)
                file = open(fd, "wb", buffering=1 << 20)
                fd = None
                return file, name
        finally:
            if fd is not None:
                os.close(fd)
    raise _errors.ResourceExhaustedError(f"{_MAX_PARTS} writers have parts of {path}")


def _is_file(fd, name):
    try:
        return os.path.samestat(os.fstat(fd), os.stat(name))
    except FileNotFoundError:
        return False


def _checksum(data):
    return _core.masked_crc32c(data).to_bytes(4, "little")


class TFRecordOptions:
    """How a TFRecordWriter compresses, as tf.io.TFRecordOptions.

    Args:
      compression_type: None or "" for none, "GZIP" or "ZLIB".
      compression_level: 0 to 9, None or -1 for zlib's own choice.
      window_bits, mem_level, compression_strategy: zlib's parameters; None for TensorFlow's: 31 for GZIP and 15 for ZLIB, 9, and 0.
      flush_mode, input_buffer_size, output_buffer_size, compression_method: accepted, without effect.
    """

    def __init__(
        self,
        compression_type=None,
        flush_mode=None,
        input_buffer_size=None,
        output_buffer_size=None,
        window_bits=None,
        compression_level=None,
        compression_method=None,
        mem_level=None,
        compression_strategy=None,
    ):
        if compression_type not in _COMPRESSIONS:
            raise ValueError(f"compression_type is None, GZIP or ZLIB: {compression_type!r}")
        self.compression_type = _COMPRESSIONS[compression_type]
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    def _compressor(self):
        if not self.compression_type:
            return None
        import zlib

        default = 31 if self.compression_type == "GZIP" else 15
        level, window_bits, mem_level, strategy = (
            other if given is None else given
            for given, other in (
                (self.compression_level, -1),
                (self.window_bits, default),
                (self.mem_level, 9),
                (self.compression_strategy, 0),
            )
        )
        return zlib.compressobj(level, zlib.DEFLATED, window_bits, mem_level, strategy)


class TFRecordWriter:
    """Writes records to a TFRecord file, as tf.io.TFRecordWriter.

        with penstock.io.TFRecordWriter("train-000.tfrecord") as writer:
            for example in examples:
                writer.write(penstock.io.serialize_example(example))

    Until close() the file is called PATH.partial, so that no reader takes a half-written one for whole; an existing file at PATH is
    replaced then; where it is a symbolic link, what it points to is. A `with` that ends by an exception leaves PATH.partial as it is. Of
    several writers of one PATH at a time the others have PATH.partial-2 and so on, and the one that is closed last stays. A forked child
    leaves the file to its parent.

    Args:
      path: of the file.
      options: a TFRecordOptions, or a compression_type.

    Raises:
      InvalidArgumentError: what is at the path is no file.
      OSError: as open().
    """

    def __init__(self, path, options=None):
        self._file = None
        if not isinstance(options, TFRecordOptions):
            # TensorFlow's own holds the same.
            options = TFRecordOptions(getattr(options, "compression_type", options))
        self._compressor = options._compressor()
        # Until close() the process may go to another folder.
        path = os.path.abspath(os.fsdecode(path))
        _refuse_what_is_no_file(path)
        self._path = os.path.realpath(path)
        self._num_records = 0
        self._process = os.getpid()
        self._file, self._partial = _open_part(self._path)

    def write(self, record):
        """Appends a record: bytes, at most 256 MiB of them."""
        file = self._opened()
        if not isinstance(record, (bytes, bytearray, memoryview)):
            hint = ""
            if isinstance(record, str):
                hint = ": encode() it"
            elif isinstance(record, dict):
                hint = ": penstock.io.serialize_example(record) makes them"
            elif hasattr(record, "SerializeToString"):
                hint = ": record.SerializeToString()"
            raise TypeError(f"a record is bytes, not {type(record).__name__}{hint}")
        record = bytes(record)
        if len(record) > _MAX_RECORD_BYTES:
            raise _errors.InvalidArgumentError(
                f"record longer than limit: {len(record)} > {_MAX_RECORD_BYTES} bytes ({self._path}, record {self._num_records})"
            )
        length = len(record).to_bytes(8, "little")
        frame = b"".join((length, _checksum(length), record, _checksum(record)))
        file.write(frame if self._compressor is None else self._compressor.compress(frame))
        self._num_records += 1

    def flush(self):
        """Hands what has been written to the system. Of compressed files a reader sees all of it then."""
        file = self._opened()
        if self._compressor is not None:
            import zlib

            file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        file.flush()

    def close(self):
        """Writes what is left and gives the file its name. A second call does nothing, and nor does one in a forked child."""
        file = self._left_file()
        if file is None:
            return
        with file:
            if self._compressor is not None:
                file.write(self._compressor.flush())
            file.flush()
            _refuse_what_is_no_file(self._path)
            # As long as nobody else may take the part.
            os.replace(self._partial, self._path)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.close()
            return
        file = self._left_file()
        if file is not None:
            file.close()

    def _left_file(self):
        """The file, for the last time; None where it is closed, and in a forked child."""
        file, self._file = self._file, None
        if file is None or os.getpid() == self._process:
            return file
        # What the copy's buffer holds is the parent's to write, and its file too.
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), file.fileno(), inheritable=False)
        file.close()
        return None

    def __del__(self):
        if self._file is not None and os.getpid() != self._process:
            self._left_file()
        if self._file is not None:
            import warnings

            warnings.warn(f"a TFRecordWriter was not closed: {self._path}", ResourceWarning, source=self)
            self.close()

    def _opened(self):
        if self._file is None:
            raise _errors.FailedPreconditionError(f"the TFRecordWriter of {self._path} is closed")
        if os.getpid() != self._process:
            raise _errors.FailedPreconditionError(
                f"the TFRecordWriter of {self._path} belongs to process {self._process}, which forked this one: each process writes a file of its own"
            )
        return self._file
