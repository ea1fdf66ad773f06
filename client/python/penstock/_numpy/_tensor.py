"""penstock.Tensor: a stand-in that is used as NumPy's arrays are."""

import operator
import re
import sys
from typing import Any

import numpy as np

from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._spec._lines import user_line
from penstock._tracing import _foreign
from penstock._tracing._language import SYMBOLS, call
from penstock._tracing._refusals import OUTSIDE, TraceAttributeError, TraceError, near
from penstock._tracing._showing import refuse_text
from penstock._tracing._subscripts import subscripted
from penstock._tracing._trace import StandIn


def _binary(name, swap=False):
    def method(self, other):
        return call(name, (other, self) if swap else (self, other), {}, f"operator {SYMBOLS[name]}")

    return method


def _both_sides(name):
    return _binary(name), _binary(name, swap=True)


def _unary(name):
    return lambda self: call(name, (self,), {})


def _in_place(symbol, operate):
    """`x += y`: a new value of x's type, as NumPy's is. What else holds x, or shares memory with it in NumPy, is refused from then on."""

    def method(self, other):
        result = operate(self, other)
        held = self._spec()
        if not held.shape:
            # NumPy's scalars cannot be changed: the name stands for another one.
            return result
        shown = f"x {symbol}= y of a traced {getattr(held.dtype, 'name', held.dtype)}"
        instead = f"write x = x {symbol} y, which makes a new value"
        if type(result) is not Tensor:
            raise TraceError(f"{shown} with a spectrum", instead)
        found = result._spec()
        if len(found.shape) != len(held.shape) or any(None not in sizes and sizes[0] != sizes[1] for sizes in zip(found.shape, held.shape)):
            raise TraceError(f"{shown} of shape {held.shape}, whose result has the shape {found.shape}", instead)
        name, of_result = (getattr(dtype, "name", dtype) for dtype in (held.dtype, found.dtype))
        if of_result != name:
            if not np.can_cast(_plain(of_result), _plain(name), "same_kind"):
                raise TraceError(f"{shown}, whose result is {of_result}, which does not become {name} again", instead)
            result = result.astype(held.dtype)
        line = user_line()
        tensor = self
        while tensor is not None:
            tensor._changed = line, symbol
            tensor = tensor._base
        return result

    return method


def _plain(name):
    """A type of NumPy's that is cast as the type of that name is."""
    return "float16" if name == "bfloat16" else name


def _refused(what, instead):
    def method(self, *args, **kwargs):
        raise TraceError(what, instead)

    return method


