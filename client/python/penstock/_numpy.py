"""NumPy's functions and methods on traced values: which of ours stands for each."""

import math

import numpy as np

from penstock import _dtypes, _joining, _taking, _trace
from penstock._axes import counted_from_last, flat, to_axes, to_axis, to_integer, to_integers
from penstock._registry import FUNCTIONS
from penstock._trace import TraceError, call

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
    "dot": "np.matmul",
    "resize": "np.reshape, or penstock.image.resize for images",
    "select": "nested np.where(condition, a, b)",
    "piecewise": "nested np.where(condition, a, b)",
    "nonzero": "np.where(condition, a, b)",
    "put": "np.where(condition, a, b)",
    "copyto": "np.where(condition, a, b)",
    "vectorize": "NumPy's own functions, which work on the whole of an array",
    "apply_along_axis": "NumPy's own functions, which work on the whole of an array",
    "rollaxis": "np.moveaxis",
    "broadcast_to": "arithmetic, which broadcasts, such as x + np.zeros(shape)",
    "median": "np.sort and a subscript",
    "percentile": "np.sort and a subscript",
    "quantile": "np.sort and a subscript",
    "average": "np.mean, or np.sum of products",
    "ptp": "np.max(x) - np.min(x)",
    "count_nonzero": "np.sum(x != 0)",
    "nansum": "np.sum(np.nan_to_num(x))",
    "einsum": "np.matmul, or np.sum of products",
    "tensordot": "np.matmul, or np.sum of products",
    "inner": "np.sum of products",
    "outer": "x[:, None] * y",
    "linalg.norm": "np.sqrt(np.sum(np.square(x), axis))",
    "isclose": "np.abs(a - b) <= tolerance",
    "isin": "comparisons, joined by |",
    "digitize": "np.sum(x[..., None] >= edges, axis=-1)",
    "searchsorted": "np.sum(x[..., None] > edges, axis=-1)",
    "radians": "x * (np.pi / 180)",
    "deg2rad": "x * (np.pi / 180)",
    "degrees": "x * (180 / np.pi)",
    "rad2deg": "x * (180 / np.pi)",
    "float_power": "x.astype(np.float64) ** y",
    "ldexp": "x * 2.0 ** n",
    "modf": "np.trunc",
    "heaviside": "np.where(condition, a, b)",
    "empty_like": "np.zeros_like",
}


def _as_bool(x):
    return x.astype(bool) if isinstance(x, _trace.Tensor) else np.asarray(x, bool)[()]


def _round(x, decimals=0, out=None):
    if out is not None:
        raise TraceError("np.round into an array", "it gives a new one")
    decimals = to_integer(decimals, "np.round to decimals")
    is_floating = _is_floating(x)
    if decimals >= 0 and not is_floating:
        return x
    # As NumPy does it, in the type of x; of integers in float64.
    power = float(f"1e{abs(decimals)}")
    if not is_floating:
        return (np.rint(x.astype(np.float64) / power) * power).astype(x.dtype)
    if decimals == 0:
        return call("rint", (x,), {}, "np.round")
    return np.rint(x * power) / power if decimals > 0 else np.rint(x / power) * power


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


def _clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, dtype=None):
    if out is not None:
        raise TraceError("np.clip into an array", "it gives a new one")
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    if dtype is not None:
        a, low, high = (_cast(x, dtype) for x in (a, low, high))
    if low is None:
        return a if high is None else np.minimum(a, high)
    if high is None:
        return np.maximum(a, low)
    return call("clip", (a, low, high), {}, "np.clip")


def _where(condition, *values):
    if len(values) != 2:
        raise TraceError("np.where without values gives as many places as the data has", "use np.where(condition, a, b)")
    return call("where", (condition, *values), {}, "np.where")


def _expand_dims(a, axis):
    ndim = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    wanted = to_axes(axis, ndim, "np.expand_dims")
    return a[tuple(None if x in wanted else slice(None) for x in range(ndim))]


def _squeeze(a, axis=None):
    shape = a.shape
    wanted = [i for i, n in enumerate(shape) if n == 1] if axis is None else to_axes(axis, len(shape), "np.squeeze")
    for x in wanted:
        if shape[x] != 1:
            size = "a size that only the data tells" if shape[x] is None else f"size {shape[x]}"
            raise TraceError(f"np.squeeze of the axis {x}, of {size}", "only axes of size 1 can be left out")
    return a[tuple(0 if x in wanted else slice(None) for x in range(len(shape)))]


