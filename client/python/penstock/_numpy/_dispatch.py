"""NumPy's functions and methods on traced values: which of ours stands for each."""

import numpy as np

from penstock._numpy import _along, _bits, _elementwise, _joining, _products, _reducing, _series, _shapes, _spectrum, _statistics, _taking
from penstock._numpy._axes import flat
from penstock._registry import FUNCTIONS
from penstock._tracing._language import call
from penstock._tracing._refusals import OUTSIDE, TraceError, near
from penstock._tracing._trace import StandIn

# By the names of NumPy's functions, where ours are others.
_SYNONYMS = {
    "absolute": "abs",
    "true_divide": "divide",
    "bitwise_not": "invert",
    "permute_dims": "transpose",
    "mod": "remainder",
    "pow": "power",
}

# What to write where there is no function of that name.
_INSTEAD = {
    "resize": "np.reshape, or penstock.image.resize for images",
    "piecewise": "nested np.where(condition, a, b)",
    "choose": "np.select([x == 0, x == 1], [a, b], c)",
    "put": "np.where(condition, a, b)",
    "copyto": "np.where(condition, a, b)",
    "place": "np.where(condition, a, b)",
    "put_along_axis": "np.where(condition, a, b)",
    "putmask": "np.where(condition, a, b)",
    "unique": "np.sort; what differs from the value before it is the first of its kind",
    "union1d": "np.isin and np.concatenate",
    "intersect1d": "np.isin",
    "setdiff1d": "np.isin",
    "partition": "np.sort, whose values are one",
    "argpartition": "np.argsort, whose places are one",
    "lexsort": "np.argsort twice, from the last key to the first: it keeps the order of equal values",
    "random.permutation": "penstock.functions.random_uniform and np.argsort",
    "histogram2d": "np.histogram of places that two values make together",
    "cov": "np.mean of products",
    "corrcoef": "np.mean of products",
    "vectorize": "NumPy's own functions, which work on the whole of an array",
    "apply_along_axis": "NumPy's own functions, which work on the whole of an array",
    "rollaxis": "np.moveaxis",
    "delete": "x[places], the constant places that stay, or x[flags]",
    "insert": "np.concatenate([x[:i], values, x[i:]])",
    "kron": "np.reshape(a[:, None, :, None] * b[None, :, None, :], shape)",
    "block": "np.hstack and np.vstack",
    **{f"nan{name}": f"np.{name} of x[x == x], which leaves NaN out" for name in ("median", "percentile", "quantile")},
}


