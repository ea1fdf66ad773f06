"""Axes, sizes and counts as NumPy's functions are given them."""

import operator

import numpy as np

from penstock import _trace
from penstock._trace import TraceError, call


def to_integer(value, what):
    """An int of a size, an axis or a count; NumPy's will do."""
    if isinstance(value, (bool, np.bool_, _trace.Tensor)) or not hasattr(value, "__index__"):
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


def flat(a):
    """All values as one axis."""
    if a.ndim == 1:
        return a
    return call("reshape", (a, [-1]), {}, "np.ravel")


def along_axis(a, axis, shown):
    """The array, flat without an axis, and the beginning of a subscript up to that axis."""
    a, axis = (flat(a), 0) if axis is None else (a, axis)
    axis = counted_from_last(axis, a.ndim, shown) + a.ndim
    return a, (slice(None),) * axis
