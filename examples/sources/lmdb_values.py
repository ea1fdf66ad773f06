"""The values of an LMDB data base in the order of their keys, for penstock.Dataset.from_source. A position is the key behind which it goes on.

    dataset = penstock.Dataset.from_source(LmdbValues("train.lmdb"))
"""

import penstock


class LmdbValues(penstock.io.Source):
    """Args: path: of the data base, whose keys have at most 64 bytes; num_shards, index: every num_shards-th value, from number index on."""

    def __init__(self, path, num_shards=1, index=0):
        self.path = path
        self.num_shards, self.index = num_shards, index

    def shard(self, num_shards, index):
        return LmdbValues(self.path, num_shards, index)

    def read(self, position):
        import lmdb

        with lmdb.open(self.path, readonly=True, lock=False) as base, base.begin() as transaction, transaction.cursor() as cursor:
            if position is None:
                there, left_out = cursor.first(), self.index
            else:
                there, left_out = cursor.set_range(position), self.num_shards
                if there and cursor.key() != position:
                    raise LookupError(f"the key {position!r} has gone from {self.path}")
            while True:
                for _ in range(left_out):
                    there = there and cursor.next()
                if not there:
                    return
                yield cursor.value(), cursor.key()
                left_out = self.num_shards
