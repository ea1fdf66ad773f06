"""NumPy's functions of how values are distributed: medians, quantiles, counts, and what leaves NaN out."""

import numpy as np

from penstock._numpy._axes import as_array, axes_last, expanded, flat, to_axes, wrapped
from penstock._tracing import _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def _refuse(shown, **given):
    for name, value in given.items():
        if value is not None and value is not False:
            raise TraceError(f"{shown} with {name}={value!r}", "leave it out")


def _as_row(a, axis, shown):
    """The values that are taken together along the last axis, and which axes those were."""
    if axis is None:
        return flat(a), list(range(a.ndim))
    axes = sorted(to_axes(axis, a.ndim, shown))
    if not axes:
        raise TraceError(f"{shown} over no axis", "leave it out")
    if axes == [a.ndim - 1]:
        return a, axes
    return axes_last(a, axes, shown), axes


def _placed(result, a, axes, keepdims):
    """The result, with axes of a size of one where `axes` were, if they are kept."""
    if not keepdims:
        return result
    return np.reshape(result, (1,) * a.ndim) if len(axes) == a.ndim else expanded(result, axes)


def _size_along_last(a):
    size = a.shape[-1]
    return np.shape(a)[-1] if size is None else size


def _can_be_nan(a):
    return a.dtype.kind == "f"


def _unless_nan(ordered, result, place=-1):
    """The result, but NaN where there is one, which stands last, at `place`."""
    if not _can_be_nan(ordered):
        return result
    last = ordered[..., place]
    return np.where(last == last, result, last.astype(result.dtype))


