"""NumPy's functions and methods on traced values: which of ours stands for each."""

import math

import numpy as np

from penstock import _dtypes, _joining, _products, _series, _spectrum, _statistics, _taking, _trace
from penstock._axes import as_array, axes_last, counted_from_last, expanded, flat, reshaped_by_data, reshaped_to_rows, sizes_of, to_axes, to_axis, to_integer, to_integers, wrapped
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
    "resize": "np.reshape, or penstock.image.resize for images",
    "piecewise": "nested np.where(condition, a, b)",
    "choose": "np.select([x == 0, x == 1], [a, b], c)",
    "put": "np.where(condition, a, b)",
    "copyto": "np.where(condition, a, b)",
    "place": "np.where(condition, a, b)",
    "put_along_axis": "np.where(condition, a, b)",
    "putmask": "np.where(condition, a, b)",
    "unique": "np.sort; what differs from the value in front of it is the first of its kind",
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


_DEGREE = math.pi / 180


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


def _floating(x):
    """As NumPy's functions of floats take integers; of 8 and 16 bits, as ours do, in float32."""
    if not isinstance(x, _trace.Tensor):
        return np.asarray(x) * 1.0
    return x if _is_floating(x) else x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)


def _modf(x):
    x = _floating(x)
    whole = np.trunc(x)
    # What is left of an infinity is zero; both parts have the number's sign.
    return np.copysign(np.where(abs(x) == np.inf, 0, x - whole), x), whole


def _heaviside(x1, x2):
    x1, x2 = (x if type(x) in (bool, int, float) or isinstance(x, _trace.Tensor) else _trace.packed(x) for x in (x1, x2))
    # Python's numbers take the type of the other.
    kind = np.result_type(*(x if type(x) in (bool, int, float) else x.dtype for x in (x1, x2)))
    if kind.kind in "biu":
        kind = np.dtype(np.float32 if kind.itemsize < 4 else np.float64)
    x1, x2 = (x.astype(kind) if isinstance(x, _trace.Tensor) else np.asarray(x, kind)[()] for x in (x1, x2))
    result = np.where(x1 < 0, 0, np.where(x1 > 0, 1, x2)).astype(kind)
    return np.where(x1 == x1, result, x1)


def _ldexp(x1, x2):
    x1 = _floating(x1)
    # In two steps, neither of which leaves the range before the result does.
    half = x2 // 2
    one, other = (2.0 ** part.astype(np.float64) if isinstance(part, _trace.Tensor) else np.float64(2.0) ** part for part in (half, x2 - half))
    result = (x1.astype(np.float64) * one * other).astype(x1.dtype)
    # No power, an infinite one neither, changes these.
    return np.where((x1 == 0) | (abs(x1) == np.inf), x1, result)


def _reciprocal(x):
    if _is_floating(x):
        return 1.0 / x
    # Of integers an integer, rounded towards zero; that of zero is zero.
    x = _flags_as_bytes(x)
    return np.where(abs(x) == 1, x, x.dtype.type(0))


def _isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = (x if isinstance(x, (int, float, _trace.Tensor)) else _trace.packed(x) for x in (a, b))
    # As NumPy does it: differences of floats, which do not wrap.
    if isinstance(b, (int, float)):
        a, b = a if _is_floating(a) else a.astype(np.float64), float(b)
    elif not _is_floating(b):
        b = b.astype(np.float64)
    if getattr(a, "dtype", None) == bool:
        a = a.astype(np.float64)
    near = (abs(a - b) <= atol + rtol * abs(b)) & (abs(b) < np.inf) | (a == b)
    return near | (a != a) & (b != b) if equal_nan else near


def _array_equal(a1, a2, equal_nan=False):
    a1, a2 = (x if isinstance(x, _trace.Tensor) else _trace.packed(x) for x in (a1, a2))
    if np.ndim(a1) != np.ndim(a2) or any(None not in pair and pair[0] != pair[1] for pair in zip(np.shape(a1), np.shape(a2))):
        return False
    if None in (*a1.shape, *a2.shape):
        raise TraceError("np.array_equal of sizes that only the data tells", "np.all(a == b)")
    return np.all((a1 == a2) | (a1 != a1) & (a2 != a2) if equal_nan else a1 == a2)


