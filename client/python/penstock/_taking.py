"""NumPy's functions of what the data names: indices, flags, and places among sorted numbers."""

import numpy as np

from penstock import _trace
from penstock._axes import along_axis, counted_from_last, flat
from penstock._trace import TraceError, call


def take(a, indices, axis=None, out=None, mode="raise"):
    if out is not None:
        raise TraceError("np.take into an array", "the result is a value of its own")
    if axis is None:
        a, axis = flat(a), 0
    axis = counted_from_last(axis, a.ndim, "np.take")
    indices = indices if isinstance(indices, _trace.Tensor) else np.asarray(indices)
    if isinstance(indices, _trace.Tensor) or mode != "raise":
        return call("take", (a, indices), {"axis": axis, "mode": mode}, "np.take")
    return a[(*(slice(None),) * (axis + a.ndim), indices if indices.ndim else indices.item())]


def compress(condition, a, axis=None, out=None):
    if out is not None:
        raise TraceError("np.compress into an array", "the result is a value of its own")
    if axis is None:
        a, axis = flat(a), 0
    return call("compress", (condition, a), {"axis": counted_from_last(axis, a.ndim, "np.compress")}, "np.compress")


def searchsorted(a, v, side="left", sorter=None):
    if sorter is not None:
        raise TraceError("np.searchsorted with a sorter", "np.searchsorted(a[sorter], v)")
    a = a if isinstance(a, _trace.Tensor) else np.asarray(a)
    return call("searchsorted", (a, v), {"side": side}, "np.searchsorted")


def digitize(x, bins, right=False):
    bins = np.asarray(bins)
    if np.any(bins[1:] < bins[:-1]):
        raise TraceError("np.digitize with falling boundaries", "give them in rising order")
    return searchsorted(bins, x, "left" if right else "right")


def isin(element, test_elements, assume_unique=False, invert=False, kind=None):
    known = np.unique(np.asarray(test_elements))
    if known.size == 0:
        return ((element == element) & (element != element)) ^ bool(invert)
    place = searchsorted(known, element)
    same = call("take", (known, place), {"mode": "clip"}, "np.isin") == element
    return ~same if invert else same


def is_along_one_axis(items):
    """Whether the last item is a traced value, behind whole axes."""
    *before, index = items
    whole = all(item is Ellipsis or (isinstance(item, slice) and _is_whole(item)) for item in before)
    return isinstance(index, _trace.Tensor) and whole and not any(item is Ellipsis for item in before[:-1])


def _is_whole(item):
    return item.start is None and item.stop is None and item.step is None


def by_traced(a, items):
    """What `a[items]` is of such items: np.take's of integers, np.compress' of flags."""
    *before, index = items
    axis = -1 if before and before[-1] is Ellipsis else len(before)
    return compress(index, a, axis) if index.dtype == bool else take(a, index, axis)


def repeat(a, repeats, axis=None):
    a, before = along_axis(a, axis, "np.repeat")
    size = a.shape[len(before)]
    if size is None or isinstance(repeats, _trace.Tensor):
        raise TraceError("np.repeat as often as only the data tells", "the size of the axis and the number of repeats are known")
    return a[(*before, np.repeat(np.arange(size), repeats))]
