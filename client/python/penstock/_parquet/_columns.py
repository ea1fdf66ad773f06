"""What a column is as tensors: a node of its Arrow type, which makes them of arrays.

A node fills nulls with a default, or says where the first one is; and it makes the tensors of many rows at once, without a Python object for each row.

    node          a row of it                                  as it leaves the worker
    Numbers       a number                                     an array (rows,)
    Strings       a string                                     Texts (rows,)
    FixedList     an array of a fixed shape                    an array (rows, size, …)
    Lists         an array (?, …) of numbers                   Texts: the numbers' bytes, which a map decodes
    Struct        a dict                                       that of each field
    ListsOfLists  a dict of values (?,) and row_splits (?,)    Texts of both

Nodes travel by pickle; they hold no arrays.
"""

import numpy as np

from penstock import _row
from penstock._dtypes import string
from penstock._options import TensorSpec


class Null(Exception):
    """A null that has no default.

    Attributes:
      path: of the column, with the fields in it.
      row: the number of the array's first row with one.
    """

    def __init__(self, path, row):
        super().__init__(path, row)
        self.path = path
        self.row = row


def _pa():
    import pyarrow
    import pyarrow.compute

    return pyarrow


def plain(array):
    """The array without what only says how its values are stored."""
    pa = _pa()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _first_null(array):
    return int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))


class Numbers:
    """Numbers, flags and times.

    Args:
      path: of the column, with the fields in it.
      said: the Arrow type, in words.
      dtype: NumPy's.
      way: how an array becomes that: "as is", "integers" (times), "float64" or "unscaled" (decimals).
    """

    def __init__(self, path, said, dtype, way="as is"):
        self.path, self.said, self.dtype, self.way = path, said, np.dtype(dtype), way

    def filled(self, array, default):
        array = plain(array)
        if array.null_count == 0:
            return array
        if default is None:
            raise Null(self.path, _first_null(array))
        pa = _pa()
        return pa.compute.fill_null(array, pa.scalar(default, array.type))

    def tensors(self, array):
        return [self.values(array)]

    def values(self, array):
        pa = _pa()
        if self.way == "integers":
            array = array.cast(pa.int32() if self.dtype.itemsize == 4 else pa.int64())
        elif self.way == "float64":
            return _nearest(array)
        elif self.way == "unscaled":
            words, fits = _unscaled(array)
            if not fits.all():
                raise _row.BadData(f"column {self.path!r} holds {array[int(np.argmin(fits))]}, which has more digits than an int64: read decimals as float64")
            return np.ascontiguousarray(words)
        return array.to_numpy(zero_copy_only=False)

    @property
    def structure(self):
        return None

    def specs(self):
        """Of the tensors of many rows, in order."""
        return [TensorSpec((None,), self.dtype)]

    def unpacked(self, parts, decode):
        """A row's value of the tensors as they come behind unbatch; `parts`: an iterator over them."""
        return next(parts)


def _unscaled(array):
    """Of decimals: their lower 64 bits, and whether these are all that there is. Of 128 bits the lower half comes first."""
    pa = _pa()
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = np.frombuffer(array.buffers()[1] or b"", np.int64)[2 * array.offset : 2 * (array.offset + len(array))].reshape(-1, 2)
    return words[:, 0], words[:, 1] == words[:, 0] >> 63


def _nearest(array):
    """Decimals as float64: the nearest where number and power of ten are float64s, too, else as Arrow casts them."""
    pa = _pa()
    scale = array.type.scale
    if array.type.bit_width <= 128 and 0 <= scale <= 22:
        words, fits = _unscaled(array)
        if fits.all() and (not len(words) or max(-int(words.min()), int(words.max())) <= 1 << 53):
            return words / 10.0**scale
    return array.cast(pa.float64()).to_numpy(zero_copy_only=False)


class Strings:
    """Texts and bytes."""

    structure = None

    def __init__(self, path, said):
        self.path, self.said = path, said

    def filled(self, array, default):
        pa = _pa()
        # Of one type, whatever each file has, so that row groups of several files make one table.
        array = plain(array).cast(pa.large_binary())
        if array.null_count == 0:
            return array
        if default is None:
            raise Null(self.path, _first_null(array))
        return pa.compute.fill_null(array, pa.scalar(default, array.type))

    def tensors(self, array):
        return [self.texts(array)]

    def texts(self, array):
        _, offsets, data = array.buffers()
        if len(array) == 0:
            return _row.Texts(np.empty(0, np.uint32), [])
        ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        pieces = [] if data is None else [memoryview(data)[int(ends[0]) : int(ends[-1])]]
        return _row.Texts(np.diff(ends).astype(np.uint32), pieces)

    def specs(self):
        return [TensorSpec((None,), string)]

    def unpacked(self, parts, decode):
        return next(parts)


