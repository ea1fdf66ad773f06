"""Records of a source of known bytes, for side_parquet.py."""

import penstock


class Records(penstock.io.Source):
    """Args: count, size: how many, of how many bytes each."""

    def __init__(self, count, size):
        self.count, self.size = count, size

    def read(self, position):
        data = bytes(self.size)
        for number in range(int.from_bytes(position or b"", "little"), self.count):
            yield data, (number + 1).to_bytes(8, "little")
