"""NumPy's reductions: sums, means, extremes and flags over axes."""

import numpy as np

from penstock._numpy import _joining, _products
from penstock._numpy._axes import axes_last, counted_from_last, expanded, sizes_of, to_axes, wrapped
from penstock._numpy._elementwise import zeros
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import StandIn

# What a value that is left out of a reduction counts as.
_LEFT_OUT = {"sum": 0, "prod": 1, "any": False, "all": True}
# How NumPy's `initial` meets the result.
_WITH_INITIAL = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


# The order in which NumPy takes what stands behind the array.
_OF_SUMS = ("axis", "dtype", "out", "keepdims", "initial", "where")
_OF_DEVIATIONS = ("axis", "dtype", "out", "ddof", "keepdims")
_OF_EXTREMES = ("axis", "out", "keepdims", "initial", "where")
_OF_FLAGS = ("axis", "out", "keepdims")
REDUCTIONS = {
    "sum": _OF_SUMS, "prod": _OF_SUMS, "mean": _OF_SUMS[:4], "std": _OF_DEVIATIONS, "var": _OF_DEVIATIONS, "max": _OF_EXTREMES, "min": _OF_EXTREMES,
    "any": _OF_FLAGS, "all": _OF_FLAGS,
}  # fmt: skip


def reduction(name):
    """NumPy's reduction by ours, which counts axes from the last; without an axis it takes all values of an element."""
    shown = f"np.{name}"

    order = REDUCTIONS[name]

    def reduce(a, *args, **kwargs):
        if len(args) > len(order):
            raise TypeError(f"it takes {1 + len(order)} arguments in a row, not {1 + len(args)}")
        return reduce_named(a, **dict(zip(order, args)), **kwargs)

    def reduce_named(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, **kwargs):
        if out is not None:
            raise TraceError(f"{shown} into an array", "it gives a new one")
        if not isinstance(a, StandIn):
            a = np.asarray(a)
        if dtype is not None and name in ("mean", "std", "var") and np.dtype(dtype).kind in "biu":
            raise TraceError(f"{shown} in {np.dtype(dtype)}", "leave dtype out, and cast the result")
        if where is not True:
            return _reduced_where(name, reduce, a, where, initial, {"axis": axis, "dtype": dtype, "keepdims": keepdims, **kwargs})
        if initial is not None and name not in _WITH_INITIAL:
            raise TraceError(f"{shown} with initial={initial!r}", "leave it out")
        if initial is not None and name in ("max", "min") and None in a.shape:
            a = _with_initial(a, axis, initial, shown)
        # Ours of integers has 64 bits, of which the lower ones are what sums and products of fewer wrap to.
        short = None
        if dtype is not None and name in ("sum", "prod") and a.dtype.kind in "biu" and np.dtype(dtype).kind in "iu":
            short, dtype = np.dtype(dtype), np.uint64 if np.dtype(dtype).kind == "u" else np.int64
        elif dtype is not None and np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 8:
            raise TraceError(f"{shown} in {np.dtype(dtype)}, where it wraps", "leave dtype out, and cast the result")
        wide = a if dtype is None else a.astype(dtype) if short is None or a.dtype == bool else wrapped(a, dtype)
        axes = sorted(to_axes(axis, a.ndim, shown)) if isinstance(axis, tuple) else []
        if isinstance(axis, tuple) and not axes:
            raise TraceError(f"{shown} over no axis", "leave it out")
        if 1 < len(axes) < a.ndim:
            result = call(name, (axes_last(wide, axes, shown), -1), kwargs, shown)
            result = expanded(result, axes) if keepdims else result
        else:
            axis = axes[0] if len(axes) == 1 else None if axes else axis
            over = {} if axis is None else {"axis": counted_from_last(axis, a.ndim, shown)}
            result = call(name, (wide,), {**over, "keepdims": bool(keepdims), **kwargs}, shown)
        result = result if dtype is None else result.astype(dtype) if short is None else wrapped(result, short)
        return result if initial is None else _WITH_INITIAL[name](result, _as_initial(initial, result.dtype))

    return reduce


def _as_initial(initial, dtype):
    """It takes the type of the result, whatever its own is."""
    return initial.astype(dtype) if isinstance(initial, StandIn) else np.asarray(initial, dtype)[()]


def _with_initial(a, axis, initial, shown):
    """The array with one value more along each axis of a reduction whose size only the data tells: there may be none."""
    for x in range(a.ndim) if axis is None else to_axes(axis, a.ndim, shown):
        if a.shape[x] is None:
            sizes = sizes_of(a)
            sizes[x] = 1
            more = _products.broadcast_to(np.full((1,) * a.ndim, initial, a.dtype), sizes)
            a = _joining.concatenate([a, more], x)
    return a


def _reduced_where(name, reduce, a, where, initial, kwargs):
    if name in _LEFT_OUT:
        left = np.where(where, a, np.asarray(_LEFT_OUT[name], a.dtype)[()])
        return reduce(left, initial=initial, **kwargs)
    if name == "mean":
        total = _sum(a.astype(np.float64), **{**kwargs, "where": where, "dtype": None})
        flags = where if isinstance(where, StandIn) else np.asarray(where)
        count = _sum(np.where(flags, 1, 0) + zeros(a), **{**kwargs, "dtype": None})
        kind = kwargs["dtype"] or (a.dtype if a.dtype.kind == "f" else np.float64)
        return (total / count).astype(kind)
    if name in ("max", "min") and initial is not None:
        return reduce(np.where(where, a, np.asarray(initial, a.dtype)[()]), initial=initial, **kwargs)
    raise TraceError(f"np.{name} where a condition holds" + (", without initial" if name in ("max", "min") else ""),
                     "np.where(condition, x, value) before it")  # fmt: skip


_sum = reduction("sum")
