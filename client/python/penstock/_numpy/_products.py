"""NumPy's sums of products: dot, einsum, norms and their kin."""

import math
import string

import numpy as np

from penstock._numpy import _taking
from penstock._numpy._axes import counted, flat, reshaped_by_data, sizes_of, to_axes, to_axis, to_integer, to_integers, wrapped
from penstock._tracing import _constants, _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def _array(a):
    return a if isinstance(a, _trace.StandIn) else _constants.packed(a)


def _refuse_out(shown, out):
    if out is not None:
        raise TraceError(f"{shown} into an array", "it gives a new one")


def _common(a, b):
    return np.result_type(a.dtype, b.dtype)


def _refuse_other_sizes(one, other, shown):
    """Axes along which products are summed are as long as each other; those of one value would be repeated."""
    if None not in (one, other) and one != other:
        raise TraceError(f"{shown} of axes of {one} and {other}", "they are as long")


def matmul(a, b, /, out=None, shown="np.matmul"):
    _refuse_out(shown, out)
    a, b = _array(a), _array(b)
    if not a.ndim or not b.ndim:
        raise TraceError(f"{shown} of a number", "a * b")
    _refuse_other_sizes(a.shape[-1], b.shape[max(b.ndim - 2, 0)], shown)
    dtype = _common(a, b)
    if dtype.kind == "f" and b.ndim <= 2:
        if isinstance(b, _trace.StandIn):
            # As many rows as a has columns; and where these are a batch's, they are no row's affair.
            sizes = [a.shape[-1] if b.shape[0] is None else b.shape[0], *b.shape[1:]]
            b = b if sizes[0] is None else call("ensure_shape", (b, [-1 if size is None else size for size in sizes]), {}, shown)
        if None not in b.shape:
            is_ready = a.dtype.kind == "f" or a.dtype != bool and dtype != np.float32
            return call("matmul", (a if is_ready else a.astype(dtype), b.astype(dtype)), {}, shown)
    left = a[..., None, :] if b.ndim > 1 else a
    right = np.swapaxes(b, -1, -2) if b.ndim > 1 else b
    if b.ndim > 2 and a.ndim > 1:
        right = right[..., None, :, :]
    return _sum_of_products(left, right, dtype, (-1,))


def _sum_of_products(a, b, dtype, axes):
    """The sum along axes counted from the last, of which both have as many."""
    if dtype == bool:
        return np.any(a & b, axis=axes)
    if dtype.kind in "iu":
        # In 64 bits, of which the lower ones are what a shorter type has.
        wide = np.uint64 if dtype.kind == "u" else np.int64
        return wrapped(np.sum(a.astype(wide) * b.astype(wide), axis=axes), dtype)
    return np.sum(a.astype(dtype) * b.astype(dtype), axis=axes)


def dot(a, b, out=None):
    _refuse_out("np.dot", out)
    a, b = _array(a), _array(b)
    if not a.ndim or not b.ndim:
        return a * b
    return tensordot(a, b, (a.ndim - 1, max(b.ndim - 2, 0)), shown="np.dot")


def inner(a, b, /):
    a, b = _array(a), _array(b)
    if not a.ndim or not b.ndim:
        return a * b
    return tensordot(a, b, (-1, -1), shown="np.inner")


def vdot(a, b, /):
    return tensordot(_flat(a), _flat(b), 1, shown="np.vdot")


def vecdot(x1, x2, /, axis=-1):
    a, b = _array(x1), _array(x2)
    if not a.ndim or not b.ndim:
        raise TraceError("np.vecdot of a number", "a * b")
    if axis != -1:
        a, b = (np.moveaxis(x, axis, -1) for x in (a, b))
    _refuse_other_sizes(a.shape[-1], b.shape[-1], "np.vecdot")
    return _sum_of_products(a, b, _common(a, b), (-1,))


def outer(a, b, out=None):
    _refuse_out("np.outer", out)
    return _flat(a)[:, None] * _flat(b)