def _flip(m, axis=None, shown="np.flip"):
    ndim = m.ndim
    wanted = range(ndim) if axis is None else to_axes(axis, ndim, shown)
    return m[tuple(slice(None, None, -1) if x in wanted else slice(None) for x in range(ndim))]


def _rot90(m, k=1, axes=(0, 1)):
    first, second = to_axes(tuple(axes), m.ndim, "np.rot90")
    turns = to_integer(k, "np.rot90 by quarters") % 4
    if turns % 2 == 0:
        return _flip(m, (first, second)) if turns else m
    turned = _swapaxes(_flip(m, second) if turns == 1 else m, first, second)
    return turned if turns == 1 else _flip(turned, second)


def _moveaxis(a, source, destination):
    shown, ndim = "np.moveaxis", a.ndim
    source, destination = to_axes(source, ndim, shown), to_axes(destination, ndim, shown)
    if len(source) != len(destination):
        raise TraceError(f"np.moveaxis of {len(source)} axes to {len(destination)} places", "one place for each axis")
    order = [x for x in range(ndim) if x not in source]
    for to, x in sorted(zip(destination, source)):
        order.insert(to, x)
    return call("transpose", (a, order), {}, shown)


def _swapaxes(a, axis1, axis2):
    order = list(range(a.ndim))
    i, j = (to_axis(axis, len(order), "np.swapaxes") for axis in (axis1, axis2))
    order[i], order[j] = order[j], order[i]
    return call("transpose", (a, order), {}, "np.swapaxes")


def _along_last(a, axis, bitorder, shown):
    """The array whose bits are meant: without an axis all of it, as one axis."""
    if bitorder != "big" or axis is not None and to_axis(axis, a.ndim, shown) != a.ndim - 1:
        raise TraceError(f"{shown} along another axis than the last, or from the least significant bit",
                         "np.moveaxis, or x[..., ::-1], before or behind it")  # fmt: skip
    return flat(a) if axis is None else a


def _unpackbits(a, axis=None, count=None, bitorder="big"):
    if count is not None:
        raise TraceError("np.unpackbits of a count", "np.unpackbits(x, axis=-1)[..., :count]")
    return call("unpack_bits", (_along_last(a, axis, bitorder, "np.unpackbits"),), {}, "np.unpackbits")


def _packbits(a, axis=None, bitorder="big"):
    a = _along_last(a, axis, bitorder, "np.packbits")
    return call("pack_bits", (a if a.dtype in (bool, np.uint8) else a != 0,), {}, "np.packbits")


def _shape(a):
    """Known sizes as numbers; where one is a matter of the data, a traced tensor."""
    shape = a.shape
    return call("shape", (a,), {}, "np.shape") if None in shape else shape


def _sizes_with_rest(a, shape):
    """The sizes of a reshape, where None of x.shape, such as the rows of a batch, is what is left over."""
    if not isinstance(shape, (tuple, list)) or sum(size is None for size in shape) != 1:
        return shape
    sizes = [*shape]
    if any(isinstance(size, _trace.Tensor) for size in sizes):
        return shape
    own = a.shape
    if -1 in sizes and sizes[0] is None and own.count(None) == 1 and own[0] is None and sizes.count(-1) == 1:
        # x.reshape(x.shape[0], -1): the axis that stays is the one whose size nobody knows.
        others = math.prod(size for size in sizes if size not in (None, -1))
        known = math.prod(own[1:])
        if others > 0 and known % others == 0:
            sizes[sizes.index(-1)] = known // others
    return sizes if -1 in sizes else [-1 if size is None else size for size in sizes]


def _size(a, axis=None):
    """The number of elements, or of those along an axis, as _shape."""
    if axis is not None:
        return _shape(a)[to_axis(axis, a.ndim, "np.size")]
    return np.prod(_shape(a)) if None in a.shape else math.prod(a.shape)


def _reshape(a, shape=None, order="C", *, newshape=None, copy=None):
    if order != "C":
        raise TraceError(f"np.reshape in order {order}", "transpose before it")
    shape = shape if shape is not None else newshape
    sizes = to_integers(_sizes_with_rest(a, shape), "np.reshape to the size")
    return call("reshape", (a, sizes), {}, "np.reshape") if sizes else _squeeze(a, tuple(range(a.ndim)))