def _select(condlist, choicelist, default=0):
    if len(condlist) != len(choicelist) or not condlist:
        raise TraceError(f"np.select of {len(condlist)} conditions and {len(choicelist)} choices", "as many of both")
    values = [*choicelist, default]
    kinds = [value if isinstance(value, (bool, int, float)) else getattr(value, "dtype", None) for value in values]
    if all(isinstance(kind, (bool, int, float, np.dtype)) for kind in kinds):
        # Python's numbers take the type of all others.
        dtype = np.result_type(*kinds)
        values = [dtype.type(value) if value is kind else value for value, kind in zip(values, kinds)]
    *choicelist, result = values
    for condition, choice in reversed(list(zip(condlist, choicelist))):
        result = np.where(condition, choice, result)
    return result


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
    if not values:
        return _taking.nonzero(condition)
    return call("where", (condition, *values), {}, "np.where")


def _expand_dims(a, axis):
    ndim = a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    return expanded(a, to_axes(axis, ndim, "np.expand_dims"))


def _squeeze(a, axis=None):
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


def _bits_last(a, axis, bitorder, shown):
    """The array with the axis of the bits behind the others, and where that axis was; without one all of it is one axis."""
    if bitorder not in ("big", "little"):
        raise TraceError(f"{shown} with bitorder={bitorder!r}", 'it is "big" or "little"')
    a, axis = (flat(a), 0) if axis is None else (a, to_axis(axis, a.ndim, shown))
    return (a if axis == a.ndim - 1 else _moveaxis(a, axis, -1)), axis


