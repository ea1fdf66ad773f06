"""NumPy's functions and methods on traced values: which of ours stands for each."""

import numpy as np

from penstock import _dtypes, _trace
from penstock._registry import FUNCTIONS
from penstock._trace import TraceError, call

# By the names of NumPy's functions, where ours are others.
_SYNONYMS = {
    "absolute": "abs",
    "true_divide": "divide",
    "bitwise_not": "invert",
    "unpackbits": "unpack_bits",
    "permute_dims": "transpose",
    "fabs": "abs",
    "mod": "remainder",
    "pow": "power",
}

# What to write where there is no function of that name.
_INSTEAD = {
    "dot": "np.matmul",
    "select": "nested np.where(condition, a, b)",
    "piecewise": "nested np.where(condition, a, b)",
    "nonzero": "np.where(condition, a, b)",
    "put": "np.where(condition, a, b)",
    "copyto": "np.where(condition, a, b)",
    "vectorize": "NumPy's own functions, which work on the whole of an array",
    "apply_along_axis": "NumPy's own functions, which work on the whole of an array",
}


def _as_bool(x):
    return x.astype(bool) if isinstance(x, _trace.Tensor) else np.asarray(x, bool)[()]


def _round(x, decimals=0, out=None):
    if decimals != 0:
        raise TraceError(f"np.round to {decimals} decimals", "np.rint rounds to integers")
    return call("rint", (x,), {}, "np.round")


def _clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, **kwargs):
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    if low is None:
        return np.minimum(a, high)
    if high is None:
        return np.maximum(a, low)
    return call("clip", (a, low, high), {}, "np.clip")


def _where(condition, *values):
    if len(values) != 2:
        raise TraceError("np.where without values gives as many places as the data has", "use np.where(condition, a, b)")
    return call("where", (condition, *values), {}, "np.where")


def _expand_dims(a, axis):
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = a.ndim + len(axes)
    wanted = {x % ndim for x in axes}
    return a[tuple(None if x in wanted else slice(None) for x in range(ndim))]


def _squeeze(a, axis=None):
    shape = a.shape
    axes = [i for i, n in enumerate(shape) if n == 1] if axis is None else np.atleast_1d(axis).tolist()
    wanted = {x % len(shape) for x in axes}
    return a[tuple(0 if x in wanted else slice(None) for x in range(len(shape)))]


def _flip(m, axis=None):
    ndim = m.ndim
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    wanted = {x % ndim for x in axes}
    return m[tuple(slice(None, None, -1) if x in wanted else slice(None) for x in range(ndim))]


def _moveaxis(a, source, destination):
    order = list(range(a.ndim))
    order.insert(destination % a.ndim, order.pop(source % a.ndim))
    return call("transpose", (a, order), {}, "np.moveaxis")


def _swapaxes(a, axis1, axis2):
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return call("transpose", (a, order), {}, "np.swapaxes")


def _unpackbits(a, axis=None, count=None, bitorder="big"):
    if bitorder != "big" or count is not None or axis not in (None, -1):
        raise TraceError("np.unpackbits along another axis, of a count, or from the least significant bit",
                         "it works along the last axis, from the most significant bit")  # fmt: skip
    return call("unpack_bits", (a,), {}, "np.unpackbits")


def _shape(a):
    """Known sizes as numbers; where one is a matter of the data, a traced tensor."""
    shape = a.shape
    return call("shape", (a,), {}, "np.shape") if None in shape else shape


def _reshape(a, shape=None, order="C", *, newshape=None, copy=None):
    if order != "C":
        raise TraceError(f"np.reshape in order {order}", "transpose before it")
    shape = shape if shape is not None else newshape
    return call("reshape", (a, [shape] if isinstance(shape, int) else list(shape)), {}, "np.reshape")


def _pad(array, pad_width, mode="constant", **kwargs):
    width = pad_width if isinstance(pad_width, int) else np.asarray(pad_width).tolist()
    return call("pad", (array, width), {"mode": mode, **kwargs}, "np.pad")


def _reduction(name):
    """NumPy's reduction by ours, which counts axes from the last; without an axis it takes all values of an element."""

    def reduce(a, axis=None, dtype=None, out=None, **kwargs):
        if out is not None or isinstance(axis, tuple):
            raise TraceError(f"np.{name} into an array, or over several axes", "one axis, or all of them")
        if axis is not None:
            kwargs["axis"] = axis - a.ndim if axis >= 0 else axis
        result = call(name, (a,), kwargs, f"np.{name}")
        return result if dtype is None else result.astype(dtype)

    return reduce


def _transpose(a, axes=None):
    return call("transpose", (a,) if axes is None else (a, list(axes)), {}, "np.transpose")


