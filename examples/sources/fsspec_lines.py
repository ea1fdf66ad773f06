"""The lines of files in any store that fsspec knows, for penstock.Dataset.from_source. A position is the number of a file and a place in it.

    dataset = penstock.Dataset.from_source(FsspecLines(["gcs://bucket/a.txt", "gcs://bucket/b.txt"]))
"""

import struct

import penstock

_POSITION = struct.Struct("<QQ")


class FsspecLines(penstock.io.Source):
    """Args: addresses: of the files; options: of fsspec.open."""

    def __init__(self, addresses, **options):
        self.addresses, self.options = list(addresses), options

    def shard(self, num_shards, index):
        return FsspecLines(self.addresses[index::num_shards], **self.options)

    def read(self, position):
        import fsspec

        first, place = _POSITION.unpack(position) if position else (0, 0)
        for number in range(first, len(self.addresses)):
            with fsspec.open(self.addresses[number], "rb", **self.options) as file:
                file.seek(place)
                for line in file:
                    place += len(line)
                    yield line.rstrip(b"\n"), _POSITION.pack(number, place)
            place = 0
