"""NumPy's functions along one axis: places of extremes, sorting, and sums so far."""

import numpy as np

from penstock._numpy._axes import counted_from_last, flat, wrapped
from penstock._numpy._elementwise import flags_as_bytes
from penstock._numpy._shapes import expand_dims, reshape
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def _along(name, axis):
    """NumPy's function along one axis by ours, which counts axes from the last; by None all values stand in one."""
    default = axis

    def apply(a, axis=default, **kwargs):
        a, axis = (flat(a), -1) if axis is None else (a, axis)
        kwargs["axis"] = counted_from_last(axis, a.ndim, f"np.{name}")
        return call(name, (a,), kwargs, f"np.{name}")

    return apply


def argmax(a, axis=None, out=None, *, keepdims=False):
    place = _along("argmax", None)(flags_as_bytes(a), axis, out=out)
    if not keepdims:
        return place
    return reshape(place, (1,) * a.ndim) if axis is None else expand_dims(place, axis)


def argmin(a, axis=None, out=None, *, keepdims=False):
    # No integer's complement wraps, as its negative may.
    return argmax(~a if a.dtype.kind in "biu" else -a, axis, out, keepdims=keepdims)


def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable") or order is not None:
        raise TraceError(f"np.sort with kind={kind!r}, order={order!r}", "np.sort(x, axis=axis)")
    # Of numbers every kind gives the same.
    result = _along("sort", -1)(flags_as_bytes(a), axis)
    return result.astype(bool) if a.dtype == bool else result


def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable") or order is not None:
        raise TraceError(f"np.argsort with kind={kind!r}, order={order!r}", "np.argsort(x, axis=axis)")
    # Of equal values ours keeps the order, which every kind may.
    return _along("argsort", -1)(flags_as_bytes(a), axis)


def cumulative(name):
    def apply(a, axis=None, dtype=None, out=None):
        # The type is the one that it is computed in; ours of integers has 64 bits, of which a shorter one has the lower ones.
        short = None if dtype is None else np.dtype(dtype)
        if short is not None and (short.kind not in "iu" or a.dtype.kind not in "biu"):
            a = a.astype(short if short.kind not in "iu" else np.uint64 if short.kind == "u" else np.int64)
        result = _along(name, None)(flags_as_bytes(a), axis, out=out)
        return result if short is None or short.kind == "f" else result.astype(bool) if short == bool else wrapped(result, short)

    return apply


cumsum = cumulative("cumsum")


def extremes(name):
    def apply(a, axis=0, dtype=None, out=None):
        if out is not None:
            raise TraceError(f"np.{name}.accumulate into an array", "it gives a new one")
        result = _along(f"{name}_accumulate", 0)(flags_as_bytes(a if dtype is None else a.astype(dtype)), axis)
        return result.astype(bool) if a.dtype == bool and dtype is None else result

    return apply
