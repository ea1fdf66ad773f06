"""Features, and where the rows of each lie on a tray (server/python/sheet_form.h)."""

import numpy as np

# Rows of a variable size are copied whole by the daemon, which counts their bytes in 32 bits.
MAX_ROW_BYTES = (1 << 32) - 1

TYPES = {
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "string",
}  # fmt: skip


def aligned(offset):
    return (offset + 63) & ~63


class Feature:
    """A feature's name, type and shape.

    Attributes:
      row_bytes: of a row, where all have as many; else None.
      casts: whether NumPy's numbers of another type become its own.
    """

    def __init__(self, described, casts=False):
        self.name = described["name"]
        self.casts = casts
        self.is_string = described["dtype"] == "string"
        self.dtype = None if self.is_string else np.dtype(described["dtype"])
        self.shape = tuple(described["shape"])
        self.row_bytes = None
        if -1 not in self.shape and not self.is_string:
            self.row_bytes = self.dtype.itemsize
            for size in self.shape:
                self.row_bytes *= size

    def __str__(self):
        sizes = ", ".join("None" if size == -1 else str(size) for size in self.shape)
        return f"{'string' if self.is_string else self.dtype.name} ({sizes}{',' if len(self.shape) == 1 else ''})"


def places(features, rows):
    """Where each feature of so many rows begins, with its sizes where its rows have their own; and what lies behind them all."""
    found, offset = [], 0
    for feature in features:
        offset = aligned(offset)
        if feature.row_bytes is not None:
            found.append((offset, None))
            offset += rows * feature.row_bytes
        else:
            sizes = aligned(offset + rows * 16)
            found.append((offset, sizes))
            offset = sizes + rows * 8 * len(feature.shape)
    return found, aligned(offset)
