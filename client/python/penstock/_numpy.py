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
    "mod": "remainder",
    "pow": "power",
}

# What to write where there is no function of that name.
_INSTEAD = {
    "dot": "np.matmul",
    "argsort": "np.sort or np.argmax",
    "resize": "np.reshape, or penstock.image.resize for images",
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
    return call("rint", (x,), {}, "np.round") if _is_floating(x) else x


def _is_floating(x):
    return getattr(x.dtype, "kind", "") not in "biu"


def _fabs(x):
    if not _is_floating(x):
        x = x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)
    return call("abs", (x,), {}, "np.fabs")


def _nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    if not _is_floating(x):
        return x
    if x.dtype not in (np.float32, np.float64):
        raise TraceError(f"np.nan_to_num of {x.dtype}", "cast it to float32")
    limits = np.finfo(x.dtype)
    for at, value in ((np.inf, limits.max if posinf is None else posinf), (-np.inf, limits.min if neginf is None else neginf)):
        x = np.where(x == at, x.dtype.type(value), x)
    return np.where(np.isnan(x), x.dtype.type(nan), x)


def _cast(x, dtype):
    """Python's numbers stay as they are: they take the type of what they meet."""
    return x.astype(dtype) if isinstance(x, (_trace.Tensor, np.ndarray, np.generic)) else x


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
        # NumPy computes in that type. Ours of integers has 64 bits, and a cast would not wrap as sums of fewer do.
        if dtype is not None and np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 8:
            raise TraceError(f"np.{name} in {np.dtype(dtype)}, where it wraps", "leave dtype out, and cast the result")
        result = call(name, (a if dtype is None else a.astype(dtype),), kwargs, f"np.{name}")
        return result if dtype is None else result.astype(dtype)

    return reduce


def _counted_from_last(axis, ndim, shown):
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
        raise TraceError(f"{shown} along the axis {axis!r}", "an axis is one integer, a constant")
    if not -ndim <= axis < ndim:
        raise TraceError(f"{shown} along the axis {axis} of {ndim}", f"axes are from {-ndim} to {ndim - 1}")
    return int(axis) - ndim if axis >= 0 else int(axis)


def _flat(a):
    return a if a.ndim == 1 else _reshape(a, -1)


def _along(name, axis):
    """NumPy's function along one axis by ours, which counts axes from the last; by None all values stand in one."""
    default = axis

    def apply(a, axis=default, dtype=None, **kwargs):
        a, axis = (_flat(a), -1) if axis is None else (a, axis)
        kwargs["axis"] = _counted_from_last(axis, a.ndim, f"np.{name}")
        result = call(name, (a,), kwargs, f"np.{name}")
        return result if dtype is None else result.astype(dtype)

    return apply


def _argmax(a, axis=None, out=None, **kwargs):
    return _along("argmax", None)(a.astype(np.uint8) if a.dtype == bool else a, axis, out=out, **kwargs)


def _argmin(a, axis=None, out=None, **kwargs):
    # No integer's complement wraps, as its negative may.
    return _argmax(~a if a.dtype.kind in "biu" else -a, axis, out, **kwargs)


def _along_axis(a, axis, shown):
    """The array, flat without an axis, and the beginning of a subscript up to that axis."""
    a, axis = (_flat(a), 0) if axis is None else (a, axis)
    axis = _counted_from_last(axis, a.ndim, shown) + a.ndim
    return a, (slice(None),) * axis


def _take(a, indices, axis=None, out=None, mode="raise"):
    if out is not None:
        raise TraceError("np.take into an array", "the result is a value of its own")
    if axis is None:
        a, axis = _flat(a), 0
    axis = _counted_from_last(axis, a.ndim, "np.take")
    indices = indices if isinstance(indices, _trace.Tensor) else np.asarray(indices)
    if isinstance(indices, _trace.Tensor) or mode != "raise":
        return call("take", (a, indices), {"axis": axis, "mode": mode}, "np.take")
    return a[(*(slice(None),) * (axis + a.ndim), indices if indices.ndim else indices.item())]


def _compress(condition, a, axis=None, out=None):
    if out is not None:
        raise TraceError("np.compress into an array", "the result is a value of its own")
    if axis is None:
        a, axis = _flat(a), 0
    return call("compress", (condition, a), {"axis": _counted_from_last(axis, a.ndim, "np.compress")}, "np.compress")


def _searchsorted(a, v, side="left", sorter=None):
    if sorter is not None:
        raise TraceError("np.searchsorted with a sorter", "np.searchsorted(a[sorter], v)")
    a = a if isinstance(a, _trace.Tensor) else np.asarray(a)
    return call("searchsorted", (a, v), {"side": side}, "np.searchsorted")