class FixedList:
    """Lists of one size: an axis. Of numbers, strings, or such lists."""

    structure = None

    def __init__(self, path, said, size, item):
        self.path, self.said, self.size, self.item = path, said, size, item

    def filled(self, array, default):
        pa = _pa()
        array = plain(array)
        items = array.values.slice(array.offset * self.size, len(array) * self.size)
        if array.null_count:
            if default is None:
                raise Null(self.path, _first_null(array))
            is_there = np.repeat(array.is_valid().to_numpy(zero_copy_only=False), self.size)
            items = pa.compute.if_else(pa.array(is_there), plain(items), pa.scalar(None, plain(items).type))
        try:
            filled = self.item.filled(items, default)
        except Null as null:
            raise Null(null.path, null.row // self.size) from None
        return pa.FixedSizeListArray.from_arrays(filled, self.size)

    def tensors(self, array):
        items = array.values.slice(array.offset * self.size, len(array) * self.size)
        (made,) = self.item.tensors(items)
        shape = (len(array), self.size, *made.shape[1:])
        return [_row.Texts(made.lengths, made.pieces, shape) if type(made) is _row.Texts else made.reshape(shape)]

    def specs(self):
        (spec,) = self.item.specs()
        return [TensorSpec((None, self.size, *spec.shape[1:]), spec.dtype)]

    def unpacked(self, parts, decode):
        return next(parts)


def _ends_and_items(array):
    """Of lists: where each begins and the last one ends, in the items that they have together, and those."""
    ends = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return ends - ends[0], array.values.slice(int(ends[0]), int(ends[-1] - ends[0]))


def _lists_filled(array, fill, has_default, path):
    """Lists without nulls: those that are null are empty where there is a default. `fill`: what fills the items."""
    pa = _pa()
    array = plain(array)
    if array.null_count:
        if not has_default:
            raise Null(path, _first_null(array))
        array = pa.compute.fill_null(array, pa.scalar([], array.type))
    ends, items = _ends_and_items(array)
    try:
        filled = fill(items)
    except Null as null:
        raise Null(null.path, int(np.searchsorted(ends, null.row, "right")) - 1) from None
    return pa.LargeListArray.from_arrays(pa.array(ends), filled)


class Lists:
    """Lists of any size, of numbers or of fixed lists of numbers."""

    structure = None

    def __init__(self, path, said, item):
        self.path, self.said, self.item = path, said, item

    def filled(self, array, default):
        return _lists_filled(array, lambda items: self.item.filled(items, default), default is not None, self.path)

    def tensors(self, array):
        ends, items = _ends_and_items(array)
        (values,) = self.item.tensors(items)
        return [packed(values, ends)]

    def specs(self):
        return [TensorSpec((None,), string)]

    def unpacked(self, parts, decode):
        (spec,) = self.item.specs()
        return decode(next(parts), spec)


def packed(values, ends):
    """Rows of values, (all, …), between those ends, as the bytes of each."""
    values = np.ascontiguousarray(values)
    row_bytes = values.dtype.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
    return _row.Texts((np.diff(ends) * row_bytes).astype(np.uint32), [values.reshape(-1).view(np.uint8)])


class Struct:
    """A dict of fields."""

    def __init__(self, path, fields):
        self.path, self.fields = path, fields

    @property
    def said(self):
        return "{" + ", ".join(f"{name}: {node.said}" for name, node in self.fields.items()) + "}"

    def filled(self, array, default):
        pa = _pa()
        array = plain(array)
        if default is not None and not isinstance(default, dict):
            raise TypeError(f"the default of {self.path!r} is a dict, as the column is one, not {default!r}")
        # With the struct's own nulls in each of them.
        fields = array.flatten()
        made = [node.filled(inner, (default or {}).get(name)) for (name, node), inner in zip(self.fields.items(), fields)]
        return pa.StructArray.from_arrays(made, list(self.fields))

    def tensors(self, array):
        return [tensor for node, inner in zip(self.fields.values(), array.flatten()) for tensor in node.tensors(inner)]

    @property
    def structure(self):
        return {name: node.structure for name, node in self.fields.items()}

    def specs(self):
        return [spec for node in self.fields.values() for spec in node.specs()]

    def unpacked(self, parts, decode):
        return {name: node.unpacked(parts, decode) for name, node in self.fields.items()}


class ListsOfStructs(Struct):
    """Lists of dicts: a dict of lists, which have one size in each row."""

    def filled(self, array, default):
        pa = _pa()
        if default is not None and not isinstance(default, dict):
            raise TypeError(f"the default of {self.path!r} is a dict, as its items are, not {default!r}")

        def fill(items):
            items = plain(items)
            made = [node.item.filled(inner, (default or {}).get(name)) for (name, node), inner in zip(self.fields.items(), items.flatten())]
            return pa.StructArray.from_arrays(made, list(self.fields))

        return _lists_filled(array, fill, default is not None, self.path)

    def tensors(self, array):
        pa = _pa()
        ends, items = _ends_and_items(array)
        lists = [pa.LargeListArray.from_arrays(pa.array(ends), inner) for inner in items.flatten()]
        return [tensor for node, inner in zip(self.fields.values(), lists) for tensor in node.tensors(inner)]


class ListsOfLists:
    """Lists of lists of numbers: their values, and where each of a row's lists begins and the last one ends among these."""

    structure = {"values": None, "row_splits": None}

    def __init__(self, path, said, item):
        self.path, self.said, self.item = path, said, item  # that of the inner lists

    def filled(self, array, default):
        def fill(lists):
            return _lists_filled(lists, lambda items: self.item.filled(items, default), default is not None, self.path)

        return _lists_filled(array, fill, default is not None, self.path)

    def tensors(self, array):
        outer, lists = _ends_and_items(array)
        inner, items = _ends_and_items(lists) if len(lists) else (np.zeros(1, np.int64), lists.values.slice(0, 0))
        (values,) = self.item.tensors(items)
        # A row of n lists has n + 1 splits.
        counts = np.diff(outer) + 1
        ends = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(ends[-1]) - np.repeat(ends[:-1] - outer[:-1], counts)
        splits = inner[at] - np.repeat(inner[outer[:-1]], counts)
        return [packed(values, inner[outer]), packed(splits, ends)]

    def specs(self):
        return [TensorSpec((None,), string), TensorSpec((None,), string)]

    def unpacked(self, parts, decode):
        (spec,) = self.item.specs()
        return {"values": decode(next(parts), spec), "row_splits": decode(next(parts), TensorSpec((None,), np.int64))}
