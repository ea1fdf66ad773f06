"""default_collate without a copy more than the one that it is for: arrays go into the batch's memory as the dataset gives them, one by one.

An array that has just been made lies in the processor's cache, and its memory is used again for the next one. torch stacks when all are there: they have left the
cache by then, and each batch takes and gives back the memory of all of them.

    dataset[i] ──► Stacking.moved(): into row i of a column ──► default_collate of views ──► stacked(): the column itself

Structures, and whatever differs from the batch's first element, are default_collate's own affair.
"""

import operator

import numpy as np

# Smaller ones cost more to follow than to copy.
_MIN_BYTES = 4096


def is_plain_array(value):
    """Whether default_collate gives a tensor of the same bytes for it."""
    return type(value) is np.ndarray and value.ndim > 0 and value.size > 0 and value.dtype.isnative and value.dtype.kind in "biufc"


def is_plain_tensor(torch, value):
    """Whether its values are its bytes."""
    if type(value) is not torch.Tensor or value.layout is not torch.strided or value.device.type != "cpu" or value.requires_grad:
        return False
    return not (value.is_nested or value.is_quantized or value.is_conj() or value.is_neg()) and value.ndim > 0


class _Column:
    """The rows of one array of the elements.

    Attributes:
      array: an array or a tensor of shape (rows, …).
      dtype, shape: of a row.
      views: of the rows that are there, in order.
    """

    __slots__ = ("array", "dtype", "shape", "views")

    def __init__(self, array, row):
        self.array = array
        self.dtype = row.dtype
        self.shape = row.shape
        self.views = []


class Stacking:
    """Of one worker process; a batch at a time.

    Args:
      arena: the batch's memory (_payload.Arena).
    """

    def __init__(self, torch, arena):
        self._torch = torch
        self._arena = arena
        self._takers = {np.ndarray: self._array, torch.Tensor: self._tensor, tuple: self._tuple, list: self._list, dict: self._dict}
        self.begin(0)

    def begin(self, rows):
        """A new batch, of so many rows at most; none are moved of 0."""
        self._rows = rows
        self._row = -1
        self._leaf = 0
        self._columns = []
        self._by_first = {}

    def moved(self, element):
        """The element with views in the place of its larger arrays."""
        if not self._rows:
            return element
        self._row += 1
        self._leaf = 0
        return self._moved(element)

    def stacked(self, batch):
        """The column whose rows these are, of all rows or the first ones; None where they are no column's."""
        column = self._by_first.get(id(batch[0]))
        if column is None or len(batch) != len(column.views) or not all(map(operator.is_, batch, column.views)):
            return None
        return column.array[: len(batch)]

    def _moved(self, value):
        take = self._takers.get(type(value))
        return value if take is None else take(value)

    def _tuple(self, value):
        return tuple([self._moved(inner) for inner in value])

    def _list(self, value):
        return [self._moved(inner) for inner in value]

    def _dict(self, value):
        return {key: self._moved(inner) for key, inner in value.items()}

    def _array(self, value):
        column = self._column(value)
        if column is None:
            return value
        view = column.array[self._row]
        view[...] = value
        return self._kept(column, view)

    def _tensor(self, value):
        column = self._column(value)
        if column is None or value.requires_grad:
            return value
        view = column.array[self._row]
        view.copy_(value)
        return self._kept(column, view)

    def _kept(self, column, view):
        if not column.views:
            self._by_first[id(view)] = column
        column.views.append(view)
        return view

    def _column(self, value):
        """The column that a row belongs to; None where it has none, or is of another kind than its first row."""
        leaf = self._leaf
        self._leaf += 1
        if self._row == 0:
            column = self._new_column(value)
            self._columns.append(column)
            return column
        column = self._columns[leaf] if leaf < len(self._columns) else None
        if column is None or len(column.views) != self._row or value.shape != column.shape or value.dtype != column.dtype:
            return None
        return column

    def _new_column(self, value):
        is_array = type(value) is np.ndarray
        is_plain = is_plain_array(value) if is_array else is_plain_tensor(self._torch, value)
        if not is_plain or value.nbytes < _MIN_BYTES:
            return None
        room = self._arena.room(self._rows * value.nbytes)
        if room is None:
            return None
        if is_array:
            column = _Column(room.view(value.dtype).reshape(self._rows, *value.shape), value)
        else:
            column = _Column(self._torch.from_numpy(room).view(value.dtype).view(self._rows, *value.shape), value)
        return column


class MovedRows:
    """A dataset whose elements are moved into the batch: what torch's fetcher sees in the place of it."""

    def __init__(self, dataset, stacking):
        self._dataset = dataset
        self._moved = stacking.moved

    def __getitem__(self, index):
        return self._moved(self._dataset[index])


class MovedElements:
    """The same of an iterator."""

    def __init__(self, iterator, stacking):
        self._iterator = iterator
        self._moved = stacking.moved

    def __iter__(self):
        return self

    def __next__(self):
        return self._moved(next(self._iterator))