# By the names of NumPy's functions: those that take more than a call.
_SPECIAL = {
    "clip": _elementwise.clip,
    "where": _elementwise.where,
    "round": _elementwise.round,
    "fabs": _elementwise.fabs,
    "around": _elementwise.round,
    "expand_dims": _shapes.expand_dims,
    "squeeze": _shapes.squeeze,
    "flip": _shapes.flip,
    "fliplr": lambda m: _shapes.flip(m, 1, "np.fliplr"),
    "flipud": lambda m: _shapes.flip(m, 0, "np.flipud"),
    "rot90": _shapes.rot90,
    "moveaxis": _shapes.moveaxis,
    "swapaxes": _shapes.swapaxes,
    "unpackbits": _bits.unpackbits,
    "packbits": _bits.packbits,
    "reshape": _shapes.reshape,
    "pad": _shapes.pad,
    **{name: _reducing.reduction(name) for name in _reducing.REDUCTIONS},
    "argmax": _along.argmax,
    "argmin": _along.argmin,
    "cumsum": _along.cumsum,
    "cumprod": _along.cumulative("cumprod"),
    "sort": _along.sort,
    "argsort": _along.argsort,
    "take": _taking.take,
    "compress": _taking.compress,
    "searchsorted": _taking.searchsorted,
    "digitize": _taking.digitize,
    "isin": _taking.isin,
    "repeat": _taking.repeat,
    "concatenate": _joining.concatenate,
    "stack": _joining.stack,
    "hstack": _joining.hstack,
    "vstack": _joining.vstack,
    "dstack": _joining.dstack,
    "column_stack": _joining.column_stack,
    "append": _joining.append,
    "tile": _joining.tile,
    "roll": _joining.roll,
    "split": _joining.split,
    "array_split": _joining.array_split,
    "hsplit": _joining.hsplit,
    "vsplit": _joining.vsplit,
    "dsplit": lambda ary, at: _joining.split(ary, at, 2, "np.dsplit"),
    "unstack": lambda x, /, *, axis=0: _joining.unstacked(x, axis),
    "concat": _joining.concatenate,
    **{name: getattr(_series, name) for name in ("convolve", "correlate", "diff", "ediff1d", "gradient", "interp", "linspace", "polyval", "trapezoid")},
    "lib.stride_tricks.sliding_window_view": _series.sliding_window_view,
    **{name: getattr(_statistics, name) for name in (
        "average", "bincount", "count_nonzero", "histogram", "median", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
        "percentile", "ptp", "quantile")},
    **{name: getattr(_products, name) for name in (
        "broadcast_to", "cross", "diagonal", "dot", "einsum", "inner", "matmul", "meshgrid", "outer", "tensordot", "trace", "vdot", "vecdot")},
    "tril": _products.triangle("tril"),
    "triu": _products.triangle("triu"),
    "linalg.norm": _products.norm,
    "linalg.vector_norm": _products.vector_norm,
    "linalg.matmul": _products.matmul,
    "linalg.tensordot": _products.tensordot,
    "linalg.outer": _products.outer,
    "fft.rfft": _spectrum.rfft,
    "nonzero": _taking.nonzero,
    "flatnonzero": lambda a: _taking.nonzero(flat(a))[0],
    "argwhere": lambda a: np.stack(_taking.nonzero(a), axis=-1),
    "extract": lambda condition, arr: _taking.compress(np.ravel(condition), arr),
    "take_along_axis": _taking.take_along_axis,
    "atleast_1d": _joining.atleast(1),
    "atleast_2d": _joining.atleast(2),
    "atleast_3d": _joining.atleast(3),
    "amax": _reducing.reduction("max"),
    "amin": _reducing.reduction("min"),
    "ravel": lambda a, order="C": _shapes.reshape(a, -1, order),
    "transpose": _shapes.transpose,
    "divmod": lambda x, y: (x // y, x % y),
    "square": lambda x: _elementwise.flags_as_bytes(x) * _elementwise.flags_as_bytes(x),
    "reciprocal": _elementwise.reciprocal,
    "positive": lambda x: x,
    "fix": lambda x: np.trunc(x),
    "modf": _elementwise.modf,
    "ldexp": _elementwise.ldexp,
    "heaviside": _elementwise.heaviside,
    "float_power": lambda x1, x2: call("power", tuple(np.asarray(x, np.float64)[()] if not isinstance(x, StandIn) else x.astype(np.float64) for x in (x1, x2)), {}, "np.float_power"),
    **{name: lambda x: _elementwise.floating(x) * _elementwise.DEGREE for name in ("deg2rad", "radians")},
    **{name: lambda x: _elementwise.floating(x) * (1 / _elementwise.DEGREE) for name in ("rad2deg", "degrees")},
    "isneginf": lambda x, out=None: x == -np.inf,
    "isposinf": lambda x, out=None: x == np.inf,
    "isclose": _elementwise.isclose,
    "allclose": lambda a, b, rtol=1e-05, atol=1e-08, equal_nan=False: np.all(_elementwise.isclose(a, b, rtol, atol, equal_nan)),
    "array_equal": _elementwise.array_equal,
    "select": _elementwise.select,
    "matrix_transpose": lambda x, /: np.swapaxes(x, -1, -2),
    "cumulative_sum": lambda x, /, *, axis=None, dtype=None: _along.cumsum(x, axis, dtype),
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == np.inf,
    "isfinite": lambda x: abs(x) < np.inf,
    "logical_and": lambda a, b: _elementwise.as_bool(a) & _elementwise.as_bool(b),
    "logical_or": lambda a, b: _elementwise.as_bool(a) | _elementwise.as_bool(b),
    "logical_xor": lambda a, b: _elementwise.as_bool(a) ^ _elementwise.as_bool(b),
    "logical_not": lambda a: ~_elementwise.as_bool(a),
    "zeros_like": lambda a, dtype=None: _elementwise.fill(a, 0, dtype),
    "ones_like": lambda a, dtype=None: _elementwise.fill(a, 1, dtype),
    "full_like": lambda a, fill_value, dtype=None: _elementwise.full_like(a, fill_value, dtype),
    "empty_like": lambda a, dtype=None: _elementwise.fill(a, 0, dtype),
    "astype": lambda x, dtype, *, copy=True: x.astype(dtype),
    "shape": _shapes.shape,
    "size": _shapes.size,
    "ndim": lambda a: a.ndim,
    "copy": lambda a, *args, **kwargs: a,
    "nan_to_num": _elementwise.nan_to_num,
}  # fmt: skip


def knows(name):
    """Whether a function of that name can be traced."""
    return name in _SPECIAL or name in FUNCTIONS


def _instead(name):
    instead = _INSTEAD.get(name)
    if instead is not None:
        return f"use {instead}"
    return near(name, {*FUNCTIONS, *_SPECIAL}) or OUTSIDE


# Whose results share the memory of their first argument, where it has an order that allows it.
_VIEWS = {
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diagonal", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
    "lib.stride_tricks.sliding_window_view", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "rot90", "split", "squeeze",
    "swapaxes", "transpose", "unstack", "vsplit",
}  # fmt: skip


def apply(name, args, kwargs, shown):
    """What NumPy's function gives, as a view of the argument where NumPy's is."""
    result = _applied(name, args, kwargs, shown)
    base = args[0] if args else None
    if name not in _VIEWS:
        return result._copied() if isinstance(result, StandIn) and (result is base or result._base is not None) else result
    if isinstance(base, StandIn):
        for part in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(part, StandIn):
                part._as_view_of(base)
    return result


def _applied(name, args, kwargs, shown):
    special = _SPECIAL.get(name)
    if special is not None:
        try:
            return special(*args, **kwargs)
        except TraceError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise TraceError(f"{shown} with these arguments ({error})", "see docs/python.md") from None
    ours = _SYNONYMS.get(name, name)
    if ours not in FUNCTIONS or name in _INSTEAD:
        raise TraceError(f"{shown} cannot be traced", _instead(name))
    return call(ours, args, kwargs, shown)


# What a ufunc's reduce() is called.
_REDUCED = {
    "add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "logical_and": "all", "logical_or": "any"
}  # fmt: skip
# And accumulate().
_ACCUMULATED = {"add": _along.cumsum, "multiply": _along.cumulative("cumprod"), "maximum": _along.extremes("maximum"), "minimum": _along.extremes("minimum")}


def call_ufunc(ufunc, method, inputs, kwargs):
    shown = f"np.{ufunc.__name__}"
    name = _REDUCED.get(ufunc.__name__)
    if method == "reduce" and name is not None:
        # As ufunc.reduce does: the first axis unless one is given.
        kwargs.setdefault("axis", 0)
        return apply(name, inputs, kwargs, shown + ".reduce")
    if method == "accumulate" and ufunc.__name__ in _ACCUMULATED:
        return _ACCUMULATED[ufunc.__name__](*inputs, **{"axis": 0, **kwargs})
    if method != "__call__":
        raise TraceError(f"{shown}.{method} cannot be traced", OUTSIDE)
    if any(isinstance(out, StandIn) for out in kwargs.get("out") or ()):
        raise TraceError(f"{shown} into a traced value", "it gives a new one")
    dtype = kwargs.pop("dtype", None)
    if dtype is None:
        return apply(ufunc.__name__, inputs, kwargs, shown)
    # It is what NumPy computes in, and not only what comes of it.
    result = apply(ufunc.__name__, tuple(_elementwise.cast(x, dtype) for x in inputs), kwargs, shown)
    return result if result.dtype == bool else result.astype(dtype)


def call_function(func, args, kwargs):
    module = getattr(func, "__module__", "numpy") or "numpy"
    shown = f"{module.replace('numpy', 'np', 1)}.{func.__name__}"
    name = func.__name__ if module in ("numpy", "np") else shown.removeprefix("np.")
    if module not in ("numpy", "np") and name not in _SPECIAL:
        raise TraceError(f"{shown} cannot be traced", _instead(name))
    return apply(name, args, kwargs, shown)


