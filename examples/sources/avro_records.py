"""The records of an Avro file, for penstock.Dataset.from_source. A position is the place of a block and the number of a record in it.

    dataset = penstock.Dataset.from_source(AvroRecords("train.avro"), output={"x": penstock.TensorSpec((), penstock.int64), …})
"""

import io
import struct

import penstock

_POSITION = struct.Struct("<QQ")


class _Behind(io.RawIOBase):
    """A file's header, and what lies behind a place in it."""

    def __init__(self, header, file, place):
        self._header, self._file, self._at = io.BytesIO(header), file, 0
        file.seek(place)

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self._header.read(len(buffer)) or self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset, whence=io.SEEK_SET):
        if (offset, whence) != (0, io.SEEK_CUR):
            raise io.UnsupportedOperation("it is read in order")
        return self._at


class AvroRecords(penstock.io.Source):
    """Args: path: of the file."""

    def __init__(self, path):
        self.path = path

    def read(self, position):
        import fastavro

        place, done = _POSITION.unpack(position) if position else (0, 0)
        with open(self.path, "rb") as file:
            # Where the first block is, the header ends.
            head = next(iter(fastavro.block_reader(file)), None)
            if head is None:
                return
            file.seek(0)
            header = file.read(head.offset)
            place = place or head.offset
            for block in fastavro.block_reader(io.BufferedReader(_Behind(header, file, place))):
                for number, record in enumerate(block):
                    if number >= done:
                        yield record, _POSITION.pack(place, number + 1)
                place, done = place + block.size, 0
