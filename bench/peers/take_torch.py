"""Chess in a torch DataLoader, vectorised by hand in NumPy: no record is touched alone except to find where it begins.

No checksum is verified, and the Examples are taken to be laid out as `penstock make-sample` writes them. Both make it faster than a
general reader could be.
"""

import argparse
import glob
import mmap
import struct

import numpy as np
import torch

import window

A, K, B = 0.9, 400.0, 50.0
BATCH = 512
BUFFER = 10000
FILES_AT_ONCE = 8
HEADER_BYTES, FOOTER_BYTES = 12, 4
# In a record: the heads of Example, entry and key `d`, of its Feature and lists, then 194 bytes; the heads of the entry `s` follow.
D_OFFSET = HEADER_BYTES + 18
S_OFFSET = D_OFFSET + 194 + 11
# The order of the planes, 0, 4, 8 … 1, 5, 9 …, is the transpose of (6, 4). A byte holds two of the six groups: as four pairs of
# int8, already with their signs, it moves four words instead of eight bits.
PAIRS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int8).reshape(256, 2, 4).swapaxes(1, 2)
PAIRS = np.ascontiguousarray(PAIRS * np.array([1, -1, 1, -1], np.int8)[:, None]).reshape(256, 8).view(np.int16)


class Shard:
    """The records of one file, one after another."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.bytes = np.frombuffer(self.map, np.uint8)
        self.offset = 0

    def take(self, count):
        """The d (n, 194) and s (n,) of up to `count` records."""
        offsets = []
        offset, end, data, length_at = self.offset, len(self.map), self.map, struct.Struct("<Q").unpack_from
        while len(offsets) < count and offset < end:
            offsets.append(offset)
            offset += length_at(data, offset)[0] + HEADER_BYTES + FOOTER_BYTES
        self.offset = offset
        starts = np.array(offsets, np.int64)[:, None]
        d = self.bytes[starts + (D_OFFSET + np.arange(194))]
        # A varint: 7 bits a byte, until a byte without the highest bit. The last records of a file have fewer than 10 bytes left.
        raw = self.bytes[np.minimum(starts + (S_OFFSET + np.arange(10)), len(self.bytes) - 1)]
        more = np.cumprod(raw >> 7, axis=1, dtype=np.uint8)
        used = np.concatenate([np.ones((len(raw), 1), np.uint8), more[:, :-1]], axis=1)
        s = ((raw & 0x7F).astype(np.uint64) * used << np.arange(0, 70, 7, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        return d, s.view(np.int64)


class Chess(torch.utils.data.IterableDataset):
    def __init__(self, pattern, dtype):
        self.paths = sorted(glob.glob(pattern))
        self.dtype = np.dtype(dtype)

    def records(self):
        """Pieces of BATCH records, by turns from several files, without end."""
        while True:
            waiting = list(self.paths)
            shards = [Shard(waiting.pop(0)) for _ in range(min(FILES_AT_ONCE, len(waiting)))]
            while shards:
                pieces = [shard.take(BATCH // FILES_AT_ONCE) for shard in shards]
                shards = [shard for shard in shards if shard.offset < len(shard.map)]
                while waiting and len(shards) < FILES_AT_ONCE:
                    shards.append(Shard(waiting.pop(0)))
                yield np.concatenate([d for d, _ in pieces]), np.concatenate([s for _, s in pieces])

    def __iter__(self):
        random = np.random.default_rng(7)
        records = self.records()
        pieces = [next(records) for _ in range(BUFFER // BATCH + 1)]
        d = np.concatenate([piece[0] for piece in pieces])
        s = np.concatenate([piece[1] for piece in pieces])
        while True:
            new_d, new_s = next(records)
            places = random.choice(len(d), len(new_d), replace=False, shuffle=False)
            out_d, out_s = d[places], s[places]
            d[places], s[places] = new_d, new_s
            if len(out_d) == BATCH:
                yield self.transform(out_d, out_s)

    def transform(self, d, s):
        pairs = PAIRS.take(d[:, :192], axis=0).reshape(-1, 64, 3, 4)
        board = np.ascontiguousarray(pairs.swapaxes(2, 3)).view(np.int8).reshape(-1, 8, 8, 24)
        bits = np.unpackbits(d[:, 192:], axis=1)
        dtype = self.dtype.type
        mate = bits[:, 10].astype(dtype)
        v = s.astype(dtype)
        score = (1 - mate) * dtype(A) * np.tanh(v / dtype(K)) + mate * np.sign(v) * (
            dtype(A) + dtype((1 - A) / (B - 1)) * np.maximum(dtype(0), dtype(B) - np.abs(v)))
        return board.astype(dtype), bits[:, :10].astype(dtype), score


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", required=True)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--read", action="store_true")
    arguments = parser.parse_args()

    loader = torch.utils.data.DataLoader(Chess(arguments.files, arguments.dtype), batch_size=None, num_workers=0)
    batches = (tuple(tensor.numpy() for tensor in batch) for batch in loader)
    window.measure(batches, window.sum_bytes if arguments.read else window.touch_ends, arguments.seconds)


if __name__ == "__main__":
    main()
