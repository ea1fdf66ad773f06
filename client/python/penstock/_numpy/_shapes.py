"""NumPy's functions that give the same values another shape, or more around them."""

import math

import numpy as np

from penstock._numpy._axes import expanded, reshaped_by_data, reshaped_to_rows, to_axes, to_axis, to_integer, to_integers
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import StandIn, find_trace


def expand_dims(a, axis):
    ndim = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    return expanded(a, to_axes(axis, ndim, "np.expand_dims"))


def squeeze(a, axis=None):
    shape = a.shape
    if axis is None and None in shape:
        raise TraceError(
            f"np.squeeze of a value of shape {shape}, where only the data tells which axes have a size of 1",
            "name the axes that are left out: np.squeeze(x, axis=-1)",
        )
    wanted = [i for i, n in enumerate(shape) if n == 1] if axis is None else to_axes(axis, len(shape), "np.squeeze")
    for x in wanted:
        if shape[x] != 1:
            size = "a size that only the data tells" if shape[x] is None else f"size {shape[x]}"
            raise TraceError(f"np.squeeze of the axis {x}, of {size}", "only axes of size 1 can be left out")
    return a[tuple(0 if x in wanted else slice(None) for x in range(len(shape)))]


def flip(m, axis=None, shown="np.flip"):
    ndim = m.ndim
    wanted = range(ndim) if axis is None else to_axes(axis, ndim, shown)
    return m[tuple(slice(None, None, -1) if x in wanted else slice(None) for x in range(ndim))]


def rot90(m, k=1, axes=(0, 1)):
    first, second = to_axes(tuple(axes), m.ndim, "np.rot90")
    turns = to_integer(k, "np.rot90 by quarters") % 4
    if turns % 2 == 0:
        return flip(m, (first, second)) if turns else m
    turned = swapaxes(flip(m, second) if turns == 1 else m, first, second)
    return turned if turns == 1 else flip(turned, second)


def moveaxis(a, source, destination):
    shown, ndim = "np.moveaxis", a.ndim
    source, destination = to_axes(source, ndim, shown), to_axes(destination, ndim, shown)
    if len(source) != len(destination):
        raise TraceError(f"np.moveaxis of {len(source)} axes to {len(destination)} places", "one place for each axis")
    order = [x for x in range(ndim) if x not in source]
    for to, x in sorted(zip(destination, source)):
        order.insert(to, x)
    return call("transpose", (a, order), {}, shown)


def swapaxes(a, axis1, axis2):
    order = list(range(a.ndim))
    i, j = (to_axis(axis, len(order), "np.swapaxes") for axis in (axis1, axis2))
    order[i], order[j] = order[j], order[i]
    return call("transpose", (a, order), {}, "np.swapaxes")


def shape(a):
    """Known sizes as numbers; where one is a matter of the data, a traced tensor."""
    shape = a.shape
    return call("shape", (a,), {}, "np.shape") if None in shape else shape


def _sizes_with_rest(a, shape):
    """The sizes of a reshape, where None of x.shape, such as the rows of a batch, is what is left over."""
    if not isinstance(shape, (tuple, list)) or sum(size is None for size in shape) != 1:
        return shape
    sizes = [*shape]
    if any(isinstance(size, StandIn) for size in sizes):
        return shape
    own = a.shape
    if -1 in sizes and sizes[0] is None and own.count(None) == 1 and own[0] is None and sizes.count(-1) == 1:
        # x.reshape(x.shape[0], -1): the axis that stays is the one whose size nobody knows.
        others = math.prod(size for size in sizes if size not in (None, -1))
        known = math.prod(own[1:])
        if others > 0 and known % others == 0:
            sizes[sizes.index(-1)] = known // others
    if -1 in sizes and sizes[0] is None and None in own[1:]:
        # As many as x has along its first axis.
        return [call("shape", (a,), {}, "np.reshape")[0], *sizes[1:]]
    return sizes if -1 in sizes else [-1 if size is None else size for size in sizes]


def size(a, axis=None):
    """The number of elements, or of those along an axis, as shape."""
    if axis is not None:
        return shape(a)[to_axis(axis, a.ndim, "np.size")]
    return np.prod(shape(a)) if None in a.shape else math.prod(a.shape)


def reshape(a, shape=None, order="C", *, newshape=None, copy=None):
    if order != "C":
        raise TraceError(f"np.reshape in order {order}", "np.reshape(x.T, sizes[::-1]).T is in order F; np.ravel(x.T) is flat in it")
    shape = shape if shape is not None else newshape
    if find_trace([shape]) is not None:
        return reshaped_by_data(a, shape)
    shape = _sizes_with_rest(a, shape)
    if find_trace([shape]) is not None:
        return reshaped_by_data(a, shape)
    sizes = to_integers(shape, "np.reshape to the size")
    return reshaped_to_rows(a, sizes, "np.reshape") if sizes else squeeze(a, tuple(range(a.ndim)))


def pad(array, pad_width, mode="constant", **kwargs):
    if find_trace([pad_width]) is not None:
        return _pad_by_data(array, pad_width, mode, kwargs)
    width = pad_width if isinstance(pad_width, int) else np.asarray(pad_width).tolist()
    return call("pad", (array, width), {"mode": mode, **kwargs}, "np.pad")


def _pad_by_data(array, pad_width, mode, kwargs):
    """As many as the data tells; what is written as constants keeps the sizes of its axes known."""
    padded = call("pad", (array, pad_width), {"mode": mode, **kwargs}, "np.pad")
    if not isinstance(pad_width, (list, tuple)) or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pad_width):
        return padded
    shape = array.shape
    sizes = [
        -1 if size is None or find_trace(pair) is not None else size + sum(to_integers(pair, "np.pad by")) for size, pair in zip(shape, pad_width)
    ]
    if len(pad_width) != len(shape) or set(sizes) == {-1}:
        return padded
    return call("ensure_shape", (padded, sizes), {}, "np.pad")


def transpose(a, axes=None):
    order = () if axes is None else (to_integers(axes, "np.transpose to the axis"),)
    return call("transpose", (a, *order), {}, "np.transpose")