def _bytes_turned(bits):
    """Bits whose number is a multiple of eight, those of each byte from the last to the first."""
    *others, size = bits.shape if bits.shape.count(None) < 2 else sizes_of(bits)
    is_last_known = any(other is None for other in others) or size is not None
    of_bytes = _reshape(bits, (*others, size // 8 if is_last_known else -1, 8))
    return _reshape(of_bytes[..., ::-1], (*others, size if is_last_known else -1))


def _unpackbits(a, axis=None, count=None, bitorder="big"):
    a, axis = _bits_last(a, axis, bitorder, "np.unpackbits")
    bits = call("unpack_bits", (a,), {}, "np.unpackbits")
    if bitorder == "little":
        bits = _bytes_turned(bits)
    if count is not None:
        count, size = to_integer(count, "np.unpackbits of the count"), sizes_of(bits)[-1]
        missing = np.maximum(count - size, 0)
        if count > 0 and (isinstance(missing, _trace.Tensor) or missing):
            bits = _pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
        bits = bits[..., :count]
    return bits if axis == bits.ndim - 1 else _moveaxis(bits, -1, axis)


def _packbits(a, axis=None, bitorder="big"):
    a, axis = _bits_last(a, axis, bitorder, "np.packbits")
    a = a if a.dtype in (bool, np.uint8) else a != 0
    if bitorder == "little":
        missing = -sizes_of(a)[-1] % 8
        a = a if isinstance(missing, int) and not missing else _pad(a, [(0, 0)] * (a.ndim - 1) + [(0, missing)])
        a = _bytes_turned(a)
    packed = call("pack_bits", (a,), {}, "np.packbits")
    return packed if axis == packed.ndim - 1 else _moveaxis(packed, -1, axis)


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
    if -1 in sizes and sizes[0] is None and None in own[1:]:
        # As many as x has along its first axis.
        return [call("shape", (a,), {}, "np.reshape")[0], *sizes[1:]]
    return sizes if -1 in sizes else [-1 if size is None else size for size in sizes]


def _size(a, axis=None):
    """The number of elements, or of those along an axis, as _shape."""
    if axis is not None:
        return _shape(a)[to_axis(axis, a.ndim, "np.size")]
    return np.prod(_shape(a)) if None in a.shape else math.prod(a.shape)


def _reshape(a, shape=None, order="C", *, newshape=None, copy=None):
    if order != "C":
        raise TraceError(f"np.reshape in order {order}", "np.reshape(x.T, sizes[::-1]).T is in order F; np.ravel(x.T) is flat in it")
    shape = shape if shape is not None else newshape
    if _trace.find_trace([shape]) is not None:
        return reshaped_by_data(a, shape)
    shape = _sizes_with_rest(a, shape)
    if _trace.find_trace([shape]) is not None:
        return reshaped_by_data(a, shape)
    sizes = to_integers(shape, "np.reshape to the size")
    return reshaped_to_rows(a, sizes, "np.reshape") if sizes else _squeeze(a, tuple(range(a.ndim)))


def _pad(array, pad_width, mode="constant", **kwargs):
    if _trace.find_trace([pad_width]) is not None:
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
        -1 if size is None or _trace.find_trace(pair) is not None else size + sum(to_integers(pair, "np.pad by")) for size, pair in zip(shape, pad_width)
    ]
    if len(pad_width) != len(shape) or set(sizes) == {-1}:
        return padded
    return call("ensure_shape", (padded, sizes), {}, "np.pad")


# What a value that is left out of a reduction counts as.
_LEFT_OUT = {"sum": 0, "prod": 1, "any": False, "all": True}
# How NumPy's `initial` meets the result.
_WITH_INITIAL = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


# The order in which NumPy takes what stands behind the array.
_OF_SUMS = ("axis", "dtype", "out", "keepdims", "initial", "where")
_OF_DEVIATIONS = ("axis", "dtype", "out", "ddof", "keepdims")
_OF_EXTREMES = ("axis", "out", "keepdims", "initial", "where")
_OF_FLAGS = ("axis", "out", "keepdims")
_REDUCTIONS = {
    "sum": _OF_SUMS, "prod": _OF_SUMS, "mean": _OF_SUMS[:4], "std": _OF_DEVIATIONS, "var": _OF_DEVIATIONS, "max": _OF_EXTREMES, "min": _OF_EXTREMES,
    "any": _OF_FLAGS, "all": _OF_FLAGS,
}  # fmt: skip


def _reduction(name):
    """NumPy's reduction by ours, which counts axes from the last; without an axis it takes all values of an element."""
    shown = f"np.{name}"

    order = _REDUCTIONS[name]

    def reduce(a, *args, **kwargs):
        if len(args) > len(order):
            raise TypeError(f"it takes {1 + len(order)} arguments in a row, not {1 + len(args)}")
        return reduce_named(a, **dict(zip(order, args)), **kwargs)

    def reduce_named(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=True, **kwargs):
        if out is not None:
            raise TraceError(f"{shown} into an array", "it gives a new one")
        if not isinstance(a, _trace.Tensor):
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
    return initial.astype(dtype) if isinstance(initial, _trace.Tensor) else np.asarray(initial, dtype)[()]


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
        total = _apply("sum", (a.astype(np.float64),), {**kwargs, "where": where, "dtype": None}, "np.mean")
        flags = where if isinstance(where, _trace.Tensor) else np.asarray(where)
        count = _apply("sum", (np.where(flags, 1, 0) + _zeros(a),), {**kwargs, "dtype": None}, "np.mean")
        kind = kwargs["dtype"] or (a.dtype if a.dtype.kind == "f" else np.float64)
        return (total / count).astype(kind)
    if name in ("max", "min") and initial is not None:
        return reduce(np.where(where, a, np.asarray(initial, a.dtype)[()]), initial=initial, **kwargs)
    raise TraceError(f"np.{name} where a condition holds" + (", without initial" if name in ("max", "min") else ""),
                     "np.where(condition, x, value) before it")  # fmt: skip


def _zeros(a):
    return np.where(a == a, np.int64(0), np.int64(0))


def _along(name, axis):
    """NumPy's function along one axis by ours, which counts axes from the last; by None all values stand in one."""
    default = axis

    def apply(a, axis=default, **kwargs):
        a, axis = (flat(a), -1) if axis is None else (a, axis)
        kwargs["axis"] = counted_from_last(axis, a.ndim, f"np.{name}")
        return call(name, (a,), kwargs, f"np.{name}")

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


def _cumulative(name):
    def apply(a, axis=None, dtype=None, out=None):
        # The type is the one that it is computed in; ours of integers has 64 bits, of which a shorter one has the lower ones.
        short = None if dtype is None else np.dtype(dtype)
        if short is not None and (short.kind not in "iu" or a.dtype.kind not in "biu"):
            a = a.astype(short if short.kind not in "iu" else np.uint64 if short.kind == "u" else np.int64)
        result = _along(name, None)(_flags_as_bytes(a), axis, out=out)
        return result if short is None or short.kind == "f" else result.astype(bool) if short == bool else wrapped(result, short)

    return apply


_cumsum = _cumulative("cumsum")


def _extremes(name):
    def apply(a, axis=0, dtype=None, out=None):
        if out is not None:
            raise TraceError(f"np.{name}.accumulate into an array", "it gives a new one")
        result = _along(f"{name}_accumulate", 0)(_flags_as_bytes(a if dtype is None else a.astype(dtype)), axis)
        return result.astype(bool) if a.dtype == bool and dtype is None else result

    return apply


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
    **{name: _reduction(name) for name in _REDUCTIONS},
    "argmax": _argmax,
    "argmin": _argmin,
    "cumsum": _cumsum,
    "cumprod": _cumulative("cumprod"),
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
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "ravel": lambda a, order="C": _reshape(a, -1, order),
    "transpose": _transpose,
    "divmod": lambda x, y: (x // y, x % y),
    "square": lambda x: _flags_as_bytes(x) * _flags_as_bytes(x),
    "reciprocal": _reciprocal,
    "positive": lambda x: x,
    "fix": lambda x: np.trunc(x),
    "modf": _modf,
    "ldexp": _ldexp,
    "heaviside": _heaviside,
    "float_power": lambda x1, x2: call("power", tuple(np.asarray(x, np.float64)[()] if not isinstance(x, _trace.Tensor) else x.astype(np.float64) for x in (x1, x2)), {}, "np.float_power"),
    **{name: lambda x: _floating(x) * _DEGREE for name in ("deg2rad", "radians")},
    **{name: lambda x: _floating(x) * (1 / _DEGREE) for name in ("rad2deg", "degrees")},
    "isneginf": lambda x, out=None: x == -np.inf,
    "isposinf": lambda x, out=None: x == np.inf,
    "isclose": _isclose,
    "allclose": lambda a, b, rtol=1e-05, atol=1e-08, equal_nan=False: np.all(_isclose(a, b, rtol, atol, equal_nan)),
    "array_equal": _array_equal,
    "select": _select,
    "matrix_transpose": lambda x, /: np.swapaxes(x, -1, -2),
    "cumulative_sum": lambda x, /, *, axis=None, dtype=None: _cumsum(x, axis, dtype),
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == np.inf,
    "isfinite": lambda x: abs(x) < np.inf,
    "logical_and": lambda a, b: _as_bool(a) & _as_bool(b),
    "logical_or": lambda a, b: _as_bool(a) | _as_bool(b),
    "logical_xor": lambda a, b: _as_bool(a) ^ _as_bool(b),
    "logical_not": lambda a: ~_as_bool(a),
    "zeros_like": lambda a, dtype=None: _fill(a, 0, dtype),
    "ones_like": lambda a, dtype=None: _fill(a, 1, dtype),
    "full_like": lambda a, fill_value, dtype=None: _full_like(a, fill_value, dtype),
    "empty_like": lambda a, dtype=None: _fill(a, 0, dtype),
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


def _full_like(a, value, dtype=None):
    shape = as_array(value).shape
    own = a.shape[max(a.ndim - len(shape), 0) :]
    if len(shape) > a.ndim or any(size not in (None, 1, to) and to is not None for size, to in zip(shape, own)):
        raise TraceError(f"np.full_like of a value of shape {shape} for one of {a.shape}", "a number, or a value that repeats to the shape")
    result = _fill(a, value, dtype)
    # Python's own integers do not wrap, as in NumPy.
    if type(value) is int and result.dtype in _INTEGERS and not np.iinfo(result.dtype).min <= value <= np.iinfo(result.dtype).max:
        raise TraceError(f"np.full_like of {value}, which {result.dtype} does not hold", "a value of that type, or another dtype")
    return result


_INTEGERS = tuple(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))


def _fill(a, value, dtype):
    return np.where(a == a, value, value).astype(a.dtype if dtype is None else dtype)


def _instead(name):
    instead = _INSTEAD.get(name)
    if instead is not None:
        return f"use {instead}"
    return _trace.near(name, {*FUNCTIONS, *_SPECIAL}) or _trace._OUTSIDE


# Whose results share the memory of their first argument, where it has an order that allows it.
_VIEWS = {
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_to", "diagonal", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
    "lib.stride_tricks.sliding_window_view", "matrix_transpose", "moveaxis", "permute_dims", "ravel", "reshape", "rollaxis", "rot90", "split", "squeeze",
    "swapaxes", "transpose", "unstack", "vsplit",
}  # fmt: skip


def _apply(name, args, kwargs, shown):
    """What NumPy's function gives, as a view of the argument where NumPy's is."""
    result = _applied(name, args, kwargs, shown)
    base = args[0] if args else None
    if name not in _VIEWS:
        return result._copied() if isinstance(result, _trace.Tensor) and (result is base or result._base is not None) else result
    if isinstance(base, _trace.Tensor):
        for part in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(part, _trace.Tensor):
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
_ACCUMULATED = {"add": _cumsum, "multiply": _cumulative("cumprod"), "maximum": _extremes("maximum"), "minimum": _extremes("minimum")}


def call_ufunc(ufunc, method, inputs, kwargs):
    shown = f"np.{ufunc.__name__}"
    name = _REDUCED.get(ufunc.__name__)
    if method == "reduce" and name is not None:
        # As ufunc.reduce does: the first axis unless one is given.
        kwargs.setdefault("axis", 0)
        return _apply(name, inputs, kwargs, shown + ".reduce")
    if method == "accumulate" and ufunc.__name__ in _ACCUMULATED:
        return _ACCUMULATED[ufunc.__name__](*inputs, **{"axis": 0, **kwargs})
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
    name = func.__name__ if module in ("numpy", "np") else shown.removeprefix("np.")
    if module not in ("numpy", "np") and name not in _SPECIAL:
        raise TraceError(f"{shown} cannot be traced", _instead(name))
    return _apply(name, args, kwargs, shown)


def _astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    if casting != "unsafe":
        raise TraceError(f"astype with casting={casting!r}", "what does not fit saturates (docs/expressions.md)")
    try:
        # A string, TensorFlow's and ml_dtypes' type, whose name NumPy does not know.
        name = "bfloat16" if getattr(dtype, "name", dtype) == "bfloat16" else getattr(_dtypes.as_dtype(dtype), "name", "")
    except TypeError as error:
        raise TraceError(f"astype({dtype!r}): {error}", "types are NumPy's, such as np.float32") from None
    return call(name, (x,), {}, f"astype({name})")


# What to use in the place of a method or an attribute that a traced value lacks.
INSTEAD_OF_METHODS = {
    "sort": "np.sort(x), which gives a new one",
    "fill": "np.full_like(x, value)",
    "item": "x[()] of a scalar is itself",
    "tolist": "the value itself: it is an array",
    "numpy": "the value itself: NumPy's functions take it",
    "view": "penstock.io.decode_raw of a string's bytes; x.astype(dtype) converts the values",
    "nbytes": "x.size, and the size of its type",
    "flat": "np.ravel(x)",
    "searchsorted": "np.searchsorted(x, v)",
    "put": "np.where(condition, a, b)",
    "get_shape": "x.shape",
    "real": "the value itself: there are no complex numbers",
    "imag": "zeros: there are no complex numbers",
    "conj": "the value itself: there are no complex numbers",
    "to": "x.astype(dtype)",
    "float": "x.astype(np.float32)",
    "permute": "np.transpose(x, axes)",
    "unsqueeze": "np.expand_dims(x, axis)",
    **{name: f"penstock.strings.{name}(x)" for name in ("lower", "upper", "strip")},
    "split": "penstock.strings.split(x, separator)",
    "replace": "penstock.strings.regex_replace(x, pattern, rewrite)",
    "decode": "x itself: texts are bytes in UTF-8",
    "encode": "x itself: texts are bytes in UTF-8",
    "startswith": 'penstock.strings.regex_full_match(x, "start.*")',
    "endswith": 'penstock.strings.regex_full_match(x, ".*end")',
    "format": "penstock.strings.join([a, b]), and penstock.strings.as_string of numbers",
}

# Methods of arrays that stand for functions of the same names.
METHODS = ("astype", "reshape", "transpose", "T", "clip", "round", "squeeze", "ravel", "flatten", "swapaxes", "copy",
           "sum", "mean", "min", "max", "prod", "std", "var", "any", "all", "argmax", "argmin", "repeat", "take",
           "cumsum", "cumprod", "argsort", "compress", "diagonal", "dot", "nonzero", "trace")  # fmt: skip


def method(x, name):
    """The method `name` of a traced value, or its value; None if there is none."""
    if name == "T":
        return _transpose(x)._as_view_of(x)
    if name == "astype":
        return lambda *args, **kwargs: _astype(x, *args, **kwargs)
    if name in ("reshape", "transpose"):

        def variadic(*sizes, **kwargs):
            given = sizes if len(sizes) < 2 else (sizes,)
            return _apply(name, (x, *given), kwargs, f".{name}()")

        return variadic
    if name == "flatten":
        return lambda *args, **kwargs: _apply("ravel", (x, *args), kwargs, ".flatten()")._copied()
    if name == "compress":
        return lambda condition, axis=None, out=None: _taking.compress(condition, x, axis, out)
    if name == "to_dense":
        return lambda: _to_dense(x)
    if name not in METHODS or name not in _SPECIAL and name not in FUNCTIONS:
        return None
    return lambda *args, **kwargs: _apply(name, (x, *args), kwargs, f".{name}()")