class Tensor(StandIn):
    """A stand-in for a tensor of each element, inside a function given to map.

    It takes NumPy's operators, indexing, methods and functions; what is done to it happens later, in the
    daemon. `shape`, `ndim` and `dtype` ask the daemon.
    """

    __slots__ = ()
    # Before NumPy's and torch's arrays in mixed operations.
    __array_priority__ = 1000

    __or__, __ror__ = _both_sides("bitwise_or")
    __xor__, __rxor__ = _both_sides("bitwise_xor")
    __and__, __rand__ = _both_sides("bitwise_and")
    __add__, __radd__ = _both_sides("add")
    __sub__, __rsub__ = _both_sides("subtract")
    __mul__, __rmul__ = _both_sides("multiply")
    __truediv__, __rtruediv__ = _both_sides("divide")
    __floordiv__, __rfloordiv__ = _both_sides("floor_divide")
    __mod__, __rmod__ = _both_sides("remainder")
    __pow__, __rpow__ = _both_sides("power")
    __lshift__, __rlshift__ = _both_sides("left_shift")
    __rshift__, __rrshift__ = _both_sides("right_shift")
    __eq__ = _binary("equal")
    __ne__ = _binary("not_equal")
    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")
    __neg__ = _unary("negative")
    __invert__ = _unary("invert")
    __abs__ = _unary("abs")
    __ior__ = _in_place("|", operator.or_)
    __ixor__ = _in_place("^", operator.xor)
    __iand__ = _in_place("&", operator.and_)
    __iadd__ = _in_place("+", operator.add)
    __isub__ = _in_place("-", operator.sub)
    __imul__ = _in_place("*", operator.mul)
    __itruediv__ = _in_place("/", operator.truediv)
    __ifloordiv__ = _in_place("//", operator.floordiv)
    __imod__ = _in_place("%", operator.mod)
    __ipow__ = _in_place("**", operator.pow)
    __ilshift__ = _in_place("<<", operator.lshift)
    __irshift__ = _in_place(">>", operator.rshift)
    __imatmul__ = _in_place("@", operator.matmul)

    def set_shape(self, shape):
        """As tf.Tensor.set_shape: says what the data alone would tell. Elements of another shape are an error."""
        if self._node.kind == "made":
            made, number = self._node.value
            if not made.is_declared(number):
                made.declare(number, TensorSpec(shape, string).shape)
                return
        self._node = call("ensure_shape", (self, list(shape)), {}, ".set_shape()")._node

    def __pos__(self):
        return self._copied()

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __matmul__(self, other):
        from penstock._numpy import _products

        return _products.matmul(self, other, shown="operator @")

    def __rmatmul__(self, other):
        from penstock._numpy import _products

        return _products.matmul(other, self, shown="operator @")

    def __round__(self, digits=None):
        return np.round(self).astype(np.int64) if digits is None else np.round(self, digits)

    __bool__ = _refused(
        "the truth of a traced value (if, while, and, or, not, x < y < z, in) is not known while tracing",
        "use np.where(condition, a, b), and &, |, ~ in conditions",
    )
    __hash__ = _refused(
        "a traced value as a key of a dict or a set (table[x], hash(x), x in a set)",
        "penstock.functions.take(table, x, axis=0) looks x up in an array, and (x == a) | (x == b) compares",
    )
    __bytes__ = _refused("bytes() of a traced value", "penstock.io.decode_raw(x, np.uint8) are a string's bytes as numbers")
    __int__ = _refused("int() of a traced value", "use x.astype(np.int64)")
    __float__ = _refused("float() of a traced value", "use x.astype(np.float32)")
    __complex__ = _refused("complex() of a traced value", "there are no complex numbers")
    __index__ = _refused(
        "a traced value as an index, a size or a count",
        "these are constants; penstock.functions.take(table, x, axis=0) is table[x], np.where chooses between values, "
        "penstock.functions.arange(n) counts to n, and np.pad(x, (0, n)) puts as many zeros after x as the data tells",
    )
    __len__ = _refused("len() of a traced value", "use np.shape(x)[0]")
    __iter__ = _refused(
        "a for loop or unpacking over a traced value", "use NumPy's functions, which work on the whole of it, or x[0], x[1]"
    )
    __contains__ = _refused("`in` on a traced value", "compare, and reduce the result")
    __setitem__ = _refused("an assignment into a traced value", "use np.where(condition, a, b), which gives a new one")

    def __array__(self, dtype=None, copy=None):
        line = user_line()
        if known := _foreign.instead_in(line):
            raise TraceError("TensorFlow's functions of a traced value", known, line=line)
        if re.search(r"\barange\(", line.text()):
            raise TraceError("np.arange of a traced value", "penstock.functions.arange(start, stop, step) counts as far as the data tells", line=line)
        # NumPy does not ask what the indices of np.take are.
        looked_up = re.search(r"\btake\(|[\w)]\[", line.text())
        table = "penstock.functions.take(table, x, axis=0) for table[x] and np.take(table, x) of an array"
        others = "NumPy's functions and penstock.image, penstock.io on it, x.astype(np.float32), np.stack to join several"
        raise TraceError(
            "the conversion of a traced value to an array (np.asarray, np.float32(x), torch, PIL, a ufunc of another package)",
            f"use {f'{table}; {others}' if looked_up else f'{others}, and {table}'}; or {OUTSIDE}",
            line=line,
        )

    @property
    def __class__(self):
        # torchvision's transforms hand on, as it is and without a word, what is none of their own types.
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torchvision."):
            raise TraceError("a transform of torchvision, which does nothing to a traced value", _foreign.FRAMEWORKS["torchvision"])
        return type(self)

    __enter__ = _refused("a with statement over a traced value", OUTSIDE)
    __call__ = _refused("a call of a traced value", OUTSIDE)

    def __getitem__(self, index):
        from penstock._numpy import _indexing

        items = _indexing.without_numbers_in_arrays(index if isinstance(index, tuple) else (index,))
        if any(isinstance(item, Tensor) for item in items):
            if _indexing.is_along_one_axis(items):
                result = _indexing.by_traced(self, items)
                return result if items[-1].dtype == bool or items[-1].ndim else result._as_view_of(self)
        elif _indexing.has_arrays(items):
            return _indexing.by_arrays(self, items)
        result = self._subscripted(items)
        return result if any(isinstance(item, (list, np.ndarray)) for item in items) else result._as_view_of(self)

    def _subscripted(self, items):
        """The subscript that the language has: by integers, slices, ..., None, and one list of integers."""
        return subscripted(self, items)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from penstock._numpy import _dispatch

        return _dispatch.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        from penstock._numpy import _dispatch

        return _dispatch.call_function(func, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # Functions that take the tensor first are methods, as NumPy's are.
        if not name.startswith("_"):
            from penstock._numpy import _methods

            method = _methods.method(self, name)
            if method is not None:
                return method
        elif name != "__array_interface__":
            raise AttributeError(name)
        raise TraceAttributeError(
            f"attribute .{name} of a traced value", _instead_of_method(name)
        )

    def __repr__(self):
        refuse_text()
        return f"<traced {self._node.kind} {self._node.value}>"

    __str__ = __repr__

    def __format__(self, spec):
        refuse_text()
        return format(repr(self), spec)


StandIn.whole = Tensor


def _instead_of_method(name):
    from penstock._numpy import _methods

    instead = _methods.INSTEAD_OF_METHODS.get(name)
    if instead is not None:
        return f"use {instead}"
    return near(name, _methods.METHODS) or "it has NumPy's operators; " + OUTSIDE