def _floating(a):
    return a if _can_be_nan(a) else a.astype(np.float64)


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    _refuse("np.median", out=out)
    row, axes = _as_row(a, axis, "np.median")
    ordered = np.sort(row)
    size = _size_along_last(row)
    if isinstance(size, _trace.StandIn):
        # Where there are none, the places in the middle and the last one are that of the zero.
        ordered = np.pad(ordered, [(0, 0)] * (row.ndim - 1) + [(0, 1)])
    low, high = (_floating(ordered[..., place]) for place in ((size - 1) // 2, size // 2))
    if isinstance(size, _trace.StandIn):
        middle = np.where(size == 0, low.dtype.type(np.nan), np.where(size % 2 == 1, low, (low + high) / 2))
    else:
        middle = low if size % 2 else (low + high) / 2
    return _placed(_unless_nan(ordered, middle, size - 1), a, axes, keepdims)


def _places(method, size, q):
    """Where in a sorted row of `size` values a quantile stands: between which two, and how far from the first."""
    if method not in ("linear", "lower", "higher", "nearest", "midpoint"):
        raise TraceError(f"method={method!r} of a quantile", "methods are linear, lower, higher, nearest and midpoint")
    place = (size - 1) * q
    if method == "lower":
        place = np.floor(place)
    elif method == "higher":
        place = np.ceil(place)
    elif method == "nearest":
        # Of two that are as near, the even one.
        place = np.rint(place)
    elif method == "midpoint":
        place = 0.5 * (np.floor(place) + np.ceil(place))
    before = np.floor(place)
    return before.astype(np.int64), np.minimum(before + 1, size - 1).astype(np.int64), place - before


def _one_quantile(ordered, q, is_weak, method):
    size = _size_along_last(ordered)
    before, behind, part = _places(method, size, np.float64(q))
    low, high = (ordered[..., place] for place in (before, behind))
    if method in ("lower", "higher", "nearest"):
        return _unless_nan(ordered, low)
    low, high = _floating(low), _floating(high)
    # Python's numbers take the type of the values; NumPy's are float64, in which the difference is multiplied then.
    kind = low.dtype if is_weak else np.dtype(np.float64)
    between, rest = high - low, 1 - part
    if isinstance(part, _trace.StandIn):
        result = np.where(part >= 0.5, high - between * rest.astype(kind), low + between * part.astype(kind))
    else:
        result = high - between * kind.type(rest) if part >= 0.5 else low + between * kind.type(part)
    return _unless_nan(ordered, result)


def _quantile(a, q, axis, method, keepdims, shown):
    if isinstance(q, _trace.StandIn):
        raise TraceError(f"{shown} of a part that only the data tells", "it is a constant")
    parts = np.asarray(q, np.float64)
    if parts.ndim > 1 or not ((parts >= 0) & (parts <= 1)).all():
        raise TraceError(f"{shown} of {q!r}", "one part, or a list of them, from the least to the greatest value")
    row, axes = _as_row(a, axis, shown)
    ordered = np.sort(row)
    is_weak = type(q) in (int, float)
    found = [_placed(_one_quantile(ordered, each, is_weak, method), a, axes, keepdims) for each in parts.ravel()]
    return np.stack(found) if parts.ndim else found[0]


def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    _refuse("np.quantile", out=out, weights=weights)
    return _quantile(a, q, axis, method, keepdims, "np.quantile")


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    _refuse("np.percentile", out=out, weights=weights)
    q = q if isinstance(q, _trace.StandIn) else q / 100 if type(q) in (int, float) else np.true_divide(q, 100)
    return _quantile(a, q, axis, method, keepdims, "np.percentile")


def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    _refuse("np.average", returned=returned)
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    weights = weights if isinstance(weights, _trace.StandIn) else np.asarray(weights)
    if not isinstance(a, _trace.StandIn):
        a = np.asarray(a)
    dtype = np.result_type(a.dtype, weights.dtype, *([np.float64] if a.dtype.kind in "biu" else []))
    if weights.ndim != a.ndim:
        if weights.ndim != 1 or axis is None or isinstance(axis, tuple):
            raise TraceError("np.average with weights of another shape", "weights are of the array's shape, or a list along one axis")
        (along,) = to_axes(axis, a.ndim, "np.average")
        wanted = a.shape[along : along + 1]
    else:
        along, wanted = None, a.shape
    if any(None not in sizes and sizes[0] != sizes[1] for sizes in zip(weights.shape, wanted)):
        raise TraceError(f"np.average of values of shape {a.shape} with weights of shape {weights.shape}", "a weight for each value that is averaged")
    if along is not None:
        weights = weights[(*(None,) * along, slice(None), *(None,) * (a.ndim - along - 1))]
    weights = weights.astype(dtype)
    total = np.sum(a.astype(dtype) * weights, axis=axis, keepdims=keepdims)
    return total / np.sum(weights, axis=axis, keepdims=keepdims)


def ptp(a, axis=None, out=None, keepdims=False):
    _refuse("np.ptp", out=out)
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def count_nonzero(a, axis=None, *, keepdims=False):
    return np.sum(a != 0, axis=axis, keepdims=keepdims)


def bincount(x, /, weights=None, minlength=0):
    given = {} if weights is None else {"weights": weights}
    return call("bincount", (x, minlength), given, "np.bincount")


def histogram(a, bins=10, range=None, density=None, weights=None):
    _refuse("np.histogram", density=density)
    a = as_array(a)
    if isinstance(bins, (int, np.integer)):
        if range is None:
            raise TraceError("np.histogram of a range that only the data tells", "np.histogram(x, bins, range=(low, high)), or a list of edges")
        low, high = range
        if low == high:
            low, high = low - 0.5, high + 0.5
        dtype = np.result_type(low, high, a.dtype)
        edges = np.linspace(low, high, bins + 1, dtype=dtype if dtype.kind == "f" else np.float64)
    elif isinstance(bins, (list, tuple, np.ndarray)):
        edges = np.asarray(bins)
    else:
        raise TraceError(f"np.histogram with bins={bins!r}", "a number of bins and a range, or a list of edges")
    if edges.ndim != 1 or edges.size < 2 or (edges[1:] < edges[:-1]).any():
        raise TraceError("np.histogram with these edges", "they are two at least, in rising order")
    values = flat(a)
    # Bin 0 and the last one are of what lies outside; the greatest edge belongs to the bin in front of it.
    place = np.where(values == edges[-1], len(edges) - 1, np.searchsorted(edges, values, side="right"))
    if weights is not None:
        weights = flat(weights)
    given = {} if weights is None else {"weights": weights}
    counts = call("bincount", (place, len(edges) + 1, len(edges) + 1), given, "np.histogram")[1 : len(edges)]
    if weights is not None:
        # Sums of short integers wrap.
        wide = {"i": np.int64, "u": np.uint64}.get(weights.dtype.kind)
        counts = counts.astype(weights.dtype) if wide is None else wrapped(counts.astype(wide), weights.dtype)
    return counts, edges


def _without_nan(a, value):
    return np.where(a == a, a, a.dtype.type(value)) if _can_be_nan(a) else a


def nansum(a, axis=None, dtype=None, out=None, keepdims=False):
    _refuse("np.nansum", out=out)
    return np.sum(_without_nan(a, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False):
    _refuse("np.nanprod", out=out)
    return np.prod(_without_nan(a, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(a, axis=None, dtype=None, out=None):
    _refuse("np.nancumsum", out=out)
    return np.cumsum(_without_nan(a, 0), axis=axis, dtype=dtype)


def _nan_extreme(name, reduce, other):
    def apply(a, axis=None, out=None, keepdims=False):
        _refuse(f"np.{name}", out=out)
        result = reduce(_without_nan(a, other), axis=axis, keepdims=keepdims)
        if not _can_be_nan(a):
            return result
        return np.where(np.all(a != a, axis=axis, keepdims=keepdims), a.dtype.type(np.nan), result)

    return apply


nanmax = _nan_extreme("nanmax", np.max, -np.inf)
nanmin = _nan_extreme("nanmin", np.min, np.inf)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False):
    _refuse("np.nanmean", out=out)
    a = a if dtype is None else a.astype(dtype)
    if not _can_be_nan(a):
        return np.mean(a, axis=axis, keepdims=keepdims)
    # Divided in float64, and rounded once, as np.mean is.
    total = np.sum(_without_nan(a, 0).astype(np.float64), axis=axis, keepdims=keepdims)
    return (total / np.sum(a == a, axis=axis, keepdims=keepdims)).astype(a.dtype)


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    _refuse("np.nanvar", out=out)
    a = a if dtype is None else a.astype(dtype)
    if not _can_be_nan(a):
        return np.var(a, axis=axis, ddof=ddof, keepdims=keepdims)
    wide = a.astype(np.float64)
    away = wide - nanmean(wide, axis=axis, keepdims=True)
    left = np.sum(a == a, axis=axis, keepdims=keepdims) - ddof
    total = np.sum(np.where(a == a, away * away, 0.0), axis=axis, keepdims=keepdims)
    return np.where(left > 0, total / left, np.nan).astype(a.dtype)


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    _refuse("np.nanstd", out=out)
    a = a if dtype is None else a.astype(dtype)
    wide = a.astype(np.float64) if _can_be_nan(a) else a
    result = np.sqrt(nanvar(wide, axis=axis, ddof=ddof, keepdims=keepdims))
    return result.astype(a.dtype) if _can_be_nan(a) else result
