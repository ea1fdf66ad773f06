"""NumPy's functions that put traced values side by side, repeat them, move them round, or take them apart."""

import numpy as np

from penstock import _dtypes
from penstock._numpy._axes import as_array, counted_from_last, flat, to_axis, to_integer, to_integers
from penstock._tracing import _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def is_of_strings(a):
    return a.dtype is _dtypes.string or getattr(a.dtype, "kind", "") in "OSU"


def _operands(arrays, dtype, shown):
    """The arrays that a function joins, of one type as NumPy finds it."""
    if isinstance(arrays, _trace.StandIn):
        raise TraceError(f"{shown} of the parts of a traced value", "it takes a list of arrays")
    arrays = [as_array(a) for a in arrays]
    strings = [is_of_strings(a) for a in arrays]
    if any(strings):
        if not all(strings) or dtype is not None:
            raise TraceError(f"{shown} of strings and numbers", "penstock.strings.as_string(x) makes strings of numbers")
        return arrays
    dtype = np.result_type(*(a.dtype for a in arrays)) if dtype is None else np.dtype(dtype)
    return [a if a.dtype == dtype else a.astype(dtype) for a in arrays]


def _joined(arrays, axis):
    while len(arrays) > 1:
        # Ours take up to four.
        parts = [arrays[i : i + 4] for i in range(0, len(arrays), 4)]
        arrays = [_joined_few(part, axis) for part in parts]
    return arrays[0]


def _joined_few(arrays, axis):
    if len(arrays) == 1:
        return arrays[0]
    if not any(isinstance(a, _trace.StandIn) for a in arrays):
        return np.concatenate(arrays, axis)
    return call("concat", arrays, {"axis": axis}, "np.concatenate")


def _refuse_out(shown, out, casting):
    if out is not None or casting != "same_kind":
        raise TraceError(f"{shown} into an array, or with other casts", "x.astype(dtype)")


def concatenate(arrays, axis=0, out=None, dtype=None, casting="same_kind", shown="np.concatenate"):
    _refuse_out(shown, out, casting)
    arrays = _operands(arrays, dtype, shown)
    if axis is None:
        arrays, axis = [flat(a) for a in arrays], 0
    return _joined(arrays, counted_from_last(axis, arrays[0].ndim, shown))


def stack(arrays, axis=0, out=None, dtype=None, casting="same_kind"):
    _refuse_out("np.stack", out, casting)
    arrays = _operands(arrays, dtype, "np.stack")
    axis = counted_from_last(axis, arrays[0].ndim + 1, "np.stack")
    if arrays[0].ndim and (len(arrays) == 1 or len(arrays) > 4):
        return _joined([np.expand_dims(a, axis) for a in arrays], axis)
    if 2 <= len(arrays) <= 4 and not any(_is_text(a) for a in arrays):
        return call("stack", arrays, {"axis": axis}, "np.stack")
    return _joined([a.reshape(1) if isinstance(a, np.ndarray) else np.expand_dims(a, axis) for a in arrays], axis)


def _is_text(a):
    return isinstance(a, np.ndarray) and is_of_strings(a) and not a.ndim


def atleast(count):
    """np.atleast_1d and its like, of one array or several."""

    def apply(*arrays):
        found = [_with_axes(a, count) for a in arrays]
        return found[0] if len(found) == 1 else found

    return apply


def _with_axes(a, count):
    ndim = np.ndim(a)
    if ndim >= count:
        return a
    if ndim == 0:
        before, behind = count, 0
    else:
        # Of (n,) and (n, m) NumPy makes (1, n), (1, n, 1) and (n, m, 1).
        before, behind = (1, count - 2) if ndim == 1 else (0, 1)
    if not isinstance(a, _trace.StandIn):
        a = np.asarray(a)
    return a[(*(None,) * before, *(slice(None),) * ndim, *(None,) * behind)]


def _stacked(name, count, axis):
    shown = f"np.{name}"

    def apply(tup, *, dtype=None, casting="same_kind"):
        if isinstance(tup, _trace.StandIn):
            raise TraceError(f"{shown} of the parts of a traced value", "it takes a list of arrays")
        arrays = [_with_axes(a, count) for a in tup]
        along = 0 if name == "hstack" and arrays and np.ndim(arrays[0]) == 1 else axis
        return concatenate(arrays, along, None, dtype, casting, shown)

    return apply