def _flat(a):
    return flat(_array(a))


def tensordot(a, b, axes=2, shown="np.tensordot"):
    a, b = _array(a), _array(b)
    if isinstance(axes, (int, np.integer)):
        count = to_integer(axes, f"{shown} over axes")
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise TraceError(f"{shown} over {count} axes of arrays of {a.ndim} and {b.ndim}", "as many as both have, at most")
        of_a, of_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        of_a, of_b = (to_axes(part, x.ndim, shown) for part, x in zip(axes, (a, b)))
    if len(of_a) != len(of_b):
        raise TraceError(f"{shown} over {len(of_a)} axes of one and {len(of_b)} of the other", "as many of both")
    if not of_a:
        raise TraceError(f"{shown} over no axis", "np.multiply.outer is a[..., None] * b")
    names = iter(string.ascii_letters)
    of = [[next(names) for _ in range(a.ndim)], [next(names) for _ in range(b.ndim)]]
    for i, j in zip(of_a, of_b):
        of[1][j] = of[0][i]
    free = [letter for letter in of[0] + of[1] if not (letter in of[0] and letter in of[1])]
    return _contracted(a, b, of[0], of[1], free, shown)


def einsum(subscripts, *operands, out=None, optimize=False, **kwargs):
    """Of one value or two, each letter once in each."""
    _refuse_out("np.einsum", out)
    if kwargs or not isinstance(subscripts, str):
        raise TraceError("np.einsum with other arguments than a text and arrays", 'np.einsum("ij,jk->ik", a, b)')
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    inputs = inputs.split(",")
    if "." in text or len(inputs) != len(operands) or len(operands) > 2:
        raise TraceError(f"np.einsum({subscripts!r}) of {len(operands)} arrays", "one array or two, each of whose axes has a letter")
    operands = [_array(a) for a in operands]
    for letters, a in zip(inputs, operands):
        if len({*letters}) != len(letters) or len(letters) != a.ndim:
            raise TraceError(f"np.einsum: {letters!r} of an array of {a.ndim} axes", "a letter for each axis, which stands once")
    every = "".join(inputs)
    if not arrow:
        output = "".join(sorted(letter for letter in {*every} if every.count(letter) == 1))
    if len({*output}) != len(output) or not {*output} <= {*every}:
        raise TraceError(f"np.einsum: the result's axes {output!r}", "letters of the arrays, each once")
    # What one alone has, and the result has not, is summed first, in the type of the result.
    dtype = np.result_type(*(a.dtype for a in operands))
    for i, (letters, a) in enumerate(zip(inputs, operands)):
        others = "".join(inputs[:i] + inputs[i + 1 :]) + output
        gone = tuple(axis for axis, letter in enumerate(letters) if letter not in others)
        if gone:
            kept = "".join(letter for letter in letters if letter in others)
            if dtype == bool:
                operands[i] = np.any(a, axis=gone)
            else:
                operands[i] = wrapped(np.sum(a, axis=gone), dtype) if dtype.kind in "iu" else np.sum(a.astype(dtype), axis=gone)
            inputs[i] = kept
    if len(operands) == 1:
        return _arranged(operands[0], inputs[0], output)
    return _contracted(*operands, *inputs, output, "np.einsum")


def _arranged(a, letters, wanted):
    order = [list(letters).index(letter) for letter in wanted]
    return a if order == sorted(order) else np.transpose(a, order)


