"""Rows that are the elements of an iterable, by their numbers (server/ops/from_generator.cc)."""

import sys

import numpy as np

from penstock import _row
from penstock._worker._arguments import caller
from penstock._worker._describing import describing
from penstock._worker._elements import Elements
from penstock._worker._outputs import Rows
from penstock._worker._results import checked
from penstock._worker._seeds import EveryGenerator

# Behind an element's outputs: its pass, the number behind it, whether it is one, and a state.
_TOLD = 4


def iterating(make, given, configuration, outputs, flatten, progress):
    """What is called for a row, and the Rows that its results go to; `progress`: its words."""
    _be_worker_of_torch(make)
    of_element, name = outputs[:-_TOLD], configuration["name"]
    describe = describing(lambda element: element, name, [], False) if configuration["describes"] else None

    def to_arrays(element):
        tensors = []
        flatten(describe(element) if describe else element, tensors)
        arrays = []
        for output, value in zip(of_element, tensors):
            feature = output.feature
            # Most are as declared.
            is_checked = type(value) is np.ndarray and value.dtype is feature.dtype and value.shape == feature.shape
            arrays.append((value if is_checked else checked(feature, value)).copy())
        return arrays

    def nothing(feature):
        return b"" if feature.is_string and not feature.shape else np.zeros([max(size, 0) for size in feature.shape], feature.dtype or object)

    elements = Elements(
        name, make, to_arrays, [nothing(output.feature) for output in of_element], EveryGenerator() if configuration["seeds"] else None, _row,
        _walk(progress),
    )  # fmt: skip
    return caller(elements, given), _RowsOfIterable(outputs, elements)


def _be_worker_of_torch(make):
    """Where it makes one of several shards, torch's get_worker_info() says which, as in a DataLoader of so many workers: this process makes no other."""
    named = getattr(make, "keywords", {})  # functools.partial, as the client makes it
    worker = sys.modules.get("torch.utils.data._utils.worker")
    if worker is None or "shard_index" not in named or "num_shards" not in named:
        return
    seed = _row.mixed(_row.key, named["shard_index"]) >> 1
    worker._worker_info = worker.WorkerInfo(id=named["shard_index"], num_workers=named["num_shards"], seed=seed, dataset=None)


def _walk(progress):
    """Tells of each element on the way to a row: none is the row's own, and each has its own time."""
    row_at = 0

    def go_through(number):
        """None: the row's own is next."""
        nonlocal row_at
        if number is None:
            progress[1] = row_at
            return
        if progress[1] < 1 << 32:
            row_at = progress[1]
        progress[1] = (number % (1 << 31) + 1) << 32

    return go_through


class _RowsOfIterable(Rows):
    """What Elements gives: its arrays are checked."""

    def __init__(self, outputs, elements):
        super().__init__(outputs, None)
        self.elements = elements

    def put(self, row, made):
        arrays, behind, is_one, state = made
        pass_, number, flag, told = self.outputs[-_TOLD:]
        for output, array in zip(self.outputs, arrays):
            if output.feature.row_bytes is not None:
                output.rows[row] = array
            else:
                self.lay(row, output, array)
        pass_.rows[row] = self.elements.pass_
        number.rows[row] = behind
        flag.rows[row] = is_one
        if state:
            self.lay(row, told, state)
        else:
            told.table[row] = self.end, 0
