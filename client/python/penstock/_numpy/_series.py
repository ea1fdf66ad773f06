"""NumPy's functions of series and curves: windows, convolutions, differences, interpolation."""

import numpy as np

from penstock._numpy import _taking
from penstock._numpy._axes import as_array, to_axes, to_axis, to_integer, to_integers, wrapped
from penstock._tracing import _trace
from penstock._tracing._refusals import TraceError


def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    shown = "np.lib.stride_tricks.sliding_window_view"
    sizes = to_integers(window_shape, f"{shown} of")
    axes = list(range(x.ndim)) if axis is None else to_axes(axis, x.ndim, shown)
    if len(sizes) != len(axes):
        raise TraceError(f"{shown} of {len(sizes)} sizes along {len(axes)} axes", "a size for each axis")
    for size, along in zip(sizes, axes):
        own = x.shape[along]
        if own is None or not 1 <= size <= own:
            raise TraceError(f"{shown} of {size} along an axis of {own}", "windows are within an axis of known size")
        places = np.arange(own - size + 1)[:, None] + np.arange(size)
        x = np.moveaxis(x[(*(slice(None),) * along, places)], along + 1, -1)
    return x


def _filtered(a, taps, mode, shown):
    """At each place the sum of products with the taps, over windows of as many values."""
    if mode not in ("full", "same", "valid"):
        raise TraceError(f"{shown} with mode={mode!r}", "modes are full, same and valid")
    if a.ndim != 1 or taps.ndim != 1 or a.shape[0] is None or taps.size == 0 or a.shape[0] < taps.size:
        raise TraceError(f"{shown} of values of shape {a.shape} and taps of shape {taps.shape}",
                         "a list of known length, and a constant list that is no longer")  # fmt: skip
    dtype = np.result_type(a.dtype, taps.dtype)
    more = taps.size - 1
    around = {"full": (more, more), "same": (taps.size // 2, more - taps.size // 2), "valid": (0, 0)}[mode]
    if mode == "same" and taps.size % 2 == 0:
        around = (taps.size // 2, taps.size // 2 - 1)
    a = a.astype(dtype)
    a = np.pad(a, around) if any(around) else a
    windows = a if taps.size == 1 else sliding_window_view(a, taps.size)
    if taps.size == 1:
        return a * taps.astype(dtype)
    if dtype.kind == "f":
        return windows @ taps.astype(dtype)
    wide = np.uint64 if dtype.kind == "u" else np.int64
    return wrapped(np.sum(windows.astype(wide) * taps.astype(wide), axis=-1), dtype)


def _taps(v, shown):
    if isinstance(v, _trace.StandIn):
        raise TraceError(f"{shown} with taps that are traced", "they are a constant array")
    return np.atleast_1d(v)


def convolve(a, v, mode="full"):
    if not isinstance(a, _trace.StandIn):
        a, v = v, a
    return _filtered(a, _taps(v, "np.convolve")[::-1], mode, "np.convolve")


def correlate(a, v, mode="valid"):
    if not isinstance(a, _trace.StandIn):
        raise TraceError("np.correlate with taps that are traced", "they are a constant array")
    return _filtered(a, _taps(v, "np.correlate"), mode, "np.correlate")


def diff(a, n=1, axis=-1, prepend=None, append=None):
    a, n = as_array(a), to_integer(n, "np.diff, taken")
    if n == 0:
        return a
    axis = to_axis(axis, a.ndim, "np.diff")
    before = (slice(None),) * axis
    ends = [_as_end(a, axis, value) for value in (prepend, append)]
    if any(end is not None for end in ends):
        a = np.concatenate([part for part in (ends[0], a, ends[1]) if part is not None], axis=axis)
    for _ in range(n):
        behind, front = a[(*before, slice(1, None))], a[(*before, slice(None, -1))]
        a = behind != front if a.dtype == bool else behind - front
    return a


def _as_end(a, axis, value):
    """What stands in front of differences, or behind them: of a number an axis of one."""
    if value is None or np.ndim(value):
        return value
    edge = a[(*(slice(None),) * axis, slice(0, 1))]
    value = value if isinstance(value, _trace.StandIn) else np.asarray(value)
    return np.where(edge == edge, value, value)


def ediff1d(ary, to_end=None, to_begin=None):
    if to_end is not None or to_begin is not None:
        raise TraceError("np.ediff1d with ends", "np.diff with prepend and append")
    return diff(np.ravel(ary))


def interp(x, xp, fp, left=None, right=None, period=None):
    shown = "np.interp"
    if period is not None or isinstance(xp, _trace.StandIn):
        raise TraceError(f"{shown} with a period, or between places that are traced", "places are a constant list in rising order")
    xp = np.asarray(xp, np.float64)
    if xp.ndim != 1 or xp.size < 1 or not (xp[1:] > xp[:-1]).all():
        raise TraceError(f"{shown} between places that do not rise", "places are a constant list in rising order")
    if np.shape(fp) != xp.shape:
        raise TraceError(f"{shown} of {np.shape(fp)} values at {xp.size} places", "a value for each place")
    fp = fp.astype(np.float64) if isinstance(fp, _trace.StandIn) else np.asarray(fp, np.float64)
    x = x.astype(np.float64) if isinstance(x, _trace.StandIn) else np.asarray(x, np.float64)
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    if xp.size == 1:
        return np.where(x < xp[0], left, np.where(x > xp[0], right, fp[0]))
    rise = (fp[1:] - fp[:-1]) / (xp[1:] - xp[:-1])
    place = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, xp.size - 2)
    values = _taken(rise, place) * (x - _taken(xp, place)) + _taken(fp, place)
    if isinstance(rise, _trace.StandIn) or not np.isfinite(rise).all():
        values = _beside_infinite(x, xp, fp, rise, place, values)
    values = np.where(x == xp[-1], fp[-1], values)
    return np.where(x < xp[0], left, np.where(x > xp[-1], right, values))


def _beside_infinite(x, xp, fp, rise, place, values):
    """As NumPy does it where a line to an infinite value is NaN: from its other end, or as its ends where these are the same; at places their values."""
    first, last = _taken(fp, place), _taken(fp, place + 1)
    values = np.where(values == values, values, _taken(rise, place) * (x - _taken(xp, place + 1)) + last)
    values = np.where((values == values) | (first != last) | (x != x), values, first)
    return np.where(x == _taken(xp, place), first, values)


def _taken(table, places):
    return _taking.take(table, places, 0) if isinstance(places, _trace.StandIn) else table[places]


def polyval(p, x):
    if isinstance(p, _trace.StandIn):
        raise TraceError("np.polyval of coefficients that are traced", "they are a constant list")
    p = np.asarray(p)
    y = np.where(x == x, p.dtype.type(0), p.dtype.type(0)).astype(np.result_type(p.dtype, x.dtype))
    for factor in p:
        y = y * x + factor
    return y


def trapezoid(y, x=None, dx=1.0, axis=-1):
    if x is not None and not isinstance(x, (list, tuple, np.ndarray)):
        raise TraceError("np.trapezoid at places that are traced", "they are a constant list")
    axis = to_axis(axis, y.ndim, "np.trapezoid")
    before = (slice(None),) * axis
    step = dx
    if x is not None:
        step = np.diff(np.asarray(x))
        step = step[(..., *(None,) * (y.ndim - axis - 1))] if step.ndim == 1 else step
    return np.sum(step * (y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2.0, axis=axis)


def gradient(f, *varargs, axis=None, edge_order=1):
    """By central differences, and by those of neighbours at the ends."""
    if edge_order != 1 or len(varargs) > 1 or varargs and np.ndim(varargs[0]):
        raise TraceError("np.gradient with other steps or edges", "one step for all axes, edge_order=1")
    step = varargs[0] if varargs else 1.0
    f = f if f.dtype.kind == "f" else f.astype(np.float64)
    axes = list(range(f.ndim)) if axis is None else to_axes(axis, f.ndim, "np.gradient")
    found = []
    for along in axes:
        if f.shape[along] is None or f.shape[along] < 2:
            raise TraceError(f"np.gradient along an axis of {f.shape[along]}", "an axis of known size, of two at least")

        def part(first, last, along=along):
            return f[(*(slice(None),) * along, slice(first, last))]

        inner = [(part(2, None) - part(None, -2)) / (2.0 * step)] if f.shape[along] > 2 else []
        ends = (part(1, 2) - part(0, 1)) / step, (part(-1, None) - part(-2, -1)) / step
        found.append(np.concatenate([ends[0], *inner, ends[1]], axis=along))
    return found[0] if len(found) == 1 else tuple(found)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """From traced numbers on, or up to them."""
    shown = "np.linspace"
    num = to_integer(num, f"{shown} of")
    if np.ndim(start) or np.ndim(stop) or retstep or axis or num < 2:
        raise TraceError(f"{shown} with these arguments", "two numbers, and how many of them, two at least")
    # As NumPy computes it: Python's numbers take the type of what is traced.
    kinds = [x.dtype for x in (start, stop) if not isinstance(x, (int, float))]
    kind = np.result_type(*kinds, 1.0)
    start, stop = (x.astype(kind) if isinstance(x, _trace.StandIn) else kind.type(x) for x in (start, stop))
    values = np.arange(num, dtype=kind) * ((stop - start) / (num - 1 if endpoint else num)) + start
    if endpoint:
        values = np.where(np.arange(num) == num - 1, stop, values)
    if dtype is None:
        return values
    return (np.floor(values) if np.dtype(dtype).kind in "iu" else values).astype(dtype)