def _pad(array, pad_width, mode="constant", **kwargs):
    width = pad_width if isinstance(pad_width, int) else np.asarray(pad_width).tolist()
    return call("pad", (array, width), {"mode": mode, **kwargs}, "np.pad")


def _axes_last(a, axes, shown):
    """The array with the axes of a reduction as one, behind the others."""
    kept = [x for x in range(a.ndim) if x not in axes]
    shape = a.shape
    sizes = [shape[x] for x in kept]
    if any(shape[x] is None for x in axes) or sizes.count(None) > 1:
        raise TraceError(f"{shown} over several axes of sizes that only the data tells", "resize, crop or pad before it")
    order = [*kept, *axes]
    moved = a if order == sorted(order) else call("transpose", (a, order), {}, shown)
    merged = math.prod(shape[x] for x in axes)
    return _reshape(moved, [-1 if size is None else size for size in sizes] + [merged])


def _reduction(name):
    """NumPy's reduction by ours, which counts axes from the last; without an axis it takes all values of an element."""
    shown = f"np.{name}"

    def reduce(a, axis=None, dtype=None, out=None, keepdims=False, **kwargs):
        if out is not None:
            raise TraceError(f"{shown} into an array", "it gives a new one")
        # NumPy computes in that type. Ours of integers has 64 bits, and a cast would not wrap as sums of fewer do.
        if dtype is not None and np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 8:
            raise TraceError(f"{shown} in {np.dtype(dtype)}, where it wraps", "leave dtype out, and cast the result")
        wide = a if dtype is None else a.astype(dtype)
        axes = sorted(to_axes(axis, a.ndim, shown)) if isinstance(axis, tuple) else []
        if isinstance(axis, tuple) and not axes:
            raise TraceError(f"{shown} over no axis", "leave it out")
        if 1 < len(axes) < a.ndim:
            result = call(name, (_axes_last(wide, axes, shown), -1), kwargs, shown)
            result = _expand_dims(result, axes) if keepdims else result
        else:
            axis = axes[0] if len(axes) == 1 else None if axes else axis
            where = {} if axis is None else {"axis": counted_from_last(axis, a.ndim, shown)}
            result = call(name, (wide,), {**where, "keepdims": bool(keepdims), **kwargs}, shown)
        return result if dtype is None else result.astype(dtype)

    return reduce


def _along(name, axis):
    """NumPy's function along one axis by ours, which counts axes from the last; by None all values stand in one."""
    default = axis

    def apply(a, axis=default, dtype=None, **kwargs):
        a, axis = (flat(a), -1) if axis is None else (a, axis)
        kwargs["axis"] = counted_from_last(axis, a.ndim, f"np.{name}")
        result = call(name, (a,), kwargs, f"np.{name}")
        return result if dtype is None else result.astype(dtype)

    return apply


def _argmax(a, axis=None, out=None, *, keepdims=False):
    place = _along("argmax", None)(_flags_as_bytes(a), axis, out=out)
    if not keepdims:
        return place
    return _reshape(place, (1,) * a.ndim) if axis is None else _expand_dims(place, axis)


def _argmin(a, axis=None, out=None, *, keepdims=False):
    # No integer's complement wraps, as its negative may.
    return _argmax(~a if a.dtype.kind in "biu" else -a, axis, out, keepdims=keepdims)


def _flags_as_bytes(a):
    return a.astype(np.int8) if a.dtype == bool else a


def _sort(a, axis=-1, kind=None, order=None, *, stable=None):
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable") or order is not None:
        raise TraceError(f"np.sort with kind={kind!r}, order={order!r}", "np.sort(x, axis=axis)")
    # Of numbers every kind gives the same.
    result = _along("sort", -1)(_flags_as_bytes(a), axis)
    return result.astype(bool) if a.dtype == bool else result


def _argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable") or order is not None:
        raise TraceError(f"np.argsort with kind={kind!r}, order={order!r}", "np.argsort(x, axis=axis)")
    # Of equal values ours keeps the order, which every kind may.
    return _along("argsort", -1)(_flags_as_bytes(a), axis)


def _cumsum(a, axis=None, dtype=None, out=None):
    return _along("cumsum", None)(_flags_as_bytes(a), axis, dtype, out=out)


