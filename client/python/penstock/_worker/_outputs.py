"""Results on their way into a tray."""

import collections

import numpy as np

from penstock import _row
from penstock._worker._errors import Refused
from penstock._worker._features import MAX_ROW_BYTES, Feature, aligned, places
from penstock._worker._results import checked, described, elements_of


class Output:
    """Writes one output's rows into a tray.

    Attributes:
      of_each: where a function yields elements, the feature of each of them.
    """

    def __init__(self, described, casts, yields):
        self.feature = Feature(described, casts)
        self.packs = "packed" in described
        if self.packs:
            described = {"name": described["name"], "dtype": described["packed"], "shape": described["packed_shape"]}
        elif yields:
            described = {**described, "shape": described["shape"][1:]}
        self.of_each = Feature(described, casts)

    def joined(self, values):
        """A row of the checked values of what a function has yielded."""
        if self.packs:
            values = [np.array(value.shape, np.int64).tobytes() + value.tobytes() for value in values]
        elif self.of_each.shape:
            return np.stack(values) if values else np.empty((0, *self.of_each.shape), self.of_each.dtype or object)
        row = np.empty(len(values), object if self.feature.is_string else self.feature.dtype)
        for i, value in enumerate(values):
            row[i] = value if self.packs else value[()]
        return row

    def begin(self, memory, place, rows):
        values, sizes = place
        if self.feature.row_bytes is not None:
            self.rows = np.ndarray((rows, *self.feature.shape), self.feature.dtype, memory, values)
            return
        self.table = np.ndarray((rows, 2), np.uint64, memory, values)
        self.axes = np.ndarray((rows, len(self.feature.shape)), np.int64, memory, sizes)

    def encoded(self, value):
        """The bytes of a row of a size of its own, as one object or several, how many bytes they are, and the shape."""
        name = self.feature.name
        array = checked(self.feature, value)
        if type(array) is _row.Texts:
            lengths = np.ascontiguousarray(array.lengths, np.uint32).view(np.uint8)
            pieces = array.pieces
            if not set(map(type, pieces)) <= {bytes}:
                pieces = [piece if type(piece) is bytes else _bytes_of(piece) for piece in pieces]
            return [lengths, *pieces], len(lengths) + sum(map(len, pieces)), array.shape
        if not self.feature.is_string:
            return [np.ascontiguousarray(array).reshape(-1).view(np.uint8)] if array.size else [], array.nbytes, array.shape
        texts = []
        for text in array.reshape(-1).tolist():
            if isinstance(text, str):
                text = text.encode("utf-8", "surrogateescape")
            elif not isinstance(text, bytes):
                raise Refused(f"{described(text)} for {name!r}, not a string")
            texts.append(text)
        if array.ndim == 0:
            return texts, len(texts[0]), ()
        lengths = [len(text) for text in texts]
        if max(lengths, default=0) > MAX_ROW_BYTES:
            raise Refused(f"a string of {max(lengths)} bytes for {name!r}, more than a row may have: {MAX_ROW_BYTES}")
        return [np.array(lengths, np.uint32).tobytes(), *texts], 4 * len(texts) + sum(lengths), array.shape


def _bytes_of(piece):
    view = memoryview(piece)
    # An empty one cannot be cast.
    return view.cast("B") if view.nbytes else b""


class Rows:
    """Writes the results of a sheet's rows into its tray: one for each.

    Attributes:
      end: the bytes of the tray that are used.
    """

    def __init__(self, outputs, flatten):
        self.outputs = outputs
        self.flatten = flatten
        self.given_room = None
        _row.room = self.room

    def room(self, size):
        """See _row.room."""
        self.tray.reach_outputs(self.end + size)
        self.given_room = np.ndarray((size,), np.uint8, self.tray.outputs, self.end)
        return self.given_room

    def lies_there(self, value):
        """Whether the value is the beginning of what room() gave for this row."""
        room, self.given_room = self.given_room, None
        if room is None or type(value) is not np.ndarray or not value.size:
            return False
        place, start = value.__array_interface__["data"][0], room.__array_interface__["data"][0]
        return place == start and value.nbytes <= room.nbytes and value.flags.c_contiguous

    def begin(self, tray, rows):
        found, end = places([output.feature for output in self.outputs], rows)
        tray.reach_outputs(end)
        self.tray, self.end = tray, end
        for output, place in zip(self.outputs, found):
            output.begin(tray.outputs, place, rows)

    def put(self, row, made):
        tensors = []
        self.flatten(made, tensors)
        for output, value in zip(self.outputs, tensors):
            if output.feature.row_bytes is not None:
                output.rows[row] = checked(output.feature, value)
            else:
                self.lay(row, output, value)

    def lay(self, row, output, value):
        """Of a size of its own: behind what the tray holds."""
        parts, size, shape = output.encoded(value)
        if size > MAX_ROW_BYTES:
            raise Refused(f"{size} bytes for {output.feature.name!r}, more than a row may have: {MAX_ROW_BYTES}")
        start = self.end
        self.tray.reach_outputs(start + size)
        if not self.lies_there(value):
            outputs = self.tray.outputs
            outputs.seek(start)
            # Without a step of Python's for each.
            collections.deque(map(outputs.write, parts), maxlen=0)
        output.table[row] = start, size
        output.axes[row] = shape
        self.end = aligned(start + size)


class RowsOfElements(Rows):
    """Any number of elements for each row, joined along an axis of their own."""

    def put(self, row, made):
        columns, size = [[] for _ in self.outputs], 0
        for element in elements_of(made):
            tensors = []
            self.flatten(element, tensors)
            for output, value, values in zip(self.outputs, tensors, columns):
                array = checked(output.of_each, value)
                size += array.nbytes
                if size > MAX_ROW_BYTES:
                    raise Refused(f"more than {MAX_ROW_BYTES} bytes of elements for one")
                # What it yields may be a buffer that it writes into again.
                values.append(array.copy() if array is value else array)
        for output, values in zip(self.outputs, columns):
            self.lay(row, output, output.joined(values))