hstack = _stacked("hstack", 1, 1)
vstack = _stacked("vstack", 2, 0)
dstack = _stacked("dstack", 3, 2)


def column_stack(tup):
    columns = [as_array(a) for a in tup]
    columns = [a[:, None] if a.ndim == 1 else np.reshape(a, (1, 1)) if a.ndim == 0 else a for a in columns]
    return concatenate(columns, 1, shown="np.column_stack")


def append(arr, values, axis=None):
    return concatenate([arr, values], axis, shown="np.append")


def tile(A, reps):
    times = to_integers(reps, "np.tile, repeated")
    if any(count < 1 for count in times):
        raise TraceError(f"np.tile by {times}", "it repeats once at least")
    if len(times) > A.ndim:
        A = A[(*(None,) * (len(times) - A.ndim), ...)]
    for i, count in enumerate(reversed(times)):
        if count > 1:
            A = _joined([A] * count, -1 - i)
    return A


def roll(a, shift, axis=None):
    if isinstance(shift, _trace.StandIn) and shift.ndim:
        # NumPy adds them up.
        raise TraceError(f"np.roll by a traced value of shape {shift.shape}", "penstock.functions.roll(x, shift, axis=-1) moves each row by its own")
    several = isinstance(shift, (tuple, list)) or isinstance(shift, np.ndarray) and shift.ndim
    shifts = [by if isinstance(by, _trace.StandIn) else to_integer(by, "np.roll by") for by in (shift if several else [shift])]
    if axis is None:
        shift = sum(shifts)
        if a.ndim == 1:
            return call("roll", (a, shift), {}, "np.roll")
        if None in a.shape:
            raise TraceError("np.roll without an axis, where only the data tells the sizes", "np.roll(x, shift, axis)")
        return np.reshape(call("roll", (flat(a), shift), {}, "np.roll"), a.shape) if a.ndim else a
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    if len(shifts) != len(axes):
        if 1 not in (len(shifts), len(axes)):
            raise TraceError(f"np.roll by {len(shifts)} shifts along {len(axes)} axes", "one shift for each axis")
        count = max(len(shifts), len(axes))
        shifts, axes = shifts * (count // len(shifts)), axes * (count // len(axes))
    for by, along in zip(shifts, axes):
        a = call("roll", (a, by), {"axis": counted_from_last(along, a.ndim, "np.roll")}, "np.roll")
    return a


def split(ary, indices_or_sections, axis=0, shown="np.split", uneven=False):
    axis = to_axis(axis, ary.ndim, shown)
    size = ary.shape[axis]
    before = (slice(None),) * axis
    if isinstance(indices_or_sections, (tuple, list, np.ndarray)):
        places = [place if isinstance(place, _trace.StandIn) else to_integer(place, shown + " at") for place in indices_or_sections]
        bounds = [None, *places, None]
        return [ary[(*before, slice(first, end))] for first, end in zip(bounds, bounds[1:])]
    sections = to_integer(indices_or_sections, shown + " into")
    if size is None:
        raise TraceError(f"{shown} of an axis whose size only the data tells", f"{shown} at indices, or subscripts such as x[:n]")
    if not 1 <= sections <= size or (size % sections and not uneven):
        raise TraceError(f"{shown} of {size} elements into {sections} parts", "each part has as many, and one at least")
    # As np.array_split: the first ones have one more.
    each, more = divmod(size, sections)
    ends = np.cumsum([each + 1] * more + [each] * (sections - more)).tolist()
    return [ary[(*before, slice(first, end))] for first, end in zip([0, *ends], ends)]


def array_split(ary, indices_or_sections, axis=0):
    return split(ary, indices_or_sections, axis, "np.array_split", uneven=True)


def hsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, min(ary.ndim, 2) - 1, "np.hsplit")


def vsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0, "np.vsplit")


def unstacked(x, axis):
    axis = to_axis(axis, x.ndim, "np.unstack")
    if x.shape[axis] is None:
        raise TraceError("np.unstack along an axis of a size that only the data tells", "subscripts such as x[0]")
    return tuple(x[(*(slice(None),) * axis, place)] for place in range(x.shape[axis]))
