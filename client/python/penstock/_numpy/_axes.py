"""Axes, sizes and counts as NumPy's functions are given them."""

import math
import operator

import numpy as np

from penstock._tracing import _constants, _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def to_integer(value, what):
    """An int of a size, an axis or a count; NumPy's will do."""
    if isinstance(value, (bool, np.bool_, _trace.StandIn)) or not hasattr(value, "__index__"):
        raise TraceError(f"{what} {value!r}", "it is one integer, a constant")
    return operator.index(value)


def to_integers(values, what):
    """The ints of a tuple, a list, an array, or one of them."""
    several = isinstance(values, (tuple, list)) or isinstance(values, np.ndarray) and values.ndim == 1
    return [to_integer(value, what) for value in (values if several else (values,))]


def to_axis(axis, ndim, shown):
    """An axis, counted from the first."""
    axis = to_integer(axis, f"{shown} along the axis")
    if not -ndim <= axis < ndim:
        known = f"axes are from {-ndim} to {ndim - 1}" if ndim else "it has no axes"
        raise TraceError(f"{shown} along the axis {axis} of {ndim}", known)
    return axis % ndim


def to_axes(axes, ndim, shown):
    """One axis or several, counted from the first."""
    axes = [to_axis(axis, ndim, shown) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len({*axes}) != len(axes):
        raise TraceError(f"{shown} along an axis that is named twice", "each axis once")
    return axes


def counted_from_last(axis, ndim, shown):
    """The same, from -1, the last one, down."""
    return to_axis(axis, ndim, shown) - ndim


def as_array(a):
    """A traced value as it is; a list, or whatever else NumPy takes for an array, as one."""
    return a if isinstance(a, _trace.StandIn) else _constants.packed(a)


def flat(a):
    """All values as one axis."""
    if not isinstance(a, _trace.StandIn):
        return np.ravel(a)
    if a.ndim == 1:
        return a
    return reshaped_to_rows(a, [-1], "np.ravel")


def reshaped_to_rows(a, sizes, shown):
    """The array under a shape of constants, the first of which may be what is left over (-1)."""
    if sizes[0] == -1 and 0 not in sizes and None in a.shape[1:] and a._trace.is_batched():
        # The language would take the first axis for the batch's rows, as whose number the sizes of the others do not tell another one.
        return reshaped_by_data(a, [np.prod(call("shape", (a,), {}, shown)) // math.prod(sizes[1:]), *sizes[1:]], shown)
    return call("reshape", (a, sizes), {}, shown)


def along_axis(a, axis, shown):
    """The array, flat without an axis, and the beginning of a subscript up to that axis."""
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    axis = counted_from_last(axis, a.ndim, shown) + a.ndim
    return a, (slice(None),) * axis


def axes_last(a, axes, shown):
    """The array with the axes of a reduction as one, behind the others."""
    kept = [x for x in range(a.ndim) if x not in axes]
    shape = a.shape
    sizes = [shape[x] for x in kept]
    if len(axes) > 1 and (any(shape[x] is None for x in axes) or sizes.count(None) > 1):
        raise TraceError(f"{shown} over several axes of sizes that only the data tells", "resize, crop or pad before it")
    order = [*kept, *axes]
    moved = a if order == sorted(order) else call("transpose", (a, order), {}, shown)
    if len(axes) == 1:
        return moved
    merged = math.prod(shape[x] for x in axes)
    return np.reshape(moved, [-1 if size is None else size for size in sizes] + [merged])


def expanded(a, axes):
    """The array with axes of a size of one more, which then stand where `axes` says, counted from the first."""
    return a[tuple(None if x in axes else slice(None) for x in range(a.ndim + len(axes)))]


def reshaped_by_data(a, shape, shown="np.reshape"):
    """The array under a shape of which the data tells some sizes, a list or a traced one; those that are constants stay known."""
    if isinstance(shape, _trace.StandIn):
        return call("reshape", (a, shape if shape.ndim else shape[None]), {}, shown)
    sizes = [-1 if size is None else size for size in shape]
    reshaped = call("reshape", (a, sizes), {}, shown)
    known = [-1 if isinstance(size, _trace.StandIn) else to_integer(size, f"{shown} to the size") for size in sizes]
    return reshaped if set(known) == {-1} else call("ensure_shape", (reshaped, known), {}, shown)


def sizes_of(a):
    """The size of each axis: an int, or a traced integer where only the data tells it."""
    if None not in a.shape:
        return list(a.shape)
    told = call("shape", (a,), {}, "np.shape")
    return [told[i] if size is None else size for i, size in enumerate(a.shape)]


def counted(size):
    """The integers below a size: an array, or a traced value where the size is one."""
    return call("arange", (size,), {}, "np.arange") if isinstance(size, _trace.StandIn) else np.arange(size)


def wrapped(a, dtype):
    """Integers in another type of integers, where they wrap; a cast would saturate."""
    dtype = np.dtype(dtype)
    if a.dtype == dtype:
        return a
    if dtype.itemsize < 8:
        span = 1 << 8 * dtype.itemsize
        if dtype.kind == "u":
            return (a.astype(_of_64_bits(a.dtype)) & (span - 1)).astype(dtype)
        return (((a.astype(_of_64_bits(a.dtype)) + span // 2) & (span - 1)).astype(np.int64) - span // 2).astype(dtype)
    if a.dtype.kind != dtype.kind and (a.dtype.kind == "i" or a.dtype.itemsize == 8):
        # The lower 63 bits, and the highest.
        wide = a.astype(_of_64_bits(a.dtype))
        highest = dtype.type(1 << 63) if dtype.kind == "u" else dtype.type(-(1 << 63))
        return (wide & ((1 << 63) - 1)).astype(dtype) | np.where(wide < 0 if a.dtype.kind == "i" else wide >> 63 != 0, highest, dtype.type(0))
    return a.astype(dtype)


def _of_64_bits(dtype):
    return np.uint64 if dtype.kind == "u" else np.int64