def _transpose(a, axes=None):
    order = () if axes is None else (to_integers(axes, "np.transpose to the axis"),)
    return call("transpose", (a, *order), {}, "np.transpose")


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
    "fliplr": lambda m: _flip(m, 1, "np.fliplr"),
    "flipud": lambda m: _flip(m, 0, "np.flipud"),
    "rot90": _rot90,
    "moveaxis": _moveaxis,
    "swapaxes": _swapaxes,
    "unpackbits": _unpackbits,
    "packbits": _packbits,
    "reshape": _reshape,
    "pad": _pad,
    **{name: _reduction(name) for name in ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all")},
    "argmax": _argmax,
    "argmin": _argmin,
    "cumsum": _cumsum,
    "sort": _sort,
    "argsort": _argsort,
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
    "diff": _joining.diff,
    "atleast_1d": _joining.atleast(1),
    "atleast_2d": _joining.atleast(2),
    "atleast_3d": _joining.atleast(3),
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "ravel": lambda a, order="C": _reshape(a, -1, order),
    "transpose": _transpose,
    "divmod": lambda x, y: (x // y, x % y),
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
    "astype": lambda x, dtype, *, copy=True: x.astype(dtype),
    "shape": _shape,
    "size": _size,
    "ndim": lambda a: a.ndim,
    "copy": lambda a, *args, **kwargs: a,
    "nan_to_num": _nan_to_num,
}  # fmt: skip


def _to_dense(x):
    """The values of a VarLenFeature as a list, which batches of any kind take."""
    if x.ndim != 1:
        raise TraceError("to_dense of a value of more than one axis", "batches that are sparse have to_dense() in the trainer")
    return x[:]


def _fill(a, value, dtype):
    return np.where(a == a, value, value).astype(a.dtype if dtype is None else dtype)


def _instead(name):
    instead = _INSTEAD.get(name)
    if instead is not None:
        return f"use {instead}"
    return _trace.near(name, {*FUNCTIONS, *_SPECIAL}) or _trace._OUTSIDE


def _apply(name, args, kwargs, shown):
    special = _SPECIAL.get(name)
    if special is not None:
        try:
            return special(*args, **kwargs)
        except TraceError:
            raise
        except (TypeError, ValueError) as error:
            raise TraceError(f"{shown} with these arguments ({error})", "see docs/python.md") from None
    ours = _SYNONYMS.get(name, name)
    if ours not in FUNCTIONS or name in _INSTEAD:
        raise TraceError(f"{shown} cannot be traced", _instead(name))
    return call(ours, args, kwargs, shown)


# What a ufunc's reduce() is called.
_REDUCED = {
    "add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "logical_and": "all", "logical_or": "any"
}  # fmt: skip


def call_ufunc(ufunc, method, inputs, kwargs):
    shown = f"np.{ufunc.__name__}"
    name = _REDUCED.get(ufunc.__name__)
    if method == "reduce" and name is not None:
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
        raise TraceError(f"{shown} cannot be traced", _instead(shown.removeprefix("np.")))
    return _apply(func.__name__, args, kwargs, shown)


def _astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    if casting != "unsafe":
        raise TraceError(f"astype with casting={casting!r}", "what does not fit saturates (docs/expressions.md)")
    try:
        # A string, TensorFlow's and ml_dtypes' type, whose name NumPy does not know.
        name = "bfloat16" if getattr(dtype, "name", dtype) == "bfloat16" else getattr(_dtypes.as_dtype(dtype), "name", "")
    except TypeError as error:
        raise TraceError(f"astype({dtype!r}): {error}", "types are NumPy's, such as np.float32") from None
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
        return lambda *args, **kwargs: _astype(x, *args, **kwargs)
    if name in ("reshape", "transpose"):

        def variadic(*sizes, **kwargs):
            given = sizes if len(sizes) < 2 else (sizes,)
            return _apply(name, (x, *given), kwargs, f".{name}()")

        return variadic
    if name == "flatten":
        name = "ravel"
    if name == "to_dense":
        return lambda: _to_dense(x)
    if name not in METHODS or name not in _SPECIAL and name not in FUNCTIONS:
        return None
    return lambda *args, **kwargs: _apply(name, (x, *args), kwargs, f".{name}()")