# By the names of NumPy's functions: those that take more than a call.
_SPECIAL = {
    "clip": _clip,
    "where": _where,
    "round": _round,
    "around": _round,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "flip": _flip,
    "fliplr": lambda m: _flip(m, 1),
    "flipud": lambda m: _flip(m, 0),
    "moveaxis": _moveaxis,
    "swapaxes": _swapaxes,
    "unpackbits": _unpackbits,
    "reshape": _reshape,
    "pad": _pad,
    **{name: _reduction(name) for name in ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all")},
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "ravel": lambda a, order="C": _reshape(a, -1, order),
    "transpose": _transpose,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "positive": lambda x: x,
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == np.inf,
    "isfinite": lambda x: abs(x) < np.inf,
    "logical_and": lambda a, b: _as_bool(a) & _as_bool(b),
    "logical_or": lambda a, b: _as_bool(a) | _as_bool(b),
    "logical_xor": lambda a, b: _as_bool(a) ^ _as_bool(b),
    "logical_not": lambda a: ~_as_bool(a),
    "zeros_like": lambda a, dtype=None: _fill(a, 0, dtype),
    "ones_like": lambda a, dtype=None: _fill(a, 1, dtype),
    "full_like": lambda a, fill_value, dtype=None: _fill(a, fill_value, dtype),
    "astype": lambda x, dtype: x.astype(dtype),
    "shape": _shape,
    "ndim": lambda a: a.ndim,
    "copy": lambda a, *args, **kwargs: a,
    "nan_to_num": lambda x, copy=True, nan=0.0: np.where(np.isnan(x), nan, x),
}  # fmt: skip


def _fill(a, value, dtype):
    return np.where(a == a, value, value).astype(a.dtype if dtype is None else dtype)


def _apply(name, args, kwargs, shown):
    special = _SPECIAL.get(name)
    if special is not None:
        try:
            return special(*args, **kwargs)
        except TraceError:
            raise
        except TypeError as error:
            raise TraceError(f"{shown} with these arguments ({error})", "see docs/python.md") from None
    ours = _SYNONYMS.get(name, name)
    if ours not in FUNCTIONS:
        instead = _INSTEAD.get(name)
        if instead is None:
            instead = _trace.near(name, {*FUNCTIONS, *_SPECIAL}) or _trace._OUTSIDE
        else:
            instead = f"use {instead}"
        raise TraceError(f"{shown} cannot be traced", instead)
    return call(ours, args, kwargs, shown)


def call_ufunc(ufunc, method, inputs, kwargs):
    shown = f"np.{ufunc.__name__}"
    if method == "reduce" and ufunc.__name__ in ("add", "maximum", "minimum", "multiply"):
        name = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}[ufunc.__name__]
        # As ufunc.reduce does: the first axis unless one is given.
        kwargs.setdefault("axis", 0)
        return _apply(name, inputs, kwargs, shown + ".reduce")
    if method != "__call__":
        raise TraceError(f"{shown}.{method} cannot be traced", _trace._OUTSIDE)
    if any(isinstance(out, _trace.Tensor) for out in kwargs.get("out") or ()):
        raise TraceError(f"{shown} into a traced value", "it gives a new one")
    dtype = kwargs.pop("dtype", None)
    result = _apply(ufunc.__name__, inputs, kwargs, shown)
    return result if dtype is None else result.astype(dtype)


def call_function(func, args, kwargs):
    module = getattr(func, "__module__", "numpy") or "numpy"
    shown = f"{module.replace('numpy', 'np', 1)}.{func.__name__}"
    if module not in ("numpy", "np"):
        raise TraceError(f"{shown} cannot be traced", _trace._OUTSIDE)
    return _apply(func.__name__, args, kwargs, shown)


def _astype(x, dtype, **kwargs):
    name = getattr(_dtypes.as_dtype(dtype), "name", "")
    return call(name, (x,), {}, f"astype({name})")


# Methods of arrays that stand for functions of the same names.
METHODS = ("astype", "reshape", "transpose", "T", "clip", "round", "squeeze", "ravel", "flatten", "swapaxes", "copy",
           "sum", "mean", "min", "max", "prod", "std", "var", "any", "all", "argmax", "argmin", "repeat", "take",
           "cumsum")  # fmt: skip


def method(x, name):
    """The method `name` of a traced value, or its value; None if there is none."""
    if name == "T":
        return _transpose(x)
    if name == "astype":
        return lambda dtype, **kwargs: _astype(x, dtype, **kwargs)
    if name in ("reshape", "transpose"):
        function = _SPECIAL[name]

        def variadic(*sizes, **kwargs):
            if len(sizes) == 1 and not isinstance(sizes[0], int):
                sizes = sizes[0]
            return function(x, sizes, **kwargs) if sizes else function(x, **kwargs)

        return variadic
    if name == "flatten":
        name = "ravel"
    if name not in METHODS or name not in _SPECIAL and name not in FUNCTIONS:
        return None
    return lambda *args, **kwargs: _apply(name, (x, *args), kwargs, f".{name}()")
