"""One pass over a dataset, as as_numpy_iterator gives it."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock._running._iterator import DatasetIterator


class NumpyIterator(DatasetIterator):
    """The same with NumPy's scalars and bytes in the place of arrays without axes, as as_numpy_iterator gives them."""

    def __next__(self) -> Any:
        return _with_scalars(super().__next__())


def _with_scalars(element):
    if isinstance(element, np.ndarray):
        return element if element.ndim else element[()]
    if isinstance(element, dict):
        return {key: _with_scalars(value) for key, value in element.items()}
    # Sparse tensors are named tuples.
    return tuple(map(_with_scalars, element)) if type(element) is tuple else element
