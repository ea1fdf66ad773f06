"""Subscripts by arrays, as NumPy has them: of places and of flags, constant or traced."""

import math

import numpy as np

from penstock._numpy import _taking
from penstock._numpy._axes import flat
from penstock._tracing import _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def is_along_one_axis(items):
    """Whether the last item is a traced value, behind whole axes."""
    *before, index = items
    whole = all(item is Ellipsis or (isinstance(item, slice) and _is_whole(item)) for item in before)
    return isinstance(index, _trace.StandIn) and whole and not any(item is Ellipsis for item in before[:-1])


def _is_whole(item):
    return item.start is None and item.stop is None and item.step is None


def by_traced(a, items):
    """What `a[items]` is of such items: np.take's of integers, np.compress' of flags."""
    *before, index = items
    axis = -1 if before and before[-1] is Ellipsis else len(before)
    if index.dtype != bool:
        return _taking.take(a, index, axis)
    if index.ndim < 2:
        return _taking.compress(index, a, axis)
    if before:
        raise TraceError(f"a subscript by flags of {index.ndim} axes after others", "flags of the first axes, or of one axis")
    return _taking.compress(flat(index), _merged(a, 0, index.ndim), 0)


def has_arrays(items):
    """Whether there is more among the items than the language's own subscripts have, which are one list of integers and no more."""
    arrays = [item for item in items if _is_array(item)]
    if not arrays:
        return False
    if len(arrays) > 1 or any(hasattr(item, "__index__") and not _is_array(item) for item in items):
        return True
    array = np.asarray(arrays[0])
    return array.ndim != 1 or array.dtype.kind not in "iu"


def _is_array(item):
    return isinstance(item, (list, np.ndarray))


def without_numbers_in_arrays(items):
    """The items, with other packages' tensors as NumPy's arrays, and arrays of one integer as that."""
    items = tuple(np.asarray(item) if _is_foreign(item) else item for item in items)
    return tuple(item.item() if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu" else item for item in items)


def _is_foreign(item):
    return hasattr(type(item), "__array__") and not isinstance(item, (np.ndarray, np.generic, _trace.StandIn))


def by_arrays(a, items):
    """`a[items]`, where constant arrays and integers are broadcast together and name places along as many axes."""
    # As NumPy sees it: an ellipsis stands between two, even where it stands for no axis.
    advanced = [place for place, item in enumerate(items) if _is_array(item) or hasattr(item, "__index__")]
    is_together = advanced == list(range(advanced[0], advanced[0] + len(advanced)))
    items = _spread(a, items)
    parts = [items[place] for place in range(len(items)) if _is_place(items[place])]
    if not all(part.dtype.kind in "iu" for part in parts):
        raise TraceError(f"a subscript that is an array of {next(p.dtype.name for p in parts if p.dtype.kind not in 'iu')}", "it holds integers or flags")
    if any(part.size == 0 for part in parts):
        raise TraceError("a subscript that names nothing", "a constant subscript has elements")
    try:
        shape = np.broadcast_shapes(*(part.shape for part in parts))
    except ValueError:
        raise TraceError(f"subscripts of the shapes {', '.join(str(part.shape) for part in parts)}", "they broadcast") from None
    # Slices, new axes and integers first, which leave those that are named by arrays in the order that they stand in.
    plain = tuple(item.item() if _is_number(item) else slice(None) if _is_place(item) else item for item in items)
    if any(item != slice(None) for item in plain):
        a = a._subscripted(plain)
    axes = [axis for axis, item in enumerate(item for item in items if not _is_number(item)) if _is_place(item)]
    parts = [part for part in parts if part.ndim]
    if not parts:
        return a
    first = axes[0]
    if not is_together:
        # Where others stand between them, NumPy puts what they name in front.
        order = axes + [axis for axis in range(a.ndim) if axis not in axes]
        a, first = (a if order == sorted(order) else call("transpose", (a, order), {}, "a subscript by arrays")), 0
    sizes = a.shape[first : first + len(parts)]
    if len(parts) > 1:
        if None in sizes:
            raise TraceError("subscripts by several arrays along axes of sizes that only the data tells", "resize, crop or pad before it")
        places = _flat_places([np.broadcast_to(part, shape) for part in parts], sizes)
        a = _merged(a, first, len(parts))
    else:
        places = parts[0]
    taken = a._subscripted((*(slice(None),) * first, places.ravel()))
    if len(shape) == 1:
        return taken
    around = taken.shape
    if around.count(None) > 1:
        return call("take", (a, places), {"axis": first - a.ndim}, "a subscript by arrays")
    sizes = [*around[:first], *shape, *around[first + 1 :]]
    return np.reshape(taken, [-1 if size is None else size for size in sizes])


def _is_place(item):
    return isinstance(item, np.ndarray)


def _is_number(item):
    return _is_place(item) and item.ndim == 0


def _spread(a, items):
    """An item for each axis; flags as the places of those that are set, and integers as arrays."""
    found = []
    for item in items:
        if isinstance(item, (bool, np.bool_)):
            raise TraceError("a subscript by a lone flag", "use np.where(condition, a, b)")
        if _is_array(item) or hasattr(item, "__index__"):
            item = np.asarray(item)
            # Narrow integers hold no place among many.
            item = item.astype(np.int64) if item.dtype.kind in "iu" else item
        found.append(item)
    used = sum(item.ndim if _is_place(item) and item.dtype == bool else 1 for item in found if item is not None and item is not Ellipsis)
    if used > a.ndim:
        raise TraceError(f"{used} subscripts of a value of {a.ndim} axes", "one for each axis at most")
    rest = [slice(None)] * (a.ndim - used)
    ellipses = [place for place, item in enumerate(found) if item is Ellipsis]
    if len(ellipses) > 1:
        raise TraceError("a subscript with two ellipses", "one stands for all axes that are not named")
    if ellipses:
        found[ellipses[0] : ellipses[0] + 1] = rest
    else:
        found += rest
    spread, axis = [], 0
    for item in found:
        if not (_is_place(item) and item.dtype == bool):
            spread.append(item)
            axis += item is not None
            continue
        sizes = a.shape[axis : axis + item.ndim]
        if sizes != item.shape:
            raise TraceError(f"a subscript by flags of shape {item.shape} along axes of the sizes {sizes}", "one flag for each place")
        spread += np.nonzero(item)
        axis += item.ndim
    return spread


def _flat_places(parts, sizes):
    """Where along the axes as one the places are."""
    counted = []
    for part, size in zip(parts, sizes):
        if part.min() < -size or part.max() >= size:
            raise TraceError(f"the subscript {part.min() if part.min() < -size else part.max()} of an axis of {size}", "places are within the axis")
        counted.append(part % size)
    return np.ravel_multi_index(counted, sizes)


def _merged(a, first, count):
    """The array with that many axes from `first` on as one."""
    shape = a.shape
    inner = shape[first : first + count]
    sizes = [*shape[:first], None if None in inner else math.prod(inner), *shape[first + count :]]
    if sizes.count(None) > 1:
        raise TraceError("a subscript by arrays where only the data tells the sizes of other axes", "resize, crop or pad before it")
    return np.reshape(a, [-1 if size is None else size for size in sizes])
