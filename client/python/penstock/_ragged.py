"""Tensors whose rows have different lengths."""

from typing import Any

import numpy as np


class RaggedTensor:
    """Rows of different lengths: row i is values[row_splits[i]:row_splits[i + 1]].

    The model is tf.RaggedTensor (https://www.tensorflow.org/guide/ragged_tensor): with several
    ragged axes `values` is a RaggedTensor itself, and the axes behind the ragged ones are those of
    the innermost array. Batches of a Loader hold arrays over the ring's memory, without a copy. It is
    frozen: attributes cannot be set.

    Attributes:
      values: all rows, one after another; an array of shape (row_splits[-1], ...), or a
        RaggedTensor of as many rows.
      row_splits: int64 or int32 array of shape (rows + 1,); begins with 0 and never falls.

    Raises:
      ValueError: row_splits do not begin with 0, or do not end with the length of values.
    """

    __slots__ = ("values", "row_splits")

    def __init__(self, values: Any, row_splits: Any) -> None:
        if row_splits.ndim != 1 or len(row_splits) == 0:
            raise ValueError(f"row_splits have one axis and a first element: {row_splits.shape}")
        if row_splits[0] != 0 or row_splits[-1] != len(values):
            raise ValueError(
                "row_splits begin with 0 and end with the number of values, which is "
                f"{len(values)}: {row_splits[0]} and {row_splits[-1]}"
            )
        self._set(values, row_splits)

    def _set(self, values, row_splits):
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "row_splits", row_splits)
        return self

    def _converted(self, convert):
        """The same of what `convert` makes of each array. Nobody looks into these: they may lie on a device."""
        values = self.values._converted(convert) if isinstance(self.values, RaggedTensor) else convert(self.values)
        return object.__new__(RaggedTensor)._set(values, convert(self.row_splits))

    def __setattr__(self, name, value):
        raise AttributeError(f"a RaggedTensor is frozen: {name} cannot be set")

    def __delattr__(self, name):
        raise AttributeError(f"a RaggedTensor is frozen: {name} cannot be deleted")

    def __reduce__(self):
        return RaggedTensor, (self.values, self.row_splits)

    @property
    def flat_values(self):
        """The innermost values: an array of shape (elements, ...)."""
        values = self.values
        while isinstance(values, RaggedTensor):
            values = values.values
        return values

    @property
    def nested_row_splits(self):
        """The row splits of every ragged axis, the outermost first."""
        splits = [self.row_splits]
        values = self.values
        while isinstance(values, RaggedTensor):
            splits.append(values.row_splits)
            values = values.values
        return tuple(splits)

    @property
    def ragged_rank(self):
        """The number of ragged axes."""
        return len(self.nested_row_splits)

    @property
    def dtype(self):
        """The element type; object for strings, whose elements are bytes."""
        return self.flat_values.dtype

    @property
    def shape(self):
        """The sizes of the axes, with None for a ragged one: (rows, None, ...)."""
        values = self.values
        return (len(self), None) + tuple(values.shape[1:])

    def with_row_splits_dtype(self, dtype):
        """The same with row splits of int32 or int64, as tf.RaggedTensor.with_row_splits_dtype."""
        dtype = np.dtype(dtype)
        if dtype not in (np.int32, np.int64):
            raise ValueError(f"row splits are int32 or int64, not {dtype}")
        if self.row_splits[-1] > np.iinfo(dtype).max:
            raise ValueError(f"more values than {dtype} counts: {self.row_splits[-1]}")
        is_ragged = isinstance(self.values, RaggedTensor)
        values = self.values.with_row_splits_dtype(dtype) if is_ragged else self.values
        splits = self.row_splits
        if hasattr(splits, "astype"):
            return RaggedTensor(values, splits.astype(dtype, copy=False))
        # torch's
        return RaggedTensor(values, splits.int() if dtype == np.int32 else splits.long())

    def row_lengths(self):
        """The length of each row: of row_splits' type, shape (rows,)."""
        return np.diff(self.row_splits)

    def to_list(self):
        """Nested lists of Python's numbers or bytes."""
        is_ragged = isinstance(self.values, RaggedTensor)
        values = self.values.to_list() if is_ragged else self.values.tolist()
        splits = self.row_splits.tolist()
        return [values[first:last] for first, last in zip(splits, splits[1:])]

    def __len__(self):
        return self.row_splits.shape[0] - 1

    def __getitem__(self, index):
        """Row `index`: a view of the values. A slice of rows: a RaggedTensor over them."""
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                raise IndexError(f"rows are sliced with step 1 only: {step}")
            splits = self.row_splits[first : max(first, last) + 1]
            return RaggedTensor(self.values[splits[0] : splits[-1]], splits - splits[0])
        rows = len(self)
        if not -rows <= index < rows:
            raise IndexError(f"there are {rows} rows: {index}")
        index %= rows
        return self.values[self.row_splits[index] : self.row_splits[index + 1]]

    def __iter__(self):
        return (self[row] for row in range(len(self)))

    def __repr__(self):
        shape = ", ".join("None" if size is None else str(size) for size in self.shape)
        if not hasattr(self.row_splits, "__getitem__"):
            return f"RaggedTensor(shape=({shape}), dtype={self.dtype})"  # of arrays on a device, which have no rows to show
        shown = repr(self[:3].to_list())
        if len(shown) > 200:
            shown = shown[:200] + "..."
        more = ", first rows" if len(self) > 3 else ""
        return f"RaggedTensor(shape=({shape}), dtype={self.dtype}{more}: {shown})"