def _contracted(a, b, of_a, of_b, output, shown):
    """The sum over the letters that both have and `output` has not."""
    of_a, of_b, output = list(of_a), list(of_b), list(output)
    gone = [letter for letter in of_a if letter not in output]
    both = [letter for letter in of_a if letter in of_b and letter in output]
    only_a = [letter for letter in of_a if letter not in of_b]
    only_b = [letter for letter in of_b if letter not in of_a]
    dtype = _common(a, b)
    for letter in gone:
        _refuse_other_sizes(a.shape[of_a.index(letter)], b.shape[of_b.index(letter)], shown)
    if not gone:
        return _arranged(_beside(a, of_a, output) * _beside(b, of_b, output), output, output)
    if both or dtype.kind != "f":
        order = [*both, *only_a, *only_b, *gone]
        result = _sum_of_products(_beside(a, of_a, order), _beside(b, of_b, order), dtype, tuple(range(-len(gone), 0)))
        return _arranged(result, order[: len(order) - len(gone)], output)
    if len(gone) == 1 and of_a[-1] == gone[0] and len(of_b) <= 2 and of_b[0] == gone[0]:
        return _arranged(matmul(a, b, shown=shown), only_a + only_b, output)
    sizes = {letter: size for letters, x in ((of_a, a), (of_b, b)) for letter, size in zip(letters, x.shape)}
    left = np.reshape(_arranged(a, of_a, only_a + gone), [*_known(sizes, only_a), _product(sizes, gone, shown)])
    right = np.reshape(_arranged(b, of_b, gone + only_b), [_product(sizes, gone, shown), *([_product(sizes, only_b, shown)] if only_b else [])])
    result = matmul(left, right, shown=shown)
    if len(only_b) > 1:
        result = np.reshape(result, [*_known(sizes, only_a), *(sizes[letter] for letter in only_b)])
    return _arranged(result, only_a + only_b, output)


def _known(sizes, letters):
    found = [sizes[letter] for letter in letters]
    return [-1 if size is None else size for size in found] if found.count(None) <= 1 else found


def _product(sizes, letters, shown):
    if any(sizes[letter] is None for letter in letters):
        raise TraceError(f"{shown} along an axis of a size that only the data tells", "resize, crop or pad before it")
    return math.prod(sizes[letter] for letter in letters)


def _beside(a, letters, order):
    """The array with its axes in that order, and a new one for each letter that it lacks."""
    a = _arranged(a, letters, [letter for letter in order if letter in letters])
    return a[tuple(slice(None) if letter in letters else None for letter in order)]


def norm(x, ord=None, axis=None, keepdims=False):
    """np.linalg.norm: of vectors, and Frobenius' of matrices."""
    shown = "np.linalg.norm"
    x = x if x.dtype.kind == "f" else x.astype(np.float64)
    axes = None if axis is None else to_axes(axis, x.ndim, shown)
    count = x.ndim if axes is None else len(axes)
    if (ord is not None and axes is None and count > 2) or (axes is not None and count > 2):
        raise TraceError(f"{shown} of {count} axes", "one axis or two")
    over = {"axis": None if axes is None else tuple(axes), "keepdims": keepdims}
    if ord is None or count == 2 and ord == "fro" or count == 1 and ord == 2:
        return np.sqrt(np.sum(x * x, **over))
    if count == 1 and ord in (np.inf, -np.inf):
        return (np.max if ord > 0 else np.min)(np.abs(x), **over)
    if count == 1 and ord == 0:
        return np.sum((x != 0).astype(x.dtype), **over)
    if count == 1 and ord == 1:
        return np.sum(np.abs(x), **over)
    if count == 1 and type(ord) in (int, float):
        return np.sum(np.abs(x) ** ord, **over) ** (1.0 / ord)
    raise TraceError(f"{shown} with ord={ord!r} of {count} axes", 'ord is None, "fro", or of one axis a number')


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    row = flat(x) if axis is None else x
    if isinstance(axis, tuple) and len(axis) > 1:
        raise TraceError("np.linalg.vector_norm over several axes", "reshape before it")
    result = norm(row, ord, -1 if axis is None else axis, keepdims and axis is not None)
    return np.reshape(result, (1,) * x.ndim) if keepdims and axis is None else result