def _digitize(x, bins, right=False):
    bins = np.asarray(bins)
    if np.any(bins[1:] < bins[:-1]):
        raise TraceError("np.digitize with falling boundaries", "give them in rising order")
    return _searchsorted(bins, x, "left" if right else "right")


def _isin(element, test_elements, assume_unique=False, invert=False, kind=None):
    known = np.unique(np.asarray(test_elements))
    if known.size == 0:
        return ((element == element) & (element != element)) ^ bool(invert)
    place = _searchsorted(known, element)
    same = call("take", (known, place), {"mode": "clip"}, "np.isin") == element
    return ~same if invert else same


def by_traced(a, items):
    """What `a[items]` is where one item is a traced value: np.take's of integers, np.compress' of flags."""
    *before, index = items
    whole = all(item is Ellipsis or (isinstance(item, slice) and item == slice(None)) for item in before)
    if not isinstance(index, _trace.Tensor) or not whole or Ellipsis in before[:-1]:
        raise TraceError("a traced value in a subscript beside others", "np.take(x, indices, axis) takes of one axis")
    axis = -1 if before and before[-1] is Ellipsis else len(before)
    return _compress(index, a, axis) if index.dtype == bool else _take(a, index, axis)


def _repeat(a, repeats, axis=None):
    a, before = _along_axis(a, axis, "np.repeat")
    size = a.shape[len(before)]
    if size is None or isinstance(repeats, _trace.Tensor):
        raise TraceError("np.repeat as often as only the data tells", "the size of the axis and the number of repeats are known")
    return a[(*before, np.repeat(np.arange(size), repeats))]


def _operands(arrays, dtype, shown):
    """The arrays that a function joins, of one type as NumPy finds it."""
    arrays = [a if isinstance(a, _trace.Tensor) else np.asarray(a) for a in arrays]
    if any(a.dtype.kind in "OSU" for a in arrays):
        raise TraceError(f"{shown} of strings", "it joins numbers")
    dtype = np.result_type(*(a.dtype for a in arrays)) if dtype is None else np.dtype(dtype)
    return [a if a.dtype == dtype else a.astype(dtype) for a in arrays]


def _joined(arrays, axis):
    while len(arrays) > 1:
        # Ours take up to four.
        parts = [arrays[i : i + 4] for i in range(0, len(arrays), 4)]
        arrays = [part[0] if len(part) == 1 else call("concat", part, {"axis": axis}, "np.concatenate") for part in parts]
    return arrays[0]


def _concatenate(arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    if out is not None or casting != "same_kind":
        raise TraceError("np.concatenate into an array, or with other casts", "x.astype(dtype)")
    arrays = _operands(arrays, dtype, "np.concatenate")
    if axis is None:
        arrays, axis = [_flat(a) for a in arrays], 0
    return _joined(arrays, _counted_from_last(axis, arrays[0].ndim, "np.concatenate"))


def _stack(arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    if out is not None or casting != "same_kind":
        raise TraceError("np.stack into an array, or with other casts", "x.astype(dtype)")
    arrays = _operands(arrays, dtype, "np.stack")
    axis = _counted_from_last(axis, arrays[0].ndim + 1, "np.stack")
    if 2 <= len(arrays) <= 4:
        return call("stack", arrays, {"axis": axis}, "np.stack")
    return _joined([_expand_dims(a, axis) for a in arrays], axis)


def _transpose(a, axes=None):
    return call("transpose", (a,) if axes is None else (a, list(axes)), {}, "np.transpose")


# By the names of NumPy's functions: those that take more than a call.
_SPECIAL = {
    "clip": _clip,
    "where": _where,
    "round": _round,
    "fabs": _fabs,
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
    "argmax": _argmax,
    "argmin": _argmin,
    "cumsum": _along("cumsum", None),
    "sort": _along("sort", -1),
    "take": _take,
    "compress": _compress,
    "searchsorted": _searchsorted,
    "digitize": _digitize,
    "isin": _isin,
    "repeat": _repeat,
    "concatenate": _concatenate,
    "stack": _stack,
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
    "nan_to_num": _nan_to_num,
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
    if ours not in FUNCTIONS or name in _INSTEAD:
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
    if dtype is None:
        return _apply(ufunc.__name__, inputs, kwargs, shown)
    # It is what NumPy computes in, and not only what comes of it.
    result = _apply(ufunc.__name__, tuple(_cast(x, dtype) for x in inputs), kwargs, shown)
    return result if result.dtype == bool else result.astype(dtype)


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
