"""penstock.io.TFRecordWriter: TFRecord files from Python."""

import os

from penstock import _core, _errors

# What readers take: kMaxRecordBytes of server/io/record_chunk.h.
_MAX_RECORD_BYTES = 256 << 20
_COMPRESSIONS = {None: "", "": "", "NONE": "", "GZIP": "GZIP", "ZLIB": "ZLIB"}


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
    replaced then. A `with` that ends by an exception leaves PATH.partial as it is.

    Args:
      path: of the file.
      options: a TFRecordOptions, or a compression_type.

    Raises:
      OSError: as open().
    """

    def __init__(self, path, options=None):
        self._file = None
        if not isinstance(options, TFRecordOptions):
            # TensorFlow's own holds the same.
            options = TFRecordOptions(getattr(options, "compression_type", options))
        self._compressor = options._compressor()
        # Until close() the process may go to another folder.
        self._path = os.path.abspath(os.fsdecode(path))
        self._partial = self._path + ".partial"
        self._num_records = 0
        self._process = os.getpid()
        self._file = open(self._partial, "wb", buffering=1 << 20)

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
        """Writes what is left and gives the file its name. A second call does nothing."""
        file, self._file = self._file, None
        if file is None:
            return
        with file:
            if self._compressor is not None:
                file.write(self._compressor.flush())
        os.replace(self._partial, self._path)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.close()
            return
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __del__(self):
        if self._file is not None and os.getpid() != self._process:
            # A forked child's copy: what its buffer holds is the parent's to write, and its file too.
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._file.fileno(), inheritable=False)
            return
        if self._file is not None:
            import warnings

            warnings.warn(f"a TFRecordWriter was not closed: {self._path}", ResourceWarning, source=self)
            self.close()

    def _opened(self):
        if self._file is None:
            raise _errors.FailedPreconditionError(f"the TFRecordWriter of {self._path} is closed")
        return self._file
