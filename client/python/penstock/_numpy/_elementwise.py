"""NumPy's functions of each value by itself: rounding, comparing, choosing, and parts of floats."""

import math

import numpy as np

from penstock._numpy import _taking
from penstock._numpy._axes import as_array, to_integer
from penstock._tracing import _constants
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import StandIn

DEGREE = math.pi / 180


def as_bool(x):
    return x.astype(bool) if isinstance(x, StandIn) else np.asarray(x, bool)[()]


def round(x, decimals=0, out=None):
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


def fabs(x):
    if not _is_floating(x):
        x = x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)
    return call("abs", (x,), {}, "np.fabs")


def floating(x):
    """As NumPy's functions of floats take integers; of 8 and 16 bits, as ours do, in float32."""
    if not isinstance(x, StandIn):
        return np.asarray(x) * 1.0
    return x if _is_floating(x) else x.astype(np.float32 if x.dtype.itemsize < 4 else np.float64)


def modf(x):
    x = floating(x)
    whole = np.trunc(x)
    # What is left of an infinity is zero; both parts have the number's sign.
    return np.copysign(np.where(abs(x) == np.inf, 0, x - whole), x), whole


def heaviside(x1, x2):
    x1, x2 = (x if type(x) in (bool, int, float) or isinstance(x, StandIn) else _constants.packed(x) for x in (x1, x2))
    # Python's numbers take the type of the other.
    kind = np.result_type(*(x if type(x) in (bool, int, float) else x.dtype for x in (x1, x2)))
    if kind.kind in "biu":
        kind = np.dtype(np.float32 if kind.itemsize < 4 else np.float64)
    x1, x2 = (x.astype(kind) if isinstance(x, StandIn) else np.asarray(x, kind)[()] for x in (x1, x2))
    result = np.where(x1 < 0, 0, np.where(x1 > 0, 1, x2)).astype(kind)
    return np.where(x1 == x1, result, x1)


def ldexp(x1, x2):
    x1 = floating(x1)
    # In two steps, neither of which leaves the range before the result does.
    half = x2 // 2
    one, other = (2.0 ** part.astype(np.float64) if isinstance(part, StandIn) else np.float64(2.0) ** part for part in (half, x2 - half))
    result = (x1.astype(np.float64) * one * other).astype(x1.dtype)
    # No power, an infinite one neither, changes these.
    return np.where((x1 == 0) | (abs(x1) == np.inf), x1, result)


def reciprocal(x):
    if _is_floating(x):
        return 1.0 / x
    # Of integers an integer, rounded towards zero; that of zero is zero.
    x = flags_as_bytes(x)
    return np.where(abs(x) == 1, x, x.dtype.type(0))


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = (x if isinstance(x, (int, float, StandIn)) else _constants.packed(x) for x in (a, b))
    # As NumPy does it: differences of floats, which do not wrap.
    if isinstance(b, (int, float)):
        a, b = a if _is_floating(a) else a.astype(np.float64), float(b)
    elif not _is_floating(b):
        b = b.astype(np.float64)
    if getattr(a, "dtype", None) == bool:
        a = a.astype(np.float64)
    near = (abs(a - b) <= atol + rtol * abs(b)) & (abs(b) < np.inf) | (a == b)
    return near | (a != a) & (b != b) if equal_nan else near


def array_equal(a1, a2, equal_nan=False):
    a1, a2 = (x if isinstance(x, StandIn) else _constants.packed(x) for x in (a1, a2))
    if np.ndim(a1) != np.ndim(a2) or any(None not in pair and pair[0] != pair[1] for pair in zip(np.shape(a1), np.shape(a2))):
        return False
    if None in (*a1.shape, *a2.shape):
        raise TraceError("np.array_equal of sizes that only the data tells", "np.all(a == b)")
    return np.all((a1 == a2) | (a1 != a1) & (a2 != a2) if equal_nan else a1 == a2)


def select(condlist, choicelist, default=0):
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


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    if not _is_floating(x):
        return x
    if x.dtype not in (np.float32, np.float64):
        raise TraceError(f"np.nan_to_num of {x.dtype}", "cast it to float32")
    limits = np.finfo(x.dtype)
    for at, value in ((np.inf, limits.max if posinf is None else posinf), (-np.inf, limits.min if neginf is None else neginf)):
        x = np.where(x == at, x.dtype.type(value), x)
    return np.where(np.isnan(x), x.dtype.type(nan), x)


def cast(x, dtype):
    """Python's numbers stay as they are: they take the type of what they meet."""
    return x.astype(dtype) if isinstance(x, (StandIn, np.ndarray, np.generic)) else x


def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, dtype=None):
    if out is not None:
        raise TraceError("np.clip into an array", "it gives a new one")
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    if dtype is not None:
        a, low, high = (cast(x, dtype) for x in (a, low, high))
    if low is None:
        return a if high is None else np.minimum(a, high)
    if high is None:
        return np.maximum(a, low)
    return call("clip", (a, low, high), {}, "np.clip")


def where(condition, *values):
    if not values:
        return _taking.nonzero(condition)
    return call("where", (condition, *values), {}, "np.where")


def zeros(a):
    return np.where(a == a, np.int64(0), np.int64(0))


def flags_as_bytes(a):
    return a.astype(np.int8) if a.dtype == bool else a


def full_like(a, value, dtype=None):
    shape = as_array(value).shape
    own = a.shape[max(a.ndim - len(shape), 0) :]
    if len(shape) > a.ndim or any(size not in (None, 1, to) and to is not None for size, to in zip(shape, own)):
        raise TraceError(f"np.full_like of a value of shape {shape} for one of {a.shape}", "a number, or a value that repeats to the shape")
    result = fill(a, value, dtype)
    # Python's own integers do not wrap, as in NumPy.
    if type(value) is int and result.dtype in _INTEGERS and not np.iinfo(result.dtype).min <= value <= np.iinfo(result.dtype).max:
        raise TraceError(f"np.full_like of {value}, which {result.dtype} does not hold", "a value of that type, or another dtype")
    return result


_INTEGERS = tuple(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))


def fill(a, value, dtype):
    return np.where(a == a, value, value).astype(a.dtype if dtype is None else dtype)
