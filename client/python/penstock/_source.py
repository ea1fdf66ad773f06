"""penstock.io.Source: records that a process of the user's own reads."""

from __future__ import annotations

from typing import Any, Iterator, Optional


class Source:
    """Records from anywhere, for Dataset.from_source: a file format, a data base, a log.

        class Lines(penstock.io.Source):
            def __init__(self, path):
                self.path = path

            def read(self, position):
                with open(self.path, "rb") as file:
                    file.seek(int.from_bytes(position or b"", "little"))
                    while line := file.readline():
                        yield line, file.tell().to_bytes(8, "little")

    It travels by pickle to a worker process, which calls read(). Open files and connections there, not in __init__.

    Attributes:
      seeks: whether read() goes on at a position. A resume of a source that does not goes through it again from its first record, as explain() says.
      gives_rows: whether what stands in the place of a record is many of them: a nest of arrays whose first axis counts them.
    """

    seeks = True
    gives_rows = False

    def read(self, position: Optional[bytes]) -> Iterator[Any]:
        """The records behind a position, each with the position behind it.

        Args:
          position: None at the beginning; else one that stood beside a record. Always None where the source does not seek.

        Yields:
          Pairs of a record and a position: bytes, at most 64, which mean something to this source alone; or None, where it has none. What follows a
          position is always the same. Where the source does not seek, records alone.
        """
        raise NotImplementedError(f"{type(self).__qualname__} has no read(): it yields the records")

    def shard(self, num_shards: int, index: int) -> Source:
        """The source of a part of the records, for from_source(num_shards=…); all parts together are all records."""
        raise NotImplementedError(f"{type(self).__qualname__} has no shard(num_shards, index), so that one process reads it: leave out num_shards")
