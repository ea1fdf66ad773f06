"""NumPy's functions of what the data names: indices, flags, and places among sorted numbers."""

import numpy as np

from penstock._numpy._axes import along_axis, counted, counted_from_last, flat, sizes_of
from penstock._tracing import _constants, _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def take(a, indices, axis=None, out=None, mode="raise"):
    if out is not None:
        raise TraceError("np.take into an array", "the result is a value of its own")
    if axis is None:
        a, axis = flat(a), 0
    axis = counted_from_last(axis, a.ndim, "np.take")
    indices = indices if isinstance(indices, _trace.StandIn) else np.asarray(indices)
    if isinstance(indices, _trace.StandIn) or mode != "raise":
        return call("take", (a, indices), {"axis": axis, "mode": mode}, "np.take")
    return a[(*(slice(None),) * (axis + a.ndim), indices if indices.ndim else indices.item())]


def compress(condition, a, axis=None, out=None):
    if out is not None:
        raise TraceError("np.compress into an array", "the result is a value of its own")
    a = a if isinstance(a, _trace.StandIn) else np.asarray(a)
    if axis is None:
        a, axis = flat(a), 0
    if not isinstance(condition, _trace.StandIn):
        condition = np.asarray(condition)
    condition = condition if condition.dtype == bool else condition != 0
    return call("compress", (condition, a), {"axis": counted_from_last(axis, a.ndim, "np.compress")}, "np.compress")


def searchsorted(a, v, side="left", sorter=None):
    if sorter is not None:
        raise TraceError("np.searchsorted with a sorter", "np.searchsorted(a[sorter], v)")
    a = a if isinstance(a, _trace.StandIn) else np.asarray(a)
    # Flags are ordered as the numbers that they are.
    a, v = (x.astype(np.int8) if getattr(x, "dtype", None) == bool else x for x in (a, v))
    return call("searchsorted", (a, v), {"side": side}, "np.searchsorted")


def digitize(x, bins, right=False):
    bins = np.asarray(bins)
    if np.any(bins[1:] < bins[:-1]):
        raise TraceError("np.digitize with falling boundaries", "give them in rising order")
    return searchsorted(bins, x, "left" if right else "right")


def isin(element, test_elements, assume_unique=False, invert=False, kind=None):
    known = np.asarray(test_elements)
    if known.dtype.kind in "OSU" and known.size:
        words = list(dict.fromkeys(_constants.texts(known)))
        return (call("string_lookup", (element,), {"vocabulary": words, "default": -1}, "np.isin") >= 0) ^ bool(invert)
    known = np.unique(known)
    if known.size == 0:
        return ((element == element) & (element != element)) ^ bool(invert)
    place = searchsorted(known, element)
    same = call("take", (known, place), {"mode": "clip"}, "np.isin") == element
    return ~same if invert else same


def nonzero(a):
    """The places of what is not zero, for each axis: as many as the data has."""
    if a.ndim == 0:
        raise TraceError("np.nonzero of a number", "np.where(condition, a, b)")
    shape = a.shape
    flags = flat(a) if a.dtype == bool else flat(a) != 0
    if None in shape:
        sizes = sizes_of(a)
        places = compress(flags, counted(np.size(flags)))
        found = []
        for size in reversed(sizes[1:]):
            found.append(places % size)
            places = places // size
        return (places, *reversed(found))
    return tuple(compress(flags, places.ravel()) for places in np.indices(shape))


def take_along_axis(arr, indices, axis=-1):
    shown = "np.take_along_axis"
    if axis is None:
        arr, axis = flat(arr), 0
    axis = counted_from_last(axis, arr.ndim, shown) + arr.ndim
    # Narrow integers hold no place among many.
    indices = indices.astype(np.int64) if indices.dtype.kind in "iu" else indices
    own, wanted = arr.shape, indices.shape
    if indices.ndim != arr.ndim:
        raise TraceError(f"{shown} of values of shape {own} and indices of shape {wanted}", "both have as many axes")
    if any(i != axis and None not in (size, to) and size != to for i, (size, to) in enumerate(zip(own, wanted))):
        raise TraceError(f"{shown} of values of shape {own} and indices of shape {wanted}", "the sizes are the same along the other axes")
    if None in own:
        return _taken_along(arr, indices, axis)
    # Where each row along the axis begins, and how far apart its values are.
    first = np.take(np.arange(np.prod(own)).reshape(own), [0], axis)
    step = int(np.prod(own[axis + 1 :]))
    if not isinstance(indices, _trace.StandIn):
        return flat(arr)[np.where(indices < 0, indices + own[axis], indices) * step + first]
    size = own[axis]
    # One that is outside becomes one that is outside of all, and not another row's.
    place = np.where(indices < 0, indices + size, indices).astype(np.int64)
    place = np.where((place >= 0) & (place < size), place * step + first, int(np.prod(own)))
    return call("take", (flat(arr), place), {}, shown)


def _taken_along(arr, indices, axis):
    """The same of sizes that only the data tells."""
    sizes = sizes_of(arr)
    size, step, first, before = sizes[axis], 1, 0, 1
    for i in reversed(range(arr.ndim)):
        if i == axis:
            step = before
        else:
            first = first + np.reshape(counted(sizes[i]), [-1 if at == i else 1 for at in range(arr.ndim)]) * before
        before = before * sizes[i]
    place = np.where(indices < 0, indices + size, indices).astype(np.int64)
    # One that is outside becomes one that is outside of all, and not another row's.
    place = np.where((place >= 0) & (place < size), place * step + first, before)
    return call("take", (flat(arr), place), {}, "np.take_along_axis")


def _repeated_by_data(a, repeats, before):
    """Each place as often as the data tells, or all of them equally often."""
    axis = len(before)
    size = sizes_of(a)[axis]
    # Narrow integers hold no length of many.
    repeats = repeats.astype(np.int64) if repeats.dtype.kind in "iu" else repeats
    # A negative number is an error, as the length that it stands for.
    if not repeats.ndim:
        places = counted(np.where(repeats < 0, 1 << 60, size * repeats)) // repeats
    else:
        # One number of repeats stands for all places.
        each = np.where(counted(size) >= 0, repeats, repeats)
        places = searchsorted(np.cumsum(each), counted(np.where(np.any(each < 0), 1 << 60, np.sum(each))), "right")
    return take(a, places, axis)


def repeat(a, repeats, axis=None):
    a, before = along_axis(a, axis, "np.repeat")
    shape = a.shape
    size = shape[len(before)]
    if isinstance(repeats, _trace.StandIn):
        return _repeated_by_data(a, repeats, before)
    if size is None:
        others = [*shape[: len(before)], *shape[len(before) + 1 :]]
        if np.ndim(repeats) or repeats < 1 or None in others:
            raise TraceError("np.repeat along an axis of a size that only the data tells",
                             "one number of repeats, where the other sizes are known")  # fmt: skip
        several = a[(*before, slice(None), None)][(*before, slice(None), np.zeros(repeats, np.int64))]
        return np.reshape(several, [*shape[: len(before)], -1, *shape[len(before) + 1 :]])
    return a[(*before, np.repeat(np.arange(size), repeats))]