def diagonal(a, offset=0, axis1=0, axis2=1):
    shown = "np.diagonal"
    first, second = (to_axis(axis, a.ndim, shown) for axis in (axis1, axis2))
    if first == second:
        raise TraceError(f"{shown} along one axis", "two of them")
    height, width = a.shape[first], a.shape[second]
    if height is None or width is None:
        raise TraceError(f"{shown} of axes of sizes that only the data tells", "resize, crop or pad before it")
    moved = np.moveaxis(a, (first, second), (-2, -1))
    places = np.diagonal(np.arange(height * width).reshape(height, width), to_integer(offset, f"{shown} at"))
    rest = moved.shape[:-2]
    row = np.reshape(moved, [*(-1 if size is None else size for size in rest), height * width])
    return row[..., places]


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    _refuse_out("np.trace", out)
    return np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def triangle(name):
    """np.tril and np.triu."""

    def apply(m, k=0):
        if m.ndim < 2 or None in m.shape[-2:]:
            raise TraceError(f"np.{name} of a value of shape {m.shape}", "its last two axes are of known sizes")
        kept = getattr(np, name)(np.ones(m.shape[-2:], bool), k)
        return np.where(kept, m, m.dtype.type(0))

    return apply


def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    a, b = _array(a), _array(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise TraceError(f"np.cross of vectors of {a.shape[-1]} and {b.shape[-1]}", "of three")
    (ax, ay, az), (bx, by, bz) = ([x[..., i] for i in range(3)] for x in (a, b))
    result = np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
    return np.moveaxis(result, -1, axisc)


def broadcast_to(array, shape, subok=False):
    shown = "np.broadcast_to"
    array = _array(array)
    if _trace.find_trace([shape]) is not None:
        return _broadcast_to_data(array, shape, shown)
    wanted = tuple(to_integers(shape, f"{shown} the size"))
    own = (1,) * (len(wanted) - array.ndim) + tuple(array.shape)
    if array.ndim > len(wanted) or any(size not in (None, 1, to) for size, to in zip(own, wanted)):
        raise TraceError(f"{shown} of {array.shape} to {wanted}", "axes of one repeat")
    if None in own:
        return np.where(np.ones(wanted, bool), array, array)
    array = array[(*(None,) * (len(wanted) - array.ndim), ...)]
    for axis, (size, to) in enumerate(zip(own, wanted)):
        if size != to:
            array = array[(*(slice(None),) * axis, np.zeros(to, np.int64))]
    return array


def _broadcast_to_data(array, shape, shown):
    if isinstance(shape, _trace.StandIn):
        shape = [shape] if not shape.ndim else [shape[i] for i in range(shape.shape[0])]
    wanted = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    if array.ndim > len(wanted):
        raise TraceError(f"{shown} of {array.shape} to {len(wanted)} axes", "as many at least")
    array = array[(*(None,) * (len(wanted) - array.ndim), ...)]
    for axis, (own, to) in enumerate(zip(array.shape, wanted)):
        places = counted(to)
        if own == 1:
            array = _taking.take(array, places * 0, axis)
        elif own is None:
            around = [1] * len(wanted)
            around[axis] = -1
            array = np.where(np.reshape(places, around) >= 0, array, array)
    # What does not fit is an error here.
    return reshaped_by_data(array, wanted, shown)


def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    rows = [_flat(x) for x in xi]
    if indexing not in ("xy", "ij"):
        raise TraceError(f"np.meshgrid with indexing={indexing!r}", 'it is "xy" or "ij"')
    places = list(range(len(rows)))
    if indexing == "xy" and len(rows) > 1:
        places[:2] = 1, 0
    sizes = [1] * len(rows)
    for row, place in zip(rows, places):
        (sizes[place],) = sizes_of(row) if isinstance(row, _trace.StandIn) else row.shape
    grids = [row[tuple(slice(None) if axis == place else None for axis in range(len(rows)))] for row, place in zip(rows, places)]
    return tuple(grids if sparse else [broadcast_to(grid, sizes) for grid in grids])
